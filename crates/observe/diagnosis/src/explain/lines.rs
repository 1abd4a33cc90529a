//! Lines of a log of any size, as a person sees them: bounded memory, bytes that are no UTF-8 replaced, colours taken out,
//! a program told from a text.
//!
//! The surprise: a progress bar ends its states with a carriage return, so that hours of it, and what the shell says
//! after it, are one line of the file. Each state is a line here, under the number that the file's line has.

use super::error::LogError;
use crate::policy::log::CHECKED_FOR_ZEROS_BYTES;
use regex::Regex;
use std::borrow::Cow;
use std::io::BufRead;
use std::sync::OnceLock;

/// The rest of a longer line is passed over.
const MOST_BYTES: usize = 64 << 10;

pub(crate) struct Lines<R> {
    reader: R,
    bytes: Vec<u8>,
    text: String,
    passed: u64,
    /// Ends of lines passed.
    ended: u64,
    /// Something stands behind the last of them.
    open: bool,
    /// The last line was ended by a carriage return.
    returned: bool,
}

/// A line, or one state of a progress bar.
pub(crate) struct Line<'a> {
    pub(crate) number: u64,
    pub(crate) text: &'a str,
    /// What comes next is printed over it.
    pub(crate) overwritten: bool,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(reader: R) -> Self {
        Lines {
            reader,
            bytes: Vec::new(),
            text: String::new(),
            passed: 0,
            ended: 0,
            open: false,
            returned: false,
        }
    }

    /// The next line without its end; none at the end of the log.
    pub(crate) fn next_line(&mut self) -> Result<Option<Line<'_>>, LogError> {
        let Some((number, end)) = self.read()? else { return Ok(None) };
        self.text.clear();
        match without_colours(&String::from_utf8_lossy(&self.bytes)) {
            Cow::Borrowed(text) => self.text.push_str(text),
            Cow::Owned(text) => self.text = text,
        }
        Ok(Some(Line { number, text: &self.text, overwritten: end == Some(b'\r') }))
    }

    /// How many lines the log has had so far, the last one that has no end included.
    pub(crate) fn count(&self) -> u64 {
        self.ended + u64::from(self.open)
    }

    /// Fills `bytes` up to the next end, which it tells with the line's number.
    fn read(&mut self) -> Result<Option<(u64, Option<u8>)>, LogError> {
        loop {
            self.bytes.clear();
            let (mut any, mut ended_by) = (false, None);
            while ended_by.is_none() {
                let block = match self.reader.fill_buf() {
                    Ok(block) => block,
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                    Err(source) => return Err(LogError::Read { line: self.ended, source }),
                };
                if block.is_empty() {
                    break;
                }
                any = true;
                let end = block.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
                let part = &block[..end.unwrap_or(block.len())];
                if self.passed < CHECKED_FOR_ZEROS_BYTES {
                    if let Some(zero) = part.iter().position(|byte| *byte == 0) {
                        return Err(LogError::NotText { at: self.passed + zero as u64 });
                    }
                }
                let room = MOST_BYTES.saturating_sub(self.bytes.len());
                self.bytes.extend_from_slice(&part[..part.len().min(room)]);
                ended_by = end.map(|end| block[end]);
                let used = part.len() + usize::from(end.is_some());
                self.passed += used as u64;
                self.reader.consume(used);
            }
            let number = self.ended + 1;
            self.ended += u64::from(ended_by == Some(b'\n'));
            self.open = if any { ended_by != Some(b'\n') } else { self.open };
            let second_half = self.returned && self.bytes.is_empty();
            self.returned = ended_by == Some(b'\r');
            match ended_by {
                None if !any => return Ok(None),
                // The other half of a line's end in Windows.
                Some(b'\n') if second_half => {}
                _ => return Ok(Some((number, ended_by))),
            }
        }
    }
}

/// Without the escapes that set colours, titles and links, which stand in the middle of messages.
fn without_colours(text: &str) -> Cow<'_, str> {
    static ESCAPES: OnceLock<Regex> = OnceLock::new();
    let escapes = ESCAPES.get_or_init(|| {
        Regex::new(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[()][0-9A-B]|[=>78cDEHM])")
            .expect("a constant, compiled by every test of a log")
    });
    if text.contains('\x1b') {
        escapes.replace_all(text, "")
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(log: &str) -> Vec<(u64, String)> {
        let mut lines = Lines::new(std::io::BufReader::with_capacity(3, log.as_bytes()));
        let mut all = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            all.push((line.number, line.text.to_owned()));
        }
        assert_eq!(lines.count(), all.last().map_or(0, |line| line.0));
        all
    }

    #[test]
    fn states_of_a_progress_bar_are_lines_of_their_own_under_one_number() {
        let of = |number: u64, text: &str| (number, text.to_owned());
        assert_eq!(
            lines("a\n 1%\r 2%\rKilled\nb"),
            [of(1, "a"), of(2, " 1%"), of(2, " 2%"), of(2, "Killed"), of(3, "b")]
        );
        assert_eq!(lines("a\r\nb\r\n\r\n"), [of(1, "a"), of(2, "b"), of(3, "")]);
        assert_eq!(lines(""), []);
        assert_eq!(lines("\n"), [of(1, "")]);
    }

    #[test]
    fn colours_titles_and_links_are_taken_out() {
        let coloured =
            "\u{1b}[1;35mOSError\u{1b}[0m: \u{1b}]0;title\u{7}\u{1b}[35m[Errno 12]\u{1b}[K no\u{1b}(B";
        assert_eq!(lines(coloured)[0].1, "OSError: [Errno 12] no");
        assert_eq!(lines("\u{1b}[31")[0].1, "\u{1b}[31", "cut off");
    }
}
