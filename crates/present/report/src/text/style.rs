//! How wide is the screen, and may it have colours?

/// How text is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Colours and bold, as ANSI escapes.
    pub color: bool,
    /// Columns. Lines of prose are wrapped there; commands never are, so that they can be copied.
    pub width: usize,
}

impl Style {
    /// Where no terminal tells another width, and the least that tables are laid out for.
    pub const DEFAULT_WIDTH: usize = 80;
    /// Prose wider than this is hard to read.
    pub const MAX_WIDTH: usize = 100;

    /// Without colours.
    pub fn plain(width: usize) -> Style {
        Style { color: false, width }
    }

    /// From the environment's values and the terminal: `NO_COLOR` (<https://no-color.org>: any text but the
    /// empty one) wins, then `CLICOLOR_FORCE` (anything but empty and `0`), then whether the output is a
    /// terminal. `columns` is the terminal's width, where it has one.
    pub fn decide(
        no_color: Option<&str>,
        clicolor_force: Option<&str>,
        is_terminal: bool,
        columns: Option<usize>,
    ) -> Style {
        let forbidden = no_color.is_some_and(|value| !value.is_empty());
        let forced = clicolor_force.is_some_and(|value| !value.is_empty() && value != "0");
        let width = columns.filter(|n| *n > 0).unwrap_or(Style::DEFAULT_WIDTH).min(Style::MAX_WIDTH);
        Style { color: !forbidden && (forced || is_terminal), width }
    }
}

/// What a piece of text is, which decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ink {
    Plain,
    Strong,
    Quiet,
    Bad,
    Warn,
    Good,
    Code,
}

impl Style {
    /// One span; where lines are broken inside of it, [`carry_spans`] ends it and begins it again.
    pub(super) fn paint(self, ink: Ink, text: &str) -> String {
        let code = match ink {
            _ if !self.color => return text.to_owned(),
            Ink::Plain => return text.to_owned(),
            Ink::Strong => "1",
            Ink::Quiet => "2",
            Ink::Bad => "1;31",
            Ink::Warn => "1;33",
            Ink::Good => "1;32",
            Ink::Code => "36",
        };
        if text.is_empty() {
            return String::new();
        }
        format!("\x1b[{code}m{}{RESET}", glue_units(text))
    }
}

const RESET: &str = "\x1b[0m";

/// Lines that were broken apart, each with the colours that it has: none reaches into the margin of the next.
pub(super) fn carry_spans<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut open = String::new();
    let mut out = Vec::new();
    for line in lines {
        // The indent of a line that hangs is no text.
        let text = line.trim_start_matches(' ');
        let mut whole = format!("{}{open}{text}", &line[..line.len() - text.len()]);
        for (at, _) in text.match_indices("\x1b[") {
            let end = text[at..].find('m').map_or(text.len(), |m| at + m + 1);
            open = if &text[at..end] == RESET { String::new() } else { text[at..end].to_owned() };
        }
        if !open.is_empty() {
            whole.push_str(RESET);
        }
        out.push(whole);
    }
    out
}

/// Stands for a space at which no line may break.
pub(super) const GLUE: char = '\u{a0}';

/// Numbers keep their units on their line: `12.3 s`, `254 MiB`, `97 %`.
pub(super) fn glue_units(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(space) = rest.find(' ') {
        let (before, after) = (&rest[..space], &rest[space + 1..]);
        let unit: String = after.chars().take_while(|c| c.is_ascii_alphabetic() || *c == '%').collect();
        let known =
            ["s", "ms", "min", "h", "d", "%", "bytes", "KiB", "MiB", "GiB", "TiB"].contains(&unit.as_str());
        out.push_str(before);
        out.push(if known && before.ends_with(|c: char| c.is_ascii_digit()) { GLUE } else { ' ' });
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_color_wins_then_force_then_the_terminal() {
        let color = |no, force, tty| Style::decide(no, force, tty, None).color;
        assert!(color(None, None, true));
        assert!(!color(None, None, false));
        assert!(!color(Some("1"), None, true));
        assert!(color(Some(""), None, true), "an empty NO_COLOR says nothing");
        assert!(color(None, Some("1"), false));
        assert!(!color(None, Some("0"), false));
        assert!(!color(Some("1"), Some("1"), true));
    }

    #[test]
    fn width_is_the_terminals_within_reason() {
        assert_eq!(Style::decide(None, None, true, Some(60)).width, 60);
        assert_eq!(Style::decide(None, None, true, Some(0)).width, 80);
        assert_eq!(Style::decide(None, None, false, None).width, 80);
        assert_eq!(Style::decide(None, None, true, Some(300)).width, Style::MAX_WIDTH);
    }

    #[test]
    fn a_number_stays_with_its_unit() {
        assert_eq!(
            glue_units("at 12.3 s] of 4 sorts, 97 % sure"),
            "at 12.3\u{a0}s] of 4 sorts, 97\u{a0}% sure"
        );
    }

    #[test]
    fn plain_text_has_no_escapes() {
        assert_eq!(Style::plain(80).paint(Ink::Bad, "a b"), "a b");
        let style = Style { color: true, width: 80 };
        assert_eq!(style.paint(Ink::Quiet, "a b"), "\u{1b}[2ma b\u{1b}[0m");
    }

    #[test]
    fn a_span_ends_with_its_line_and_begins_again_behind_the_indent() {
        let lines = carry_spans(["a \u{1b}[2mb", "  c\u{1b}[0m d", "e"].into_iter());
        assert_eq!(lines, ["a \u{1b}[2mb\u{1b}[0m", "  \u{1b}[2mc\u{1b}[0m d", "e"]);
    }
}
