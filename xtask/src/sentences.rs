//! Which sentences do people read on a screen: titles and pages of causes, the strings of the report, of the command and of the
//! rules, its help? They are written to one file, so that a change of voice is seen in review, and so that it can be measured.
//!
//! A string counts where it reads like prose: three words or more. Where `{}` stands, a value is filled in.

use crate::literals;
use crate::tree::File;
use regex::Regex;
use std::collections::BTreeMap;
use std::sync::LazyLock;

pub(crate) const PATH: &str = "docs/sentences.txt";
/// Where the strings are that reach a screen.
const SCREENS: [&str; 3] = ["crates/observe/", "crates/present/", "crates/run/"];
/// Its doc comments are the help.
const HELP: &str = "crates/run/cli/src/arguments.rs";
const CAUSES: &str = "crates/observe/diagnosis/causes/";
/// Repeats their titles.
const REGISTRY: &str = "crates/observe/diagnosis/src/causes/mod.rs";
/// Words of a sentence that is long.
const LONG: usize = 20;
/// Words of a string that is prose.
const PROSE: usize = 3;

/// The texts of one file.
pub(crate) struct Texts<'a> {
    pub(crate) path: &'a str,
    pub(crate) texts: Vec<String>,
}

/// All texts, by file.
pub(crate) fn all(files: &[File]) -> Vec<Texts<'_>> {
    let texts = |file: &File| -> Vec<String> {
        let path = file.path.as_str();
        let test = path.contains("/tests/") || path.ends_with("/tests.rs") || path.ends_with("/build.rs");
        if !SCREENS.iter().any(|folder| path.starts_with(folder)) || test || path == REGISTRY {
            Vec::new()
        } else if path.starts_with(CAUSES) && path.ends_with("/page.md") {
            prose(&file.text)
        } else if path.starts_with(CAUSES) && path.ends_with("/cause.yaml") {
            yaml(&file.text)
        } else if path.ends_with(".rs") && !path.contains("/examples/") {
            let help = if path == HELP { help(&file.text) } else { Vec::new() };
            help.into_iter()
                .chain(literals::rust(&file.text).into_iter().filter(|text| is_prose(text)))
                .collect()
        } else {
            Vec::new()
        }
    };
    let all = files.iter().map(|file| Texts { path: &file.path, texts: texts(file) });
    all.filter(|found| !found.texts.is_empty()).collect()
}

/// The file of all sentences.
pub(crate) fn file(all: &[Texts<'_>]) -> String {
    let mut text =
        "Every sentence that reaches a screen. Written by `cargo run -p xtask -- sentences`; do not edit.\n"
            .to_owned();
    for found in all {
        text.push_str(&format!("\n{}\n", found.path));
        found.texts.iter().for_each(|one| text.push_str(&format!("  {one}\n")));
    }
    text
}

/// How the sentences read.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Readability {
    pub(crate) sentences: usize,
    words: usize,
    long: usize,
}

impl std::fmt::Display for Readability {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let n = self.sentences.max(1) as f64;
        let (mean, long) = (self.words as f64 / n, 100.0 * self.long as f64 / n);
        write!(out, "{} sentences, {mean:.1} words each, {long:.1} % with more than {LONG}", self.sentences)
    }
}

/// Of each kind of text, and of all.
pub(crate) fn readability(all: &[Texts<'_>]) -> BTreeMap<&'static str, Readability> {
    let mut of: BTreeMap<&str, Readability> = BTreeMap::new();
    for found in all {
        let kind = match found.path {
            path if path.ends_with("page.md") => "pages of causes",
            path if path.ends_with(".yaml") => "titles of causes",
            path if path.starts_with("crates/run/cli") => "command line",
            path if path.starts_with("crates/present") => "report",
            path if path.contains("/causes/") => "evidence and remedies",
            _ => "other strings",
        };
        for sentence in found.texts.iter().flat_map(|text| split(text)) {
            let words =
                sentence.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count();
            for kind in [kind, "all"] {
                let of = of.entry(kind).or_default();
                of.sentences += 1;
                of.words += words;
                of.long += usize::from(words > LONG);
            }
        }
    }
    of
}

fn split(text: &str) -> Vec<&str> {
    static END: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"[.!?]['\x22)`]*\s+").ok());
    let Some(end) = END.as_ref() else { return vec![text] };
    end.split(text).filter(|part| part.split_whitespace().count() >= PROSE).collect()
}

fn is_prose(text: &str) -> bool {
    let words = text.split_whitespace().filter(|word| {
        let word = word.trim_matches(|c: char| ",.;:!?()'\"`".contains(c));
        !word.is_empty() && word.chars().all(|c| c.is_alphabetic() || "'-’".contains(c))
    });
    // A regular expression, a table of columns or a line of SQL is none.
    let signs = text.chars().filter(|c| "\\|^$[]<>=#".contains(*c)).count();
    words.count() >= PROSE && signs * 12 <= text.len()
}

/// Paragraphs and items of a page in Markdown, without code blocks, headings and references.
pub(crate) fn prose(markdown: &str) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    let (mut fenced, mut references, mut open) = (false, false, false);
    for line in markdown.lines() {
        let trimmed = line.trim();
        if trimmed.starts_with("```") {
            fenced = !fenced;
            open = false;
        } else if let Some(heading) = line.strip_prefix('#') {
            references = heading.trim_start_matches('#').trim() == "References";
            open = false;
            let heading = heading.trim_start_matches('#').trim();
            if heading.contains(' ') {
                texts.push(heading.to_owned());
            }
        } else if fenced || references || trimmed.is_empty() || line.starts_with("    ") {
            open = false;
        } else {
            static ITEM: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^(?:[-*]|\d+\.)\s+").ok());
            let item = ITEM.as_ref().and_then(|item| item.find(trimmed)).map_or(0, |found| found.end());
            let row = trimmed.starts_with('|');
            if item > 0 || row || !open {
                texts.push(trimmed[item..].to_owned());
            } else if let Some(last) = texts.last_mut() {
                last.push(' ');
                last.push_str(trimmed);
            }
            open = !row;
        }
    }
    texts
}

/// Title and hints of a cause.
fn yaml(text: &str) -> Vec<String> {
    let value = |line: &str| {
        let line = line.trim_start_matches("- ").trim();
        let value = line.strip_prefix("title:").or_else(|| line.strip_prefix("hint:"))?;
        Some(value.trim().trim_matches('\'').replace("''", "'"))
    };
    text.lines().filter_map(|line| value(line.trim())).collect()
}

/// The doc comments of what may be typed.
fn help(text: &str) -> Vec<String> {
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("/// "));
    lines.filter(|line| !line.starts_with('`')).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.into(), text: text.into() }
    }

    #[test]
    fn titles_pages_and_strings_are_texts() {
        let files = [
            file("crates/observe/diagnosis/causes/a/cause.yaml", "title: 'It''s: full'\nhint: look there\n"),
            file("crates/observe/diagnosis/causes/a/page.md", "# a\n\n## What it does\nOne\nline.\n- an item\n```\ncode\n```\n## References\n- x y z\n"),
            file("crates/run/cli/src/x.rs", "fn f() { say(\"The job goes on.\"); let x = \"no\"; }\n#[cfg(test)]\nfn g() { say(\"not for people at all\") }\n"),
            file("crates/run/cli/tests/x.rs", "fn f() { say(\"The job goes on.\"); }"),
            file(HELP, "/// Run the job\nstruct X;\n"),
        ];
        let all = all(&files);
        let texts: Vec<&[String]> = all.iter().map(|found| found.texts.as_slice()).collect();
        assert_eq!(texts[0], ["It's: full", "look there"]);
        assert_eq!(texts[1], ["What it does", "One line.", "an item"]);
        assert_eq!(texts[2], ["The job goes on."]);
        assert_eq!(texts[3], ["Run the job"]);
        assert_eq!(texts.len(), 4);
        assert!(super::file(&all).contains("\ncrates/run/cli/src/x.rs\n  The job goes on.\n"));
    }

    #[test]
    fn sentences_are_counted_by_their_words() {
        let long = "word ".repeat(21);
        let texts = vec![format!("One two three. Four five six seven! {long}")];
        let of = readability(&[Texts { path: "crates/run/cli/src/x.rs", texts }]);
        assert_eq!(of["command line"], Readability { sentences: 3, words: 28, long: 1 });
        assert_eq!(of["all"].to_string(), "3 sentences, 9.3 words each, 33.3 % with more than 20");
    }
}
