//! What does a fact look like that comes from a file? A number where it is one, else text; and why it is missing.

use crate::KernelRoot;
use ullage_model::{Fact, Facts, Measured};

/// Facts as they come in.
pub(crate) struct Collector<'a> {
    pub(crate) root: &'a KernelRoot,
    pub(crate) buffer: Vec<u8>,
    pub(super) facts: Facts,
}

impl Collector<'_> {
    pub(super) fn of(root: &KernelRoot) -> Collector<'_> {
        Collector { root, buffer: Vec::new(), facts: Facts::new() }
    }

    pub(crate) fn set(&mut self, name: impl Into<String>, fact: impl Into<Fact>) {
        self.facts.insert(name.into(), fact.into());
    }

    /// A file's whole text without blanks at its ends.
    pub(crate) fn text(&mut self, path: &str) -> Measured<String> {
        match self.root.read(path, &mut self.buffer) {
            Ok(()) => Measured::Known(String::from_utf8_lossy(&self.buffer).trim().to_owned()),
            Err(error) => Measured::Missing(error.missing_feature()),
        }
    }

    /// The same under a name; a number where it is one.
    pub(crate) fn file(&mut self, name: impl Into<String>, path: &str) {
        let text = self.text(path);
        self.set(name, text.map(number_or_text));
    }
}

fn number_or_text(text: String) -> Fact {
    match text.parse::<u64>() {
        Ok(number) => number.into(),
        // A line of several numbers (kernel.sem) is told with single blanks.
        Err(_) => text.split_whitespace().collect::<Vec<_>>().join(" ").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_numbers_is_one_text() {
        assert_eq!(
            number_or_text("32000\t1024000000\t500\t32000".into()),
            "32000 1024000000 500 32000".into()
        );
        assert_eq!(number_or_text("60".into()), Fact::Number(60));
    }
}
