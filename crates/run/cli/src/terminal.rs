//! A terminal that is taken for a while: keys come from it, frames go to it, and it is given back whatever happens.
//!
//! The surprise: a terminal that hangs up is always ready to be read and gives nothing but an error. So it is asked with
//! poll(2) first, and a hang-up is an end: a reader that tries again would take a whole core.

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::termios::{tcgetattr, tcgetwinsize, tcsetattr, OptionalActions, Termios};
use std::io::Write;
use ullage_supervisor::terminal_signals::{TerminalSignal, TerminalSignals};
use ullage_tui::{Buffer, Key, Rect};

/// The screen of its own, without a cursor; then the one before, as it was.
const TAKE: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[2J";
const GIVE_BACK: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1049l";
/// Sizes of terminals that do not say theirs.
const USUAL: (u16, u16) = (80, 24);
/// Larger than any screen: a size of 65,535 lines would take gigabytes.
const MOST: (u16, u16) = (1000, 500);

/// What came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Came {
    /// These keys.
    Keys(Vec<Key>),
    /// The terminal has another size.
    Resized,
    /// Somebody wrote into the descriptor to wake this up.
    News,
    /// The terminal is gone.
    HungUp,
    /// A signal asks for the end.
    Signal(i32),
}

/// A terminal in use. Given back when it is dropped.
pub struct Terminal {
    before: Termios,
    signals: TerminalSignals,
    wake: OwnedFd,
    drawn: Buffer,
    /// An escape that may be the beginning of a key.
    begun: Vec<u8>,
}

/// True where standard input and output are one that can be drawn on.
pub fn can_be_taken() -> bool {
    let known = std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
    known
        && rustix::termios::isatty(rustix::stdio::stdin())
        && rustix::termios::isatty(rustix::stdio::stdout())
}

impl Terminal {
    /// Takes the terminal; `wake` is a descriptor that becomes readable when there is news.
    ///
    /// # Errors
    /// Where it is none, or signals cannot be read.
    pub fn take(wake: OwnedFd) -> anyhow::Result<Terminal> {
        let stdin = rustix::stdio::stdin();
        let signals = TerminalSignals::open()?;
        let before = tcgetattr(stdin)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(stdin, OptionalActions::Now, &raw)?;
        // From here on it is given back on dropping.
        let terminal =
            Terminal { before, signals, wake, drawn: Buffer::empty(Rect::ZERO), begun: Vec::new() };
        write(TAKE)?;
        Ok(terminal)
    }

    /// Columns and lines.
    pub fn size(&self) -> (u16, u16) {
        let size = tcgetwinsize(rustix::stdio::stdout()).map_or(USUAL, |size| (size.ws_col, size.ws_row));
        let or_usual = |size: u16, usual: u16, most: u16| if size == 0 { usual } else { size.min(most) };
        (or_usual(size.0, USUAL.0, MOST.0), or_usual(size.1, USUAL.1, MOST.1))
    }

    /// Shows a frame: what differs from the last one is written.
    pub fn draw(&mut self, frame: Buffer) -> std::io::Result<()> {
        let mut out = Vec::new();
        if frame.area != self.drawn.area {
            out.extend_from_slice(b"\x1b[0m\x1b[2J");
            self.drawn = Buffer::empty(frame.area);
        }
        crate::terminal_cells::write_changes(&self.drawn, &frame, &mut out);
        self.drawn = frame;
        if out.is_empty() {
            return Ok(());
        }
        write(&out)
    }

    /// Waits for whatever comes first.
    pub fn wait(&mut self) -> Vec<Came> {
        let stdin = rustix::stdio::stdin();
        // A single escape is a key of its own where nothing follows it.
        let timeout = if self.begun.is_empty() { None } else { Some(&ESCAPE_ENDS) };
        let (ready, polled) = {
            let mut fds = [
                PollFd::new(&stdin, PollFlags::IN),
                PollFd::from_borrowed_fd(self.wake.as_fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN),
            ];
            let polled = poll(&mut fds, timeout);
            (fds.each_ref().map(PollFd::revents), polled)
        };
        let mut came = Vec::new();
        match polled {
            Err(rustix::io::Errno::INTR) => return came,
            Err(_) => return vec![Came::HungUp],
            Ok(0) => {
                self.begun.clear();
                return vec![Came::Keys(vec![Key::Escape])];
            }
            Ok(_) => {}
        }
        if !ready[2].is_empty() {
            while let Some(signal) = self.signals.next_signal() {
                came.push(match signal {
                    TerminalSignal::Resized => Came::Resized,
                    TerminalSignal::End(number) => Came::Signal(number),
                });
            }
        }
        if !ready[1].is_empty() {
            drain(self.wake.as_fd());
            came.push(Came::News);
        }
        if ready[0].intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            came.push(Came::HungUp);
        } else if !ready[0].is_empty() {
            let mut bytes = [0; 256];
            match rustix::io::read(stdin, &mut bytes) {
                Ok(0) | Err(rustix::io::Errno::IO) => came.push(Came::HungUp),
                Ok(count) => {
                    self.begun.extend_from_slice(&bytes[..count]);
                    came.push(Came::Keys(keys(&mut self.begun)));
                }
                Err(_) => {}
            }
        }
        came
    }
}

/// What follows the escape of a key comes with it, or a moment later over a slow line.
const ESCAPE_ENDS: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

impl Drop for Terminal {
    fn drop(&mut self) {
        // A terminal that is gone takes nothing back.
        let _ = write(GIVE_BACK);
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &self.before);
    }
}

fn write(bytes: &[u8]) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()
}

fn drain(fd: BorrowedFd<'_>) {
    let mut bytes = [0; 64];
    while rustix::io::read(fd, &mut bytes).is_ok_and(|count| count == bytes.len()) {}
}

/// The keys that these bytes are; what may be the beginning of one is left.
fn keys(bytes: &mut Vec<u8>) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut rest: &[u8] = bytes;
    while let Some(first) = rest.first() {
        let (used, key) = match first {
            0x1b => match escape(rest) {
                Some(key) => key,
                None => break,
            },
            b'\r' | b'\n' => (1, Some(Key::Enter)),
            0x7f | 0x08 => (1, Some(Key::Backspace)),
            // Ctrl-C and Ctrl-D, which are no signals in raw mode.
            0x03 | 0x04 => (1, Some(Key::Char('q'))),
            0..=0x1f => (1, None),
            _ => match letter(rest) {
                Some(letter) => letter,
                None => break,
            },
        };
        keys.extend(key);
        rest = &rest[used..];
    }
    *bytes = rest.to_vec();
    keys
}

/// A letter of UTF-8; none where its end has not come.
fn letter(bytes: &[u8]) -> Option<(usize, Option<Key>)> {
    for length in 1..=bytes.len().min(4) {
        if let Ok(text) = std::str::from_utf8(&bytes[..length]) {
            return Some((length, text.chars().next().map(Key::Char)));
        }
    }
    (bytes.len() >= 4).then_some((1, None))
}

/// A key that begins with an escape (xterm, "PC-Style Function Keys"); none where its end has not come.
fn escape(bytes: &[u8]) -> Option<(usize, Option<Key>)> {
    /// No key is longer.
    const LONGEST: usize = 12;
    match bytes.get(1)? {
        b'[' | b'O' => {
            let end = bytes.iter().skip(2).position(|byte| (0x40..=0x7e).contains(byte));
            let Some(end) = end.map(|end| end + 2) else {
                return (bytes.len() > LONGEST).then_some((bytes.len(), None));
            };
            let middle = &bytes[2..end];
            let far = middle.ends_with(b";2") || middle.ends_with(b";5");
            let key = match (bytes[end], middle) {
                (b'A', _) => Some(Key::Up),
                (b'B', _) => Some(Key::Down),
                (b'C', _) if far => Some(Key::FarRight),
                (b'D', _) if far => Some(Key::FarLeft),
                (b'C', _) => Some(Key::Right),
                (b'D', _) => Some(Key::Left),
                (b'H', _) | (b'~', b"1" | b"7") => Some(Key::Home),
                (b'F', _) | (b'~', b"4" | b"8") => Some(Key::End),
                (b'~', b"5") => Some(Key::PageUp),
                (b'~', b"6") => Some(Key::PageDown),
                _ => None,
            };
            Some((end + 1, key))
        }
        // An escape before another key is one of its own.
        _ => Some((1, Some(Key::Escape))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> (Vec<Key>, Vec<u8>) {
        let mut bytes = bytes.to_vec();
        let keys = keys(&mut bytes);
        (keys, bytes)
    }

    #[test]
    fn keys_are_what_terminals_send_for_them() {
        use Key::*;
        assert_eq!(all(b"q1\r\x7f").0, [Char('q'), Char('1'), Enter, Backspace]);
        assert_eq!(
            all(b"\x1b[A\x1bOB\x1b[1;2C\x1b[D\x1b[5~\x1b[6~\x1b[H\x1b[4~").0,
            [Up, Down, FarRight, Left, PageUp, PageDown, Home, End]
        );
        assert_eq!(all("é日".as_bytes()).0, [Char('é'), Char('日')]);
        assert_eq!(all(b"\x1bq").0, [Escape, Char('q')]);
        assert_eq!(all(b"\x03").0, [Char('q')]);
    }

    #[test]
    fn a_key_that_comes_in_two_reads_is_one() {
        assert_eq!(all(b"a\x1b"), (vec![Key::Char('a')], b"\x1b".to_vec()));
        assert_eq!(all(b"\x1b[1;"), (vec![], b"\x1b[1;".to_vec()));
        assert_eq!(all(&"日".as_bytes()[..2]), (vec![], "日".as_bytes()[..2].to_vec()));
    }

    /// Run by the test below in a terminal of its own: what happens to it is not seen from inside.
    #[test]
    #[ignore = "takes the terminal that it runs in, and panics"]
    fn takes_a_terminal_and_panics() {
        let (wake, _other) = rustix::pipe::pipe().unwrap();
        let mut terminal = Terminal::take(wake).unwrap();
        let frame = Buffer::with_lines(["", " DRAWN"]);
        terminal.draw(frame).unwrap();
        panic!("while the terminal is taken");
    }

    /// In tmux, which says what a terminal would do.
    #[test]
    fn a_panic_gives_the_terminal_back() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("tmux");
        let tmux = |words: &[&str]| {
            let mut command = std::process::Command::new("tmux");
            command.env_remove("TMUX").arg("-S").arg(&socket).args(["-f", "/dev/null"]).args(words);
            command.output()
        };
        if tmux(&["-V"]).is_err() {
            return eprintln!("tmux is not here: the terminal was not looked at");
        }
        let file = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        let script = format!(
            "echo BEFORE; stty -a > {0}; {1} --ignored --exact {2} > /dev/tty 2> {3}; stty -a > {4}; \
             tmux -S {5} wait-for -S over; exec sleep 1000",
            file("before"),
            std::env::current_exe().unwrap().display(),
            "terminal::tests::takes_a_terminal_and_panics --nocapture",
            file("said"),
            file("after"),
            socket.display()
        );
        tmux(&["new-session", "-d", "-x", "80", "-y", "24", &script]).unwrap();
        tmux(&["wait-for", "over"]).unwrap();
        let text = |output: std::io::Result<std::process::Output>| {
            String::from_utf8(output.unwrap().stdout).unwrap()
        };
        let cursor = text(tmux(&["display-message", "-p", "#{cursor_flag} #{alternate_on}"]));
        let screen = text(tmux(&["capture-pane", "-p"]));
        tmux(&["kill-server"]).unwrap();
        let read = |name: &str| std::fs::read_to_string(file(name)).unwrap();
        assert!(read("said").contains("while the terminal is taken"), "{}", read("said"));
        assert_eq!(read("before"), read("after"));
        assert_eq!(cursor.trim(), "1 0", "cursor and screen of its own");
        assert!(screen.contains("BEFORE") && !screen.contains("DRAWN"), "{screen}");
    }

    #[test]
    fn any_bytes_end() {
        let mut state = 7_u64;
        for _ in 0..2000 {
            let mut bytes = Vec::new();
            for _ in 0..40 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                bytes.push(
                    [0x1b, b'[', b'O', b'1', b';', b'~', (state >> 33) as u8][(state >> 60) as usize % 7],
                );
            }
            let left = all(&bytes).1;
            assert!(left.len() <= 13, "{left:?}");
        }
    }
}
