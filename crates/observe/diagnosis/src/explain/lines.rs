//! Lines of a log of any size: bounded memory, bytes that are no UTF-8 replaced, a program told from a text.

use super::LogError;
use std::io::BufRead;

/// The rest of a longer line is passed over.
const LINE: usize = 64 << 10;
/// A text has no zero byte; one far behind the start is damage, not a program.
const LOOKED_AT_FOR_ZEROS: u64 = 64 << 10;

pub(crate) struct Lines<R> {
    reader: R,
    bytes: Vec<u8>,
    text: String,
    passed: u64,
    lines: u64,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(reader: R) -> Self {
        Lines { reader, bytes: Vec::new(), text: String::new(), passed: 0, lines: 0 }
    }

    /// The next line without its end; none at the end of the log.
    pub(crate) fn next_line(&mut self) -> Result<Option<&str>, LogError> {
        self.bytes.clear();
        let mut any = false;
        loop {
            let block = match self.reader.fill_buf() {
                Ok(block) => block,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(LogError::Read { line: self.lines, source }),
            };
            if block.is_empty() {
                break;
            }
            any = true;
            let end = block.iter().position(|byte| *byte == b'\n');
            let part = &block[..end.unwrap_or(block.len())];
            if self.passed < LOOKED_AT_FOR_ZEROS {
                if let Some(zero) = part.iter().position(|byte| *byte == 0) {
                    return Err(LogError::NotText { at: self.passed + zero as u64 });
                }
            }
            let room = LINE.saturating_sub(self.bytes.len());
            self.bytes.extend_from_slice(&part[..part.len().min(room)]);
            let used = part.len() + usize::from(end.is_some());
            self.passed += used as u64;
            self.reader.consume(used);
            if end.is_some() {
                break;
            }
        }
        if !any {
            return Ok(None);
        }
        self.lines += 1;
        if self.bytes.last() == Some(&b'\r') {
            self.bytes.pop();
        }
        self.text.clear();
        self.text.push_str(&String::from_utf8_lossy(&self.bytes));
        Ok(Some(&self.text))
    }
}
