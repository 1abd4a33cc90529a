//! Which causes are there, for a screen: families under headings, ids in one column and titles beside them.

use super::style::{Ink, Style};
use textwrap::{fill, Options, WordSplitter};

/// One family of causes.
#[derive(Clone, Debug)]
pub struct CauseFamily<'a> {
    /// Its heading.
    pub heading: &'a str,
    /// Name and title of each cause.
    pub causes: Vec<(String, &'a str)>,
}

/// Columns of the longest names, and what stands before and behind them.
const NAMES: usize = 37;

/// The list; ends with a newline.
pub fn causes(families: &[CauseFamily<'_>], style: &Style) -> String {
    let beside = " ".repeat(NAMES);
    let mut out = String::new();
    for family in families {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&style.paint(Ink::Strong, family.heading));
        out.push('\n');
        for (name, title) in &family.causes {
            let names = format!("  {name:width$}", width = NAMES - 2);
            let wrapped = Options::new(style.width.max(NAMES + 20))
                .initial_indent(&names)
                .subsequent_indent(&beside)
                .word_splitter(WordSplitter::NoHyphenation)
                .break_words(false);
            out.push_str(&fill(title, wrapped));
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_stand_beside_names_and_never_leave_the_screen() {
        let causes = vec![
            ("shm-full-bytes".into(), "/dev/shm is full"),
            ("swap-thrash *".into(), "The job needs more memory than the machine has, and swaps"),
        ];
        let family = CauseFamily { heading: "Memory ran out", causes };
        let text = super::causes(&[family.clone(), family], &Style::plain(80));
        let once = "Memory ran out\n\
            \x20 shm-full-bytes                     /dev/shm is full\n\
            \x20 swap-thrash *                      The job needs more memory than the machine\n\
            \x20                                    has, and swaps\n";
        assert_eq!(text, format!("{once}\n{once}"));
        assert!(text.lines().all(|line| line.len() <= 80));
    }
}
