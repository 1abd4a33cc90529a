//! How do headed sections stand on a screen? A heading in the left margin, the text beside it; on a narrow
//! screen the heading stands above. The surprise: words are never broken, so a long path or command may
//! stick out on the right and still be copied whole.

use super::style::{carry_spans, glue_units, Ink, Style, GLUE};
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
    /// No empty line between sections.
    tight: bool,
}

impl Screen {
    pub(super) fn new(style: Style) -> Screen {
        let margin = if style.width < NARROW { 2 } else { MARGIN };
        Screen { style, out: String::new(), heading: None, margin, tight: false }
    }

    /// Without empty lines, and with a margin that `heading` just fits into, on narrow screens too.
    pub(super) fn block(style: Style, heading: &str) -> Screen {
        Screen { margin: display_width(heading) + 1, tight: true, ..Screen::new(style) }
    }

    /// Without a margin: for text whose headings stand on lines of their own.
    pub(super) fn page(style: Style) -> Screen {
        Screen { margin: 0, ..Screen::new(style) }
    }

    /// Starts a section; its heading appears with the first line written.
    pub(super) fn section(&mut self, heading: &str, ink: Ink) {
        self.heading = Some((heading.to_owned(), ink));
    }

    /// Lines so far.
    pub(super) fn lines(&self) -> usize {
        self.out.lines().count()
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
            if !self.out.is_empty() && !self.tight {
                self.out.push('\n');
            }
            let painted = self.style.paint(ink, &heading);
            if margin < MARGIN && !self.tight {
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
        self.prose_in(usize::MAX, indent, hang, text);
    }

    /// The lines that prose takes.
    pub(super) fn wrapped(&self, indent: usize, hang: usize, text: &str) -> Vec<String> {
        let hanging = " ".repeat(hang);
        let options = Options::new(self.room(indent))
            .subsequent_indent(&hanging)
            .word_splitter(WordSplitter::NoHyphenation)
            .wrap_algorithm(WrapAlgorithm::FirstFit)
            .break_words(false);
        wrap(&glue_units(text), options).into_iter().map(String::from).collect()
    }

    fn room(&self, indent: usize) -> usize {
        self.columns().saturating_sub(indent).max(20)
    }

    /// The same in so many lines at most; what is left out ends in `…` behind a whole word.
    pub(super) fn prose_in(&mut self, most: usize, indent: usize, hang: usize, text: &str) {
        let width = self.room(indent);
        let mut lines = self.wrapped(indent, hang, text);
        if lines.len() > most {
            lines = self.in_clauses(most, indent, hang, text).unwrap_or(lines);
        }
        if lines.len() > most {
            lines.truncate(most);
            if let Some(last) = lines.last_mut() {
                while display_width(last) + 1 >= width && last.trim_start().contains(' ') {
                    last.truncate(last.rfind(' ').unwrap_or(0));
                }
                *last = format!("{}…", last.trim_end_matches([',', ';', ':', ' ', '.']));
            }
        }
        for line in carry_spans(lines.iter().map(String::as_str)) {
            self.line(indent, &line);
        }
    }

    /// The clauses from its beginning that fit into so many lines.
    fn in_clauses(&self, most: usize, indent: usize, hang: usize, text: &str) -> Option<Vec<String>> {
        let ends = text.match_indices("; ").chain(text.match_indices(", in ")).map(|(end, _)| end);
        let fitting = ends.filter_map(|end| {
            let lines = self.wrapped(indent, hang, &format!("{}.", &text[..end]));
            (lines.len() <= most).then_some((end, lines))
        });
        fitting.max_by_key(|(end, _)| *end).map(|(_, lines)| lines)
    }

    /// Commands or code to paste: a line that is too wide is broken where a shell, or Python, reads on.
    pub(super) fn paste(&mut self, indent: usize, code: &str) {
        for line in pasteable(code, self.columns().saturating_sub(indent)) {
            let painted = self.style.paint(Ink::Code, &line);
            self.line(indent, &painted);
        }
    }

    /// Text in which every line stays as it is.
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

/// Code in lines of `width` columns, but for single words that are wider: broken at spaces outside of quotes, behind a
/// backslash, or as it is inside the brackets of a call.
pub(super) fn pasteable(code: &str, width: usize) -> Vec<String> {
    let mut out = Vec::new();
    for line in crate::format::clean_lines(code).trim_end().lines() {
        let indent = line.len() - line.trim_start().len();
        let deeper = " ".repeat(indent + 4);
        let mut rest = line.to_owned();
        if display_width(&rest) > width && !rest.trim_start().starts_with('#') {
            // A remark at its end stands before it instead.
            if let Some(remark) = remark(&rest) {
                let text = rest.split_off(remark);
                out.push(format!("{}{text}", " ".repeat(indent)));
                rest.truncate(rest.trim_end().len());
            }
        }
        let mut inside = Brackets::default();
        while display_width(&rest) > width {
            let Some((at, call)) = inside.break_in(&rest, width) else { break };
            let tail = rest.split_off(at);
            inside.read(&rest);
            out.push(if call { rest } else { format!("{rest} \\") });
            rest = format!("{deeper}{}", tail.trim_start());
        }
        out.push(rest);
    }
    out
}

/// Where the remark of a line begins, `#` behind a space and outside of quotes.
fn remark(line: &str) -> Option<usize> {
    let mut quotes = Brackets::default();
    line.char_indices().find_map(|(at, c)| {
        quotes.next(c);
        (c == '#' && quotes.quote.is_none() && at > 0 && line[..at].ends_with(' ')).then_some(at)
    })
}

/// Where a line of code stands: in which quotes, and in how many brackets of calls.
#[derive(Clone, Copy, Default)]
struct Brackets {
    quote: Option<char>,
    before: Option<char>,
    calls: usize,
}

impl Brackets {
    fn next(&mut self, c: char) {
        let escaped = self.before == Some('\\');
        match self.quote {
            Some(open) if c == open && !escaped => self.quote = None,
            None if matches!(c, '"' | '\'') && !escaped => self.quote = Some(c),
            None if c == '(' => {
                let of_call = self.before.is_some_and(|b| b.is_alphanumeric() || b == '_' || b == '(');
                self.calls += usize::from(of_call || self.calls > 0);
            }
            None if c == ')' => self.calls = self.calls.saturating_sub(1),
            _ => {}
        }
        self.before = Some(c);
    }

    fn read(&mut self, text: &str) {
        text.chars().for_each(|c| self.next(c));
    }

    /// The last space of the text at which it may be broken and still fit, else the first one behind that.
    fn break_in(mut self, text: &str, width: usize) -> Option<(usize, bool)> {
        let begins = text.len() - text.trim_start().len();
        let mut best = None;
        for (at, c) in text.char_indices() {
            let fits = display_width(&text[..at]) + if self.calls > 0 { 0 } else { 2 } <= width;
            if best.is_some() && !fits {
                break;
            }
            if c == ' ' && at > begins && self.quote.is_none() {
                best = Some((at, self.calls > 0));
            }
            self.next(c);
        }
        best.filter(|(at, _)| !text[*at..].trim().is_empty())
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
    fn code_is_broken_where_it_can_still_be_pasted() {
        let broken = |code: &str, width| pasteable(code, width).join("\n");
        let call = "DataLoader(dataset, num_workers=1, context=ullage.context(\"forkserver\"))";
        assert_eq!(
            broken(call, 40),
            "DataLoader(dataset, num_workers=1,\n    context=ullage.context(\"forkserver\"))"
        );
        assert_eq!(
            broken("ullage run --fix -- /a/long/path/to/python train.py", 40),
            "ullage run --fix -- \\\n    /a/long/path/to/python train.py"
        );
        assert_eq!(
            broken("python -c 'one two three four five six'", 20),
            "python -c \\\n    'one two three four five six'"
        );
        assert_eq!(
            broken("outputs.clear()  # a metric: metric.reset()", 30),
            "# a metric: metric.reset()\noutputs.clear()"
        );
        let path = "/a/very/long/path/that/does/not/fit/on/the/screen";
        assert_eq!(broken(path, 20), path);
        assert_eq!(broken("if x:\n    y = 1", 20), "if x:\n    y = 1");
    }

    #[test]
    fn prose_that_is_too_long_ends_behind_a_whole_word() {
        let mut screen = Screen::block(Style::plain(28), "Why");
        screen.section("Why", Ink::Strong);
        screen.prose_in(2, 0, 0, "one two three four five six seven eight nine ten eleven");
        assert_eq!(screen.finish(), "Why one two three four five\n    six seven eight nine…\n");
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
