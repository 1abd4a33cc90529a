//! Which rules does ARCHITECTURE.md state? Its tables of allowed dependencies and of the order of modules, and its lists of
//! files that may hold unsafe code or a lock, may be long, or may name a machine's paths. Only these headings are read.

use std::collections::BTreeMap;

const DEPENDENCIES: &str = "## Allowed dependencies";
const LAYERS: &str = "## Order of modules";
const CIRCLES: &str = "## Circles that are left";
const UNSAFE: &str = "## Where unsafe may stand";
const LOCKS: &str = "## Where a lock may stand";
const LONG: &str = "## Files that may be long";
const PATHS: &str = "## Files that may name a machine's paths";

/// The rules.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    /// By folder of the crate (`crates/observe/model`): the crates it may depend on.
    pub(crate) allowed: BTreeMap<String, Vec<String>>,
    /// By folder of the crate: its modules, lowest first.
    pub(crate) layers: BTreeMap<String, Vec<String>>,
    /// Folders with a circle that is larger than others may be, and how many files it has.
    pub(crate) circles: BTreeMap<String, usize>,
    /// Files with unsafe code; their crate does not forbid it.
    pub(crate) unsafe_files: Vec<String>,
    /// Files with a lock, of what runs inside the job.
    pub(crate) locks: Vec<String>,
    /// Folders (ending in `/`) and files that may have more than [`Rules::MAX_LINES`] lines.
    pub(crate) long: Vec<String>,
    /// Folders and files that may hold paths of a machine, because they were captured on one.
    pub(crate) paths: Vec<String>,
}

impl Rules {
    /// Lines after which a source file is split.
    pub(crate) const MAX_LINES: usize = 600;

    pub(crate) fn parse(text: &str) -> Result<Rules, String> {
        Ok(Rules {
            allowed: table(text, DEPENDENCIES)?,
            layers: table(text, LAYERS)?,
            circles: circles(section(text, CIRCLES)?)?,
            unsafe_files: list(section(text, UNSAFE)?),
            locks: list(section(text, LOCKS)?),
            long: list(section(text, LONG)?),
            paths: list(section(text, PATHS)?),
        })
    }

    /// Does `path` stand in a list of files and folders?
    pub(crate) fn listed(list: &[String], path: &str) -> bool {
        list.iter().any(|entry| path == entry || (entry.ends_with('/') && path.starts_with(entry)))
    }
}

/// The text from a heading to the next one of its level.
fn section<'a>(text: &'a str, heading: &str) -> Result<&'a str, String> {
    let (_, rest) = text
        .split_once(&format!("\n{heading}\n"))
        .ok_or_else(|| format!("ARCHITECTURE.md: there is no \"{heading}\""))?;
    Ok(rest.split("\n## ").next().unwrap_or(rest))
}

/// The table under a heading: by the word of each row's first cell, those of its second.
fn table(text: &str, heading: &str) -> Result<BTreeMap<String, Vec<String>>, String> {
    let mut rows = BTreeMap::new();
    for line in section(text, heading)?.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').collect();
        let [folder, words, ..] = cells.as_slice() else {
            return Err(format!("ARCHITECTURE.md: a row needs two cells at least: {line}"));
        };
        let folder = quoted(folder).pop().ok_or_else(|| format!("ARCHITECTURE.md: no folder in: {line}"))?;
        if rows.insert(folder.clone(), quoted(words)).is_some() {
            return Err(format!("ARCHITECTURE.md: {folder} stands in a table twice"));
        }
    }
    match rows.is_empty() {
        true => Err(format!("ARCHITECTURE.md: no rows under \"{heading}\"")),
        false => Ok(rows),
    }
}

/// Folder and number of each list item.
fn circles(section: &str) -> Result<BTreeMap<String, usize>, String> {
    let items = section.lines().filter(|line| line.starts_with("- `"));
    items
        .map(|line| {
            let words = quoted(line);
            let number = words.get(1).and_then(|number| number.parse().ok());
            let both = words.first().cloned().zip(number);
            both.ok_or_else(|| format!("ARCHITECTURE.md: no folder and number in: {line}"))
        })
        .collect()
}

/// The first `quoted` word of each list item.
fn list(section: &str) -> Vec<String> {
    section
        .lines()
        .filter(|line| line.starts_with("- `"))
        .filter_map(|line| quoted(line).into_iter().next())
        .collect()
}

/// Every word between backticks.
fn quoted(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const TEXT: &str = "# A\n\n## Allowed dependencies\n\n| room | may use | absent |\n|---|---|---|\n\
        | `crates/a` | `serde` | I/O |\n| `crates/b` | `ullage-a`, `rustix` | |\n\n## Order of modules\n\n| crate | lowest first |\n|---|---|\n| `crates/a` | `low`, `high` |\n\n## Circles that are left\n\n- `crates/b/`: `4`\n\n## Where unsafe may stand\n\n\
        - `crates/b/src/spawn.rs`: pre_exec\n\n## Where a lock may stand\n\n- `crates/b/src/heap.rs`: its own\n\n## Files that may be long\n\n- `crates/a/tests/`\n\n\
        ## Files that may name a machine's paths\n\n- `fixtures/`\n\n## Else\n- `x`\n";

    #[test]
    fn rules_are_read_from_the_page() {
        let rules = Rules::parse(TEXT).expect("rules");
        assert_eq!(rules.allowed["crates/b"], ["ullage-a", "rustix"]);
        assert_eq!(rules.layers["crates/a"], ["low", "high"]);
        assert_eq!(rules.circles["crates/b/"], 4);
        assert_eq!(rules.unsafe_files, ["crates/b/src/spawn.rs"]);
        assert_eq!(rules.locks, ["crates/b/src/heap.rs"]);
        assert_eq!(rules.long, ["crates/a/tests/"]);
        assert_eq!(rules.paths, ["fixtures/"]);
        assert!(Rules::listed(&rules.long, "crates/a/tests/x.rs"));
        assert!(!Rules::listed(&rules.unsafe_files, "crates/b/src/spawn.rs2"));
    }

    #[test]
    fn a_page_without_its_tables_is_an_error() {
        assert!(Rules::parse("# A\n").is_err());
        assert!(Rules::parse(&TEXT.replace("| `crates", "| crates")).is_err());
        assert!(Rules::parse(&TEXT.replace("`crates/b` |", "`crates/a` |")).is_err());
        assert!(Rules::parse(&TEXT.replace("## Files that may be long", "## Other")).is_err());
    }
}
