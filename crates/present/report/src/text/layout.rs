//! How do headed sections stand on a screen? A heading in the left margin, the text beside it; on a narrow
//! screen the heading stands above. The surprise: words are never broken, so a long path or command may
//! stick out on the right and still be copied whole.

use super::style::{glue_units, Ink, Style, GLUE};
use textwrap::{core::display_width, wrap, Options, WordSplitter, WrapAlgorithm};

/// Width of the margin that holds the headings.
const MARGIN: usize = 10;
/// Below this the margin would take too much.
const NARROW: usize = 60;

/// Text that grows section by section.
pub(super) struct Screen {
    style: Style,
    out: String,
    heading: Option<(String, Ink)>,
    margin: usize,
}

impl Screen {
    pub(super) fn new(style: Style) -> Screen {
        let margin = if style.width < NARROW { 2 } else { MARGIN };
        Screen { style, out: String::new(), heading: None, margin }
    }

    /// Without a margin: for text whose headings stand on lines of their own.
    pub(super) fn page(style: Style) -> Screen {
        Screen { margin: 0, ..Screen::new(style) }
    }

    /// Starts a section; its heading appears with the first line written.
    pub(super) fn section(&mut self, heading: &str, ink: Ink) {
        self.heading = Some((heading.to_owned(), ink));
    }

    /// Columns beside the margin.
    pub(super) fn columns(&self) -> usize {
        self.style.width.saturating_sub(self.margin).max(20)
    }

    /// One line as it is, `indent` columns in.
    pub(super) fn line(&mut self, indent: usize, text: &str) {
        let margin = self.margin;
        let mut lead = " ".repeat(margin);
        if let Some((heading, ink)) = self.heading.take() {
            if !self.out.is_empty() {
                self.out.push('\n');
            }
            let painted = self.style.paint(ink, &heading);
            if margin < MARGIN {
                self.out.push_str(&painted);
                self.out.push('\n');
            } else {
                lead = format!("{painted}{}", " ".repeat(margin.saturating_sub(display_width(&heading))));
            }
        }
        let line = format!("{lead}{}{text}", " ".repeat(indent));
        self.out.push_str(&line.trim_end().replace(GLUE, " "));
        self.out.push('\n');
    }

    /// Prose, wrapped; lines after the first stand `hang` columns further in.
    pub(super) fn prose(&mut self, indent: usize, hang: usize, text: &str) {
        let hanging = " ".repeat(hang);
        let options = Options::new(self.columns().saturating_sub(indent).max(20))
            .subsequent_indent(&hanging)
            .word_splitter(WordSplitter::NoHyphenation)
            .wrap_algorithm(WrapAlgorithm::FirstFit)
            .break_words(false);
        for line in wrap(&glue_units(text), options) {
            self.line(indent, &line);
        }
    }

    /// Commands or code: every line as it is.
    pub(super) fn code(&mut self, indent: usize, code: &str) {
        for line in crate::format::clean_lines(code).trim_end().lines() {
            let painted = self.style.paint(Ink::Code, line);
            self.line(indent, &painted);
        }
    }

    /// A table: the first column takes what the others leave, those stand right-aligned but the last.
    pub(super) fn table(&mut self, rows: &[Vec<String>]) {
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|c| {
                rows.iter().filter_map(|row| row.get(c)).map(|cell| display_width(cell)).max().unwrap_or(0)
            })
            .collect();
        let others: usize = widths.iter().skip(1).map(|w| w + 2).sum();
        let least = self.columns().saturating_sub(others);
        // Too narrow for one line a row: the first cell gets a line of its own.
        let split = least < 16 && widths.first().is_some_and(|w| *w > least);
        let first = widths.first().copied().unwrap_or(0).min(if split { 16 } else { least });
        for row in rows {
            let mut line = String::new();
            for (c, cell) in row.iter().enumerate() {
                if c == 0 && split {
                    let cell = middle_cut(cell, self.columns());
                    self.line(0, &cell);
                    line.push_str("  ");
                } else if c == 0 {
                    let cell = middle_cut(cell, first);
                    line.push_str(&cell);
                    line.push_str(&" ".repeat(first.saturating_sub(display_width(&cell))));
                } else if c + 1 == row.len() {
                    line.push_str("  ");
                    line.push_str(cell);
                } else {
                    line.push_str(&" ".repeat(widths[c].saturating_sub(display_width(cell)) + 2));
                    line.push_str(cell);
                }
            }
            self.line(0, &line);
        }
    }

    pub(super) fn finish(self) -> String {
        self.out
    }
}

/// The text, or its head and tail around `…` where it is wider than `width`.
pub(super) fn middle_cut(text: &str, width: usize) -> String {
    if display_width(text) <= width {
        return text.to_owned();
    }
    let chars: Vec<char> = text.chars().collect();
    let keep = width.saturating_sub(1);
    let head = keep / 2;
    let tail = keep - head;
    let start: String = chars.iter().take(head).collect();
    let end: String = chars.iter().skip(chars.len().saturating_sub(tail)).collect();
    format!("{start}…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_stand_in_the_margin_or_above() {
        let mut screen = Screen::new(Style::plain(80));
        screen.section("Why", Ink::Strong);
        screen.prose(0, 0, "one");
        screen.prose(0, 0, "two");
        assert_eq!(screen.finish(), "Why       one\n          two\n");
        let mut screen = Screen::new(Style::plain(40));
        screen.section("Why", Ink::Strong);
        screen.prose(0, 0, "one");
        assert_eq!(screen.finish(), "Why\n  one\n");
    }

    #[test]
    fn prose_wraps_and_long_words_stay_whole() {
        let mut screen = Screen::new(Style::plain(40));
        let path = "/a/very/long/path/that/does/not/fit/on/a/narrow/screen";
        screen.prose(0, 2, &format!("the file {path} is-kept-whole here"));
        let text = screen.finish();
        assert!(text.contains(path), "{text}");
        assert!(text.lines().count() >= 3);
    }

    #[test]
    fn a_section_without_lines_leaves_no_heading() {
        let mut screen = Screen::new(Style::plain(80));
        screen.section("Empty", Ink::Strong);
        assert_eq!(screen.finish(), "");
    }

    #[test]
    fn cuts_keep_both_ends() {
        assert_eq!(middle_cut("abcdef", 6), "abcdef");
        assert_eq!(middle_cut("abcdefghij", 5), "ab…ij");
        assert_eq!(middle_cut("abc", 0), "…");
    }
}
