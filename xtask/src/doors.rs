//! Can every bench, test and example be reached: does a target of the Makefile, a page or CI name it, or a file that
//! is itself reached?
//!
//! Not asked of what pytest and `cargo test` find by themselves, nor of scenarios, which are found by their folders.

use crate::tree::File;
use std::collections::BTreeSet;
use std::path::Path;

/// Where what runs by its name only lies.
const FOLDERS: [&str; 3] = ["benches/", "tests/", "examples/"];
/// Programs with a target or a way to be found of their own: what they name is reached.
const RUNNERS: [&str; 5] = ["guests/", "fuzz/", "scenarios/", "integrations/", "python/tests/"];

/// How many files were asked about, and which of them nothing reaches.
pub(crate) fn without(files: &[File]) -> (usize, Vec<String>) {
    let asked: Vec<&File> = files.iter().filter(|file| needs_a_door(&file.path)).collect();
    let mut reached = BTreeSet::new();
    let mut readers: Vec<&File> = files.iter().filter(|file| is_door(&file.path)).collect();
    while let Some(reader) = readers.pop() {
        for file in asked.iter().filter(|file| file.path != reader.path && names(reader, &file.path)) {
            if reached.insert(&file.path) {
                readers.push(file);
            }
        }
    }
    let problems = asked.iter().filter(|file| !reached.contains(&file.path));
    let problems = problems.map(|file| {
        format!(
            "{}: no target of the Makefile, page or CI reaches it: give it a door or delete it",
            file.path
        )
    });
    (asked.len(), problems.collect())
}

fn needs_a_door(path: &str) -> bool {
    let script = is_script(path) && FOLDERS.iter().any(|folder| path.starts_with(folder));
    script || (path.starts_with("crates/") && path.contains("/examples/") && path.ends_with(".rs"))
}

fn is_door(path: &str) -> bool {
    let page = path.ends_with(".md") && path != "CHANGELOG.md";
    let runner = is_script(path) && RUNNERS.iter().any(|folder| path.starts_with(folder));
    path == "Makefile" || path.starts_with(".ci/") || page || runner
}

fn is_script(path: &str) -> bool {
    path.ends_with(".py") || path.ends_with(".sh")
}

/// Whether a file names another: by its path, in quotes, as a module that it imports, or as an example of cargo's.
fn names(reader: &File, path: &str) -> bool {
    let stem = Path::new(path).file_stem().and_then(|stem| stem.to_str()).unwrap_or(path);
    let name = Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or(path);
    let text = &reader.text;
    if path.ends_with(".rs") {
        return [
            format!("--example {stem}"),
            format!("examples/{stem}"),
            format!("\"--example\", \"{stem}\""),
        ]
        .iter()
        .any(|way| holds(text, way));
    }
    let module = text.lines().map(str::trim_start).any(|line| {
        let mut words = line.split([' ', ',']);
        matches!(words.next(), Some("import" | "from"))
            && words.take_while(|&word| word != "#").any(|word| word == stem)
    });
    holds(text, path) || text.contains(&format!("\"{name}\"")) || (reader.path.ends_with(".py") && module)
}

/// Whether a text holds a name that no longer one continues.
fn holds(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let rest = text.get(at + name.len()..).unwrap_or("");
        !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.into(), text: text.into() }
    }

    #[test]
    fn what_nothing_reaches_is_a_problem() {
        let files = [
            file("Makefile", "bench:\n\tpython benches/cost.py\n\tcargo run --example totals\n"),
            file("CHANGELOG.md", "benches/gone.py was faster"),
            file("benches/cost.py", "import bounds\nJOB = \"cost_job.py\"\n"),
            file("benches/cost_job.py", ""),
            file("benches/bounds.py", ""),
            file("benches/gone.py", "import alone\n"),
            file("benches/alone.py", "import gone\n"),
            file("crates/a/examples/totals.rs", ""),
            file("crates/a/examples/total.rs", ""),
        ];
        let (count, problems) = without(&files);
        assert_eq!(count, 7);
        let paths: Vec<&str> = problems.iter().filter_map(|line| line.split(':').next()).collect();
        assert_eq!(paths, ["benches/gone.py", "benches/alone.py", "crates/a/examples/total.rs"]);
    }
}
