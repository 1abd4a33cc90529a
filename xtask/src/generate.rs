//! What is written from the folders of causes: their registry, the page that lists them, and what `ullage compare` knows of
//! them. Everything behind the mark is written anew.
//!
//! Of a cause.yaml only keys of one line are read, as lines; the tests of the crate read it as YAML and compare.

use crate::tree::{read, File};
use regex::Regex;
use std::collections::BTreeMap;
use std::path::Path;

const MARK: &str = "Written by `cargo run -p xtask -- generate`";
const CAUSES: &str = "crates/observe/diagnosis/causes/";
const FAMILIES: &str = "crates/observe/diagnosis/families.txt";
const REGISTRY: &str = "crates/observe/diagnosis/src/causes/mod.rs";
const COMPARED: &str = "crates/observe/comparison/src/table/causes.rs";
const PAGE: &str = "docs/reference/causes.md";

/// A file as it should be.
pub(crate) struct Written {
    pub(crate) path: String,
    pub(crate) text: String,
    /// As it is.
    before: String,
}

impl Written {
    /// A file that is written as a whole.
    pub(crate) fn whole(path: &str, text: String, before: &str) -> Written {
        Written { path: path.to_owned(), text, before: before.to_owned() }
    }

    pub(crate) fn is_stale(&self) -> bool {
        self.text != self.before
    }
}

/// Every file with a part that is written, and how many causes it was written from.
pub(crate) fn all(root: &Path, files: &[File]) -> Result<(usize, Vec<Written>), String> {
    let causes = causes(files)?;
    let families_text = read(&root.join(FAMILIES))?;
    let families = families(&families_text);
    let written = |path: &str, part: String| -> Result<Written, String> {
        let before = read(&root.join(path))?;
        Ok(Written { path: path.to_owned(), text: behind_mark(path, &before, &part)?, before })
    };
    let registry = written(REGISTRY, registry(&causes, &families)?)?;
    let compared = written(COMPARED, compared(&causes, files)?)?;
    Ok((causes.len(), vec![registry, compared, written(PAGE, page(&causes, &families))?]))
}

struct Cause {
    id: String,
    title: String,
    /// A name of families.txt.
    family: String,
    group: Option<String>,
    /// Names of causes or of groups.
    explains: Vec<String>,
    /// Facts of a machine, a difference in which can bring it about.
    facts: Vec<String>,
    /// Figures that it is about.
    figures: Vec<String>,
    has_rule: bool,
}

/// Every folder, in the order of lists: by place, those without one behind, then by id.
fn causes(files: &[File]) -> Result<Vec<Cause>, String> {
    let mut folders: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
    for file in files {
        if let Some((id, name)) = file.path.strip_prefix(CAUSES).and_then(|below| below.split_once('/')) {
            folders.entry(id).or_default().insert(name, &file.text);
        }
    }
    let mut found = Vec::new();
    for (id, files) in folders {
        let text = |name: &str| files.get(name).ok_or_else(|| format!("{CAUSES}{id} has no {name}"));
        text("page.md")?;
        let key = |key: &str| {
            value(text("cause.yaml")?, key).map_err(|error| format!("{CAUSES}{id}/cause.yaml: {error}"))
        };
        let list = |name: &str| -> Result<Vec<String>, String> {
            let value = key(name)?.unwrap_or_default();
            let names = value.trim_matches(['[', ']']).split(',').map(|name| name.trim().to_owned());
            Ok(names.filter(|name| !name.is_empty()).collect())
        };
        let place = key("place")?.and_then(|place| place.parse().ok()).unwrap_or(u32::MAX);
        let cause = Cause {
            id: id.to_owned(),
            title: key("title")?.ok_or_else(|| format!("{CAUSES}{id}/cause.yaml has no title"))?,
            family: key("family")?.ok_or_else(|| format!("{CAUSES}{id}/cause.yaml has no family"))?,
            group: key("group")?,
            explains: list("explains")?,
            facts: list("facts")?,
            figures: list("figures")?,
            has_rule: files.contains_key("rule.rs"),
        };
        found.push((place, cause));
    }
    found.sort_by(|a, b| (a.0, &a.1.id).cmp(&(b.0, &b.1.id)));
    Ok(found.into_iter().map(|(_, cause)| cause).collect())
}

/// The value of a key, which has one line.
fn value(yaml: &str, key: &str) -> Result<Option<String>, String> {
    let line = Regex::new(&format!("(?m)^{key}:(.*)$")).map_err(|error| error.to_string())?;
    let Some(scalar) = line.captures(yaml).map(|found| found[1].trim().to_owned()) else { return Ok(None) };
    let quoted = scalar.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    let value = match quoted {
        Some(quoted) => quoted.replace("''", "'"),
        None => scalar.split(" #").next().unwrap_or_default().trim().to_owned(),
    };
    match value.as_str() {
        "" | "|" | ">" => Err(format!("{key} has one line, and begins on that of its key")),
        _ => Ok(Some(value)),
    }
}

/// Name and heading of each line, in the order of lists.
fn families(text: &str) -> Vec<(&str, &str)> {
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(name, heading)| (name, heading.trim()))
        .collect()
}

fn registry(causes: &[Cause], families: &[(&str, &str)]) -> Result<String, String> {
    let module = |cause: &Cause| cause.id.replace('-', "_");
    let mut rules: Vec<&Cause> = causes.iter().filter(|cause| cause.has_rule).collect();
    rules.sort_by_key(|cause| module(cause));
    let path = |cause: &Cause| format!("../../causes/{}/rule.rs", cause.id);
    let modules: String =
        rules.iter().map(|cause| format!("#[path = {:?}]\nmod {};\n", path(cause), module(cause))).collect();
    let mut rows = String::new();
    for cause in causes {
        let explained = explained(cause, causes)?;
        let rule = if cause.has_rule { format!("Some({}::RULE)", module(cause)) } else { "None".to_owned() };
        let (id, title, group) = (&cause.id, &cause.title, &cause.group);
        let family = families.iter().find(|(name, _)| *name == cause.family);
        let (_, family) =
            family.ok_or_else(|| format!("{CAUSES}{id}: {FAMILIES} has no {}", cause.family))?;
        rows.push_str(&format!("    {id:?}, {title:?}, {family:?}, {group:?}, {explained:?}, {rule};\n"));
    }
    let headings: String = families.iter().map(|(_, heading)| format!("    {heading:?},\n")).collect();
    let families = format!("#[rustfmt::skip]\nconst FAMILIES: &[&str] = &[\n{headings}];\n");
    Ok(format!("\n{modules}\n{families}\nconst ALL: &[Cause] = table! {{\n{rows}}};\n"))
}

/// The causes that one names, a group being all that are of it.
fn explained<'c>(cause: &Cause, causes: &'c [Cause]) -> Result<Vec<&'c str>, String> {
    let mut all = Vec::new();
    for name in &cause.explains {
        let named = |other: &&Cause| other.id == *name || other.group.as_ref() == Some(name);
        let mut ids: Vec<&str> = causes.iter().filter(named).map(|other| other.id.as_str()).collect();
        ids.sort_unstable();
        if ids.is_empty() {
            return Err(format!(
                "{CAUSES}{}: {name}, which it explains, is neither cause nor group",
                cause.id
            ));
        }
        all.extend(ids);
    }
    Ok(all)
}

/// Causes by fact, and figures by cause.
fn compared(causes: &[Cause], files: &[File]) -> Result<String, String> {
    let folder = COMPARED.trim_end_matches("causes.rs");
    let tables: Vec<&File> = files.iter().filter(|file| file.path.starts_with(folder)).collect();
    let mut of_fact: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for cause in causes {
        for fact in &cause.facts {
            if !tables.iter().any(|table| table.text.contains(&format!("fact: {fact:?},"))) {
                return Err(format!("{CAUSES}{}: no row of {folder} is of {fact}", cause.id));
            }
            of_fact.entry(fact).or_default().push(&cause.id);
        }
    }
    let table = |name: &str, rows: Vec<String>| {
        let rows = rows.concat();
        format!("\n#[rustfmt::skip]\npub(super) const {name}: &[(&str, &[&str])] = &[\n{rows}];\n")
    };
    let facts = of_fact.iter().map(|(fact, ids)| format!("    ({fact:?}, &{ids:?}),\n")).collect();
    let about = causes.iter().filter(|cause| !cause.figures.is_empty());
    let figures = about.map(|cause| format!("    ({:?}, &{:?}),\n", cause.id, cause.figures)).collect();
    Ok(table("OF_FACT", facts) + &table("FIGURES", figures))
}

/// Families under their headings; a star marks what is not detected in a recording.
fn page(causes: &[Cause], families: &[(&str, &str)]) -> String {
    let mut page = String::new();
    for (name, heading) in families {
        page.push_str(&format!("\n## {heading}\n\n"));
        for cause in causes.iter().filter(|cause| cause.family == *name) {
            let star = if cause.has_rule { "" } else { " *" };
            page.push_str(&format!("- `{}`{star}\n  {}\n", cause.id, cause.title));
        }
    }
    page
}

fn behind_mark(path: &str, before: &str, part: &str) -> Result<String, String> {
    let at = before.find(MARK).ok_or_else(|| format!("{path}: no line says \"{MARK}\""))?;
    let end = before[at..].find('\n').map_or(before.len(), |end| at + end + 1);
    Ok(format!("{}{part}", &before[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(yaml: &[(&str, &str)]) -> Vec<File> {
        let file = |id: &str, name: &str, text: &str| File {
            path: format!("{CAUSES}{id}/{name}"),
            text: text.into(),
        };
        let of = |(id, yaml): &(&str, &str)| {
            let rule = yaml.contains("place").then(|| file(id, "rule.rs", ""));
            [file(id, "page.md", ""), file(id, "cause.yaml", yaml)]
                .into_iter()
                .chain(rule)
                .collect::<Vec<_>>()
        };
        yaml.iter().flat_map(of).collect()
    }

    #[test]
    fn causes_are_read_from_their_folders_and_stand_by_place() {
        let found = causes(&files(&[
            ("a", "title: x\nfamily: e\nmessages:\n- id: y\n"),
            ("b-c", "title: 'of: it''s `two`'\nfamily: f\nplace: 20\nexplains: [g, a]  # both\nfacts: [f.x, f.y*]\nfigures: [m]\n"),
            ("d", "title: z\nfamily: e\nplace: 10\ngroup: g\nfacts: [f.x]\n"),
        ]))
        .expect("causes");
        let ids: Vec<&str> = found.iter().map(|cause| cause.id.as_str()).collect();
        assert_eq!(ids, ["d", "b-c", "a"]);
        assert_eq!(found[1].title, "of: it's `two`");
        let families = families("e   First\nf  Then: two\n");
        let registry = registry(&found, &families).expect("registry");
        assert!(registry.contains("    \"First\",\n    \"Then: two\",\n"), "{registry}");
        assert!(registry.contains("#[path = \"../../causes/b-c/rule.rs\"]\nmod b_c;\n"), "{registry}");
        let row = "    \"b-c\", \"of: it's `two`\", \"Then: two\", None, [\"d\", \"a\"], Some(b_c::RULE);\n";
        assert!(registry.contains(row), "{registry}");
        let rows = File { path: COMPARED.into(), text: "fact: \"f.x\",\nfact: \"f.y*\",\n".into() };
        let compared = compared(&found, &[rows]).expect("what compare knows");
        assert!(
            compared.contains("    (\"f.x\", &[\"d\", \"b-c\"]),\n    (\"f.y*\", &[\"b-c\"]),\n"),
            "{compared}"
        );
        assert!(compared.contains("    (\"b-c\", &[\"m\"]),\n"), "{compared}");
        assert!(super::compared(&found, &[]).is_err_and(|error| error.contains("no row")));
        let page = page(&found, &families);
        assert_eq!(
            page,
            "\n## First\n\n- `d`\n  z\n- `a` *\n  x\n\n## Then: two\n\n- `b-c`\n  of: it's `two`\n"
        );
    }

    #[test]
    fn a_folder_that_lacks_something_is_an_error() {
        let error = |files: &[File]| {
            let causes = causes(files)?;
            registry(&causes, &families("e  First\n"))
        };
        let without = |name: &str| -> Vec<File> {
            let all = files(&[("a", "title: x\nfamily: e\nplace: 1\n")]);
            all.into_iter().filter(|file| !file.path.ends_with(name)).collect()
        };
        assert!(error(&without("none")).is_ok());
        assert!(error(&without("page.md")).is_err_and(|error| error.contains("a has no page.md")));
        assert!(error(&without("cause.yaml")).is_err());
        assert!(error(&files(&[("a", "family: e\n")])).is_err());
        assert!(error(&files(&[("a", "title: x\nfamily: e\nfacts:\n- b\n")]))
            .is_err_and(|error| error.contains("one line")));
        assert!(error(&files(&[("a", "title: x\nfamily: e\nexplains: [b]\n")]))
            .is_err_and(|error| error.contains("b, which")));
        assert!(
            error(&files(&[("a", "title: x\nfamily: g\n")])).is_err_and(|error| error.contains("has no g"))
        );
    }

    #[test]
    fn what_stands_behind_the_mark_is_replaced() {
        let before = format!("head\n// {MARK}.\nold\n");
        assert_eq!(behind_mark("x", &before, "new\n"), Ok(format!("head\n// {MARK}.\nnew\n")));
        assert!(behind_mark("x", "head\n", "new\n").is_err());
    }
}
