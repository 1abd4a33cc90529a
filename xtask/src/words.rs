//! Does a page or a screen use a word that the style avoids (`words.tsv`), and do names in the code use fewer of the old ones?
//!
//! Pages have none. Texts of screens and names are counted by folder, in `words-left.tsv`: a count there may only fall.

use crate::literals;
use crate::sentences::{self, Texts};
use crate::tree::File;
use regex::{Regex, RegexBuilder};
use std::collections::BTreeMap;

const WORDS: &str = "xtask/words.tsv";
const ALLOWED: &str = "xtask/words-allowed.tsv";
pub(crate) const LEFT: &str = "xtask/words-left.tsv";
const HEAD: &str = "# Words of words.tsv that are left, by folder. A count may only fall; `cargo run -p xtask -- generate` lowers it.\n";

struct Words {
    texts: Vec<(Regex, String)>,
    names: Vec<String>,
    /// File or folder, and a text that holds the word; empty where all of it is allowed.
    allowed: Vec<(String, String)>,
}

/// By folder, kind and word: how often.
pub(crate) type Counts = BTreeMap<(String, &'static str, String), usize>;

/// What was found: in pages each with its place, elsewhere how often.
pub(crate) struct Found {
    pub(crate) files: usize,
    pub(crate) pages: Vec<String>,
    pub(crate) left: Counts,
}

fn text_of<'f>(files: &'f [File], path: &str) -> Result<&'f str, String> {
    let file = files.iter().find(|file| file.path == path);
    file.map(|file| file.text.as_str()).ok_or_else(|| format!("there is no {path}"))
}

fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| line.split('\t').collect())
}

fn words(files: &[File]) -> Result<Words, String> {
    let mut words = Words { texts: Vec::new(), names: Vec::new(), allowed: Vec::new() };
    for row in rows(text_of(files, WORDS)?) {
        match row.as_slice() {
            ["text", pattern, better] => {
                let regex = RegexBuilder::new(pattern).case_insensitive(true).build();
                words.texts.push((regex.map_err(|error| format!("{WORDS}: {error}"))?, (*better).to_owned()));
            }
            ["name", name, _] => words.names.push((*name).to_owned()),
            _ => return Err(format!("{WORDS}: kind, word and better word, with tabs between: {row:?}")),
        }
    }
    for row in rows(text_of(files, ALLOWED)?) {
        match row.as_slice() {
            [place, text, reason] if !reason.is_empty() => {
                words.allowed.push(((*place).to_owned(), (*text).to_owned()));
            }
            _ => return Err(format!("{ALLOWED}: place, text and reason, with tabs between: {row:?}")),
        }
    }
    Ok(words)
}

impl Words {
    /// The avoided words of a text, each with the better one.
    fn in_text<'t>(&self, path: &str, text: &'t str) -> Vec<(&'t str, &str)> {
        let free = |found: &str| {
            self.allowed.iter().any(|(place, around)| {
                path.starts_with(place.as_str())
                    && (around.is_empty() || (text.contains(around.as_str()) && around.contains(found)))
            })
        };
        let mut found: Vec<(std::ops::Range<usize>, &str)> = Vec::new();
        for (regex, better) in &self.texts {
            for hit in regex.find_iter(text) {
                let known = found.iter().any(|(range, _)| range.start < hit.end() && hit.start() < range.end);
                if !known && !free(hit.as_str()) {
                    found.push((hit.range(), better));
                }
            }
        }
        found.into_iter().map(|(range, better)| (&text[range], better)).collect()
    }
}

/// Counts them.
pub(crate) fn find(files: &[File]) -> Result<Found, String> {
    let words = words(files)?;
    let mut found = Found { files: 0, pages: Vec::new(), left: Counts::new() };
    for file in files.iter().filter(|file| is_page(&file.path)) {
        found.files += 1;
        let mut fenced = false;
        for (number, line) in file.text.lines().enumerate() {
            fenced ^= line.trim_start().starts_with("```");
            if fenced {
                continue;
            }
            for (word, better) in words.in_text(&file.path, line) {
                found.pages.push(format!("{}:{}: \"{word}\": better {better}", file.path, number + 1));
            }
        }
    }
    for Texts { path, texts } in sentences::all(files).iter().filter(|texts| texts.path.ends_with(".rs")) {
        found.files += 1;
        for (word, _) in texts.iter().flat_map(|text| words.in_text(path, text)) {
            *found.left.entry((folder(path), "text", word.to_lowercase())).or_default() += 1;
        }
    }
    let named = Regex::new(r"[A-Za-z_][A-Za-z0-9_]*").map_err(|error| error.to_string())?;
    for file in files.iter().filter(|file| file.path.ends_with(".rs")) {
        found.files += 1;
        let code = literals::code(&file.text);
        for part in named.find_iter(&code).flat_map(|name| parts(name.as_str())) {
            if words.names.contains(&part) {
                *found.left.entry((folder(&file.path), "name", part)).or_default() += 1;
            }
        }
    }
    Ok(found)
}

/// The words of a name: `kept_bytes`, `KeptBytes`.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut lower = false;
    for c in name.chars() {
        if c == '_' || (c.is_uppercase() && lower) {
            parts.push(String::new());
        }
        lower = c.is_lowercase();
        if let (true, Some(last)) = (c != '_', parts.last_mut()) {
            last.extend(c.to_lowercase());
        }
    }
    parts
}

fn is_page(path: &str) -> bool {
    path.ends_with(".md")
        && (path == "README.md"
            || path.starts_with("docs/")
            || path.starts_with("crates/observe/diagnosis/causes/"))
        || path.starts_with("crates/observe/diagnosis/causes/") && path.ends_with("/cause.yaml")
}

/// The crate of a file; causes and their rules stand apart.
fn folder(path: &str) -> String {
    if path.starts_with("crates/observe/diagnosis/causes/") {
        return "crates/observe/diagnosis/causes".into();
    }
    let at = ["/src/", "/tests/", "/examples/", "/benches/"].iter().filter_map(|part| path.find(part)).min();
    path[..at.or(path.rfind('/')).unwrap_or(path.len())].to_owned()
}

/// The table as a text.
pub(crate) fn table(left: &Counts) -> String {
    let rows = left.iter().filter(|(_, count)| **count > 0);
    let rows: String =
        rows.map(|((place, kind, word), count)| format!("{place}\t{kind}\t{word}\t{count}\n")).collect();
    format!("{HEAD}{rows}")
}

fn read(text: &str) -> BTreeMap<(&str, &str, &str), usize> {
    let rows = rows(text).filter_map(|row| match row.as_slice() {
        [place, kind, word, count] => Some(((*place, *kind, *word), count.parse().ok()?)),
        _ => None,
    });
    rows.collect()
}

/// Where more are left than the table allows.
pub(crate) fn risen(left: &Counts, table: &str) -> Vec<String> {
    let allowed = read(table);
    let mut problems = Vec::new();
    for ((place, kind, word), count) in left {
        let most = allowed.get(&(place.as_str(), *kind, word.as_str())).copied().unwrap_or(0);
        if *count > most {
            problems.push(format!("{place}: \"{word}\" stands in {count} {kind}s, where {LEFT} allows {most}: {WORDS} has a better word"));
        }
    }
    problems
}

/// The lower of what is left and what the table allows.
pub(crate) fn lowered(left: &Counts, table: &str) -> Counts {
    let allowed = read(table);
    let of = |(place, kind, word): &(String, &'static str, String)| {
        allowed.get(&(place.as_str(), *kind, word.as_str())).copied().unwrap_or(0)
    };
    left.iter().map(|(key, count)| (key.clone(), (*count).min(of(key)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(pages: &[(&str, &str)]) -> Vec<File> {
        let fixed = [
            (WORDS, "# x\ntext\t\\bso many\\b\tN\ntext\t\\btold\\b\treported\nname\tkept\tretained\n"),
            (ALLOWED, "docs/decisions/\t\told records\ndocs/a.md\ttold you so\tit quotes\n"),
        ];
        fixed
            .iter()
            .chain(pages)
            .map(|(path, text)| File { path: (*path).into(), text: (*text).into() })
            .collect()
    }

    #[test]
    fn a_page_may_use_none_but_in_code_and_where_it_is_allowed() {
        let page = "So many are told.\n```\nso many\n```\nI told you so\n";
        let found = find(&files(&[("docs/a.md", page), ("docs/decisions/1.md", page), ("other.md", page)]))
            .expect("words");
        assert_eq!(
            found.pages,
            ["docs/a.md:1: \"So many\": better N", "docs/a.md:1: \"told\": better reported"]
        );
        assert_eq!(found.files, 2);
    }

    #[test]
    fn names_and_screens_are_counted_and_may_only_fall() {
        let source =
            "fn kept_bytes(x: KeptBytes) { say(\"it is told to people\"); let keptish = 1; } // kept";
        let found = find(&files(&[("crates/run/x/src/a.rs", source)])).expect("words");
        let table = table(&found.left);
        assert_eq!(table, format!("{HEAD}crates/run/x\tname\tkept\t2\ncrates/run/x\ttext\ttold\t1\n"));
        assert!(risen(&found.left, &table).is_empty());
        let fewer = table.replace("kept\t2", "kept\t1");
        assert_eq!(risen(&found.left, &fewer).len(), 1);
        assert_eq!(super::table(&lowered(&found.left, &fewer)), fewer);
        let more = table.replace("kept\t2", "kept\t7");
        assert!(risen(&found.left, &more).is_empty());
        assert_eq!(super::table(&lowered(&found.left, &more)), table);
        assert_eq!(risen(&found.left, "").len(), 2);
    }

    #[test]
    fn a_list_that_cannot_be_read_is_an_error() {
        let of = |words: &str, allowed: &str| {
            find(&[
                File { path: WORDS.into(), text: words.into() },
                File { path: ALLOWED.into(), text: allowed.into() },
            ])
        };
        assert!(of("text\ta\tb\n", "").is_ok());
        assert!(of("text\t(\tb\n", "").is_err() && of("a\n", "").is_err() && of("", "docs\tx\t\n").is_err());
        assert!(find(&[]).is_err());
    }
}
