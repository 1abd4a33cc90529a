//! A cause's manual page on a screen. The pages are written in a little Markdown: headings, lists, fenced or
//! indented code, paragraphs, `code` and **bold**; anything else is shown as it stands.

use super::layout::Screen;
use super::style::{Ink, Style};
use crate::format;

/// A page in Markdown, laid out for a screen; ends with a newline.
pub fn page(markdown: &str, style: &Style) -> String {
    let mut screen = Screen::page(*style);
    let mut out =
        Writer { screen: &mut screen, style: *style, paragraph: String::new(), hang: 0, blank: false };
    let mut fenced = false;
    for line in format::clean_lines(markdown).lines() {
        let trimmed = line.trim();
        if trimmed.starts_with("```") {
            out.flush();
            fenced = !fenced;
        } else if fenced || (line.starts_with("    ") && out.paragraph.is_empty()) {
            out.gap();
            out.screen.code(2, if fenced { line } else { trimmed });
        } else if trimmed.is_empty() {
            out.flush();
            out.blank = true;
        } else if let Some(heading) = trimmed.strip_prefix('#') {
            out.flush();
            out.gap();
            let heading = heading.trim_start_matches('#').trim();
            let painted = out.style.paint(Ink::Strong, heading);
            out.screen.prose(0, 0, &painted);
        } else if let Some(item) = trimmed.strip_prefix("- ").or_else(|| trimmed.strip_prefix("* ")) {
            out.flush();
            out.hang = 2;
            out.paragraph = format!("- {item}");
        } else if let Some(number) = numbered(trimmed) {
            out.flush();
            out.hang = number;
            out.paragraph = trimmed.to_owned();
        } else {
            if !out.paragraph.is_empty() {
                out.paragraph.push(' ');
            }
            out.paragraph.push_str(trimmed);
        }
    }
    out.flush();
    screen.finish()
}

/// Columns of the number that begins an item, with its dot and space.
fn numbered(line: &str) -> Option<usize> {
    let (number, _) = line.split_once(". ")?;
    (!number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())).then_some(number.len() + 2)
}

struct Writer<'a> {
    screen: &'a mut Screen,
    style: Style,
    paragraph: String,
    hang: usize,
    blank: bool,
}

impl Writer<'_> {
    fn gap(&mut self) {
        if std::mem::take(&mut self.blank) {
            self.screen.line(0, "");
        }
    }

    fn flush(&mut self) {
        if self.paragraph.is_empty() {
            return;
        }
        self.gap();
        let text = std::mem::take(&mut self.paragraph);
        let inked = ink(self.style, &text);
        self.screen.prose(0, std::mem::take(&mut self.hang), &inked);
    }
}

/// Bold and code take their colours; without colours the marks of code stay, those of bold go.
fn ink(style: Style, text: &str) -> String {
    let mut out = String::new();
    for (i, part) in text.split('`').enumerate() {
        if i % 2 == 0 {
            for (j, plain) in part.split("**").enumerate() {
                out.push_str(&style.paint(if j % 2 == 0 { Ink::Plain } else { Ink::Strong }, plain));
            }
        } else if style.color {
            out.push_str(&style.paint(Ink::Code, part));
        } else {
            out.push_str(&format!("`{part}`"));
        }
    }
    if text.matches('`').count() % 2 == 1 {
        return text.to_owned();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# The title\n\nFirst line,\nsecond `line` of **one** paragraph.\n\n\
        ## What to do\n- one\n- two, which is a long item that needs another line to be told\n\n```sh\nsysctl  -w  x\n```\n";

    #[test]
    fn a_page_is_headings_paragraphs_lists_and_code() {
        let text = page(PAGE, &Style::plain(50));
        assert_eq!(
            text,
            "The title\n\nFirst line, second `line` of one paragraph.\n\nWhat to do\n- one\n\
             - two, which is a long item that needs another\n  line to be told\n\n  sysctl  -w  x\n"
        );
    }

    #[test]
    fn the_items_of_a_numbered_list_stand_apart() {
        let text = page("Do:\n1. `one` of\n   two lines\n2. another\n", &Style::plain(80));
        assert_eq!(text, "Do:\n1. `one` of two lines\n2. another\n");
    }

    #[test]
    fn an_odd_backtick_is_left_alone() {
        assert_eq!(page("a ` b", &Style::plain(80)), "a ` b\n");
    }
}
