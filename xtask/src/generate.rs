//! What is written from other files: the registry of rules from the files in `causes/`, and the page of causes from the
//! catalogue. Everything behind the mark is written anew; the order is the catalogue's.

use crate::tree::{read, File};
use regex::Regex;
use std::path::Path;

const MARK: &str = "Written by `cargo run -p xtask -- generate`";
const RULES: &str = "crates/observe/diagnosis/src/causes/";
const CATALOGUE: &str = "crates/observe/diagnosis/catalogue/causes.yaml";
const PAGE: &str = "docs/reference/causes.md";

/// A file as it should be.
pub(crate) struct Written {
    pub(crate) path: String,
    pub(crate) text: String,
    /// As it is.
    before: String,
}

impl Written {
    pub(crate) fn is_stale(&self) -> bool {
        self.text != self.before
    }
}

/// Every file with a part that is written, and how many causes it was written from.
pub(crate) fn all(root: &Path, files: &[File]) -> Result<(usize, Vec<Written>), String> {
    let catalogue = entries(&read(&root.join(CATALOGUE))?)?;
    let has_rule = |id: &str| {
        let path = format!("{RULES}{}.rs", id.replace('-', "_"));
        files.iter().any(|file| file.path == path)
    };
    let ids: Vec<&Entry> = catalogue.iter().filter(|entry| has_rule(&entry.id)).collect();
    let rules =
        files.iter().filter_map(|file| file.path.strip_prefix(RULES)).filter(|path| *path != "mod.rs");
    let known = |path: &&str| ids.iter().any(|entry| **path == format!("{}.rs", entry.id.replace('-', "_")));
    if let Some(unknown) = rules.into_iter().find(|path| !known(path)) {
        return Err(format!("{RULES}{unknown} is no cause of {CATALOGUE}"));
    }
    let written = |path: &str, part: String| -> Result<Written, String> {
        let before = read(&root.join(path))?;
        Ok(Written { path: path.to_owned(), text: behind_mark(path, &before, &part)?, before })
    };
    let registry = written(&format!("{RULES}mod.rs"), registry(&ids))?;
    Ok((ids.len(), vec![registry, written(PAGE, page(&ids)?)?]))
}

struct Entry {
    id: String,
    happened: Option<String>,
}

fn entries(yaml: &str) -> Result<Vec<Entry>, String> {
    let pattern = r"(?m)^- id: (\S+)\n  title: [^\n]*(?:\n    [^\n]*)*(?:\n  happened: ([^\n]*))?";
    let entry = Regex::new(pattern).map_err(|error| error.to_string())?;
    let found: Vec<Entry> = entry
        .captures_iter(yaml)
        .map(|found| Entry {
            id: found[1].to_owned(),
            happened: found.get(2).map(|text| plain(text.as_str())),
        })
        .collect();
    match found.len() == yaml.matches("- id: ").count() {
        true => Ok(found),
        false => Err(format!("{CATALOGUE}: an entry begins with id and title")),
    }
}

/// A YAML scalar of one line.
fn plain(scalar: &str) -> String {
    match scalar.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        Some(quoted) => quoted.replace("''", "'"),
        None => scalar.to_owned(),
    }
}

fn registry(rules: &[&Entry]) -> String {
    let mut modules: Vec<String> = rules.iter().map(|entry| entry.id.replace('-', "_")).collect();
    let all: String = modules.iter().map(|name| format!("    {name}::RULE,\n")).collect();
    modules.sort();
    let declared: String = modules.iter().map(|name| format!("mod {name};\n")).collect();
    format!("\n{declared}\nconst ALL: &[Rule] = &[\n{all}];\n")
}

fn page(rules: &[&Entry]) -> Result<String, String> {
    let mut page = "\n| id | what happened |\n|---|---|\n".to_owned();
    for entry in rules {
        let happened = entry.happened.as_deref();
        let happened =
            happened.ok_or_else(|| format!("{CATALOGUE}: {} has a rule, and no `happened`", entry.id))?;
        page.push_str(&format!("| `{}` | {happened} |\n", entry.id));
    }
    Ok(page)
}

fn behind_mark(path: &str, before: &str, part: &str) -> Result<String, String> {
    let at = before.find(MARK).ok_or_else(|| format!("{path}: no line says \"{MARK}\""))?;
    let end = before[at..].find('\n').map_or(before.len(), |end| at + end + 1);
    Ok(format!("{}{part}", &before[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const YAML: &str = "- id: b-c\n  title: of two\n    lines\n  happened: 'it''s `b`'\n- id: a\n  title: x\n  mechanism: y\n";

    #[test]
    fn entries_are_read_with_what_happened() {
        let found = entries(YAML).expect("entries");
        assert_eq!((found[0].id.as_str(), found[0].happened.as_deref()), ("b-c", Some("it's `b`")));
        assert_eq!((found[1].id.as_str(), found[1].happened.as_deref()), ("a", None));
        assert!(entries("- id: a\n  mechanism: y\n").is_err());
    }

    #[test]
    fn a_cause_without_its_line_is_an_error() {
        let found = entries(YAML).expect("entries");
        assert!(page(&[&found[0]]).is_ok_and(|page| page.ends_with("| `b-c` | it's `b` |\n")));
        assert!(page(&[&found[1]]).is_err_and(|error| error.contains("a has a rule")));
        assert!(registry(&[&found[0], &found[1]]).contains("mod a;\nmod b_c;\n"));
    }

    #[test]
    fn what_stands_behind_the_mark_is_replaced() {
        let before = format!("head\n// {MARK}.\nold\n");
        assert_eq!(behind_mark("x", &before, "new\n"), Ok(format!("head\n// {MARK}.\nnew\n")));
        assert!(behind_mark("x", "head\n", "new\n").is_err());
    }
}
