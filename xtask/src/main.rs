//! The chores of the repository: `cargo run -p xtask -- check-architecture`, `… check-docs`, `… check-words`, `… circles`,
//! `… sentences`, `… generate` and `… check-generated`.
//!
//! A check prints how many things it looked at, so that one that looks at nothing is seen, and exits with 1
//! when it finds a problem. The rules themselves stand in ARCHITECTURE.md, which is read here.
#![forbid(unsafe_code)]

mod confidence;
mod dependencies;
mod docs;
mod doors;
mod generate;
mod imports;
mod layers;
mod literals;
mod rules;
mod safety;
mod sentences;
mod thresholds;
mod tree;
mod words;

use std::io::Write;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo run -p xtask -- COMMAND

  check-architecture   hold the tree against ARCHITECTURE.md
  check-docs           follow links, look for the marks of pasted output and for benches and tests that nothing names
  check-words          find words that the style avoids, in pages, on screens and in names
  sentences            write docs/sentences.txt, every sentence that reaches a screen, and say how they read
  generate             write all that is written from other files: registry and list of causes, sentences, words left
  check-generated      check that those are as they would be written
  circles              files that import each other, the largest circle first

An import of Rust is a path that the code of a file names, by `use`, `pub use` or in place: an edge to the file that
defines the item, through whatever hands its name on. The declaration `mod x;` alone is none, nor is the call of a method.
An import of Python is an import statement, inside of functions too. Code that only tests compile does not count.
";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let result = match (arguments.next().as_deref(), arguments.next()) {
        (Some("check-architecture"), None) => check_architecture(),
        (Some("check-docs"), None) => check_docs(),
        (Some("check-words"), None) => check_words(),
        (Some("sentences"), None) => sentences(),
        (Some("circles"), None) => circles(),
        (Some("generate"), None) => generate(true),
        (Some("check-generated"), None) => generate(false),
        _ => {
            say(USAGE);
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(report) => {
            for problem in &report.problems {
                say(&format!("problem: {problem}\n"));
            }
            for (count, what) in &report.counted {
                say(&format!("{count:>6} {what}\n"));
            }
            say(if report.problems.is_empty() { "ok\n" } else { "failed\n" });
            ExitCode::from(u8::from(!report.problems.is_empty()))
        }
        Err(error) => {
            say(&format!("cannot check: {error}\n"));
            ExitCode::FAILURE
        }
    }
}

/// What a check looked at, and what it found.
#[derive(Default)]
struct Report {
    problems: Vec<String>,
    counted: Vec<(usize, &'static str)>,
}

impl Report {
    /// Takes in the problems of one check, and how many things it looked at; none at all is a problem too.
    fn add(&mut self, checked: usize, what: &'static str, problems: Vec<String>) {
        if checked == 0 {
            self.problems.push(format!("nothing was checked: no {what}"));
        }
        self.counted.push((checked, what));
        self.problems.extend(problems);
    }
}

fn check_architecture() -> Result<Report, String> {
    let root = tree::root()?;
    let rules = rules::Rules::parse(&tree::read(&root.join("ARCHITECTURE.md"))?)?;
    let packages = dependencies::packages(&root)?;
    let files = tree::tracked(&root)?;
    let mut report = Report::default();
    let edges = packages.iter().map(|package| package.dependencies.len()).sum();
    report.add(edges, "dependencies against the table", dependencies::check(&rules, &packages));
    report.add(
        packages.len(),
        "crates for forbid(unsafe_code)",
        tree::forbids_unsafe(&rules, &packages, &root)?,
    );
    let sources: Vec<&tree::File> = files.iter().filter(|file| tree::is_source(&file.path)).collect();
    let mut problems = Vec::new();
    for file in &sources {
        problems.extend(tree::too_long(&rules, file));
        problems.extend(tree::unsafe_out_of_place(&rules, file));
        problems.extend(safety::without_reason(file));
        problems.extend(safety::locks_out_of_place(&rules, file));
        problems.extend(confidence::by_hand(file));
    }
    report.add(sources.len(), "source files for length, unsafe, locks and confidences set by hand", problems);
    let graph = imports::graph(&packages, &files);
    let (imports, problems) = layers::check(&rules, &graph);
    report.add(imports, "imports against the order of modules", problems);
    report.add(
        graph.len(),
        "files for circles of imports",
        layers::too_large(&rules, &imports::circles(&graph)),
    );
    let (numbers, problems) = thresholds::check(&rules, &files);
    report.add(numbers, "files for thresholds outside of policy", problems);
    let problems = files.iter().flat_map(|file| tree::machine_paths(&rules, file)).collect();
    report.add(files.len(), "tracked text files for paths of a machine", problems);
    Ok(report)
}

/// Writes what is written from other files, or says what of it is stale.
fn generate(write: bool) -> Result<Report, String> {
    let root = tree::root()?;
    let files = tree::tracked(&root)?;
    let (causes, mut written) = generate::all(&root, &files)?;
    let before = |path: &str| files.iter().find(|file| file.path == path).map_or("", |file| &file.text);
    let mut whole =
        |path: &str, text: String| written.push(generate::Written::whole(path, text, before(path)));
    whole(sentences::PATH, sentences::file(&sentences::all(&files)));
    if write {
        // What is left may be less than the table says: that is no reason to fail.
        let left = words::lowered(&words::find(&files)?.left, before(words::LEFT));
        whole(words::LEFT, words::table(&left));
    }
    let mut problems = Vec::new();
    for file in written.iter().filter(|file| file.is_stale()) {
        if write {
            let path = root.join(&file.path);
            std::fs::write(&path, &file.text).map_err(|error| format!("{}: {error}", file.path))?;
        } else {
            problems.push(format!("{} is stale: cargo run -p xtask -- generate", file.path));
        }
    }
    let mut report = Report::default();
    report.add(causes, "folders of causes", problems);
    Ok(report)
}

fn check_words() -> Result<Report, String> {
    let files = tree::tracked(&tree::root()?)?;
    let found = words::find(&files)?;
    let table = files.iter().find(|file| file.path == words::LEFT).map_or("", |file| &file.text);
    let mut problems = found.pages;
    problems.extend(words::risen(&found.left, table));
    let mut report = Report::default();
    report.add(found.files, "pages and sources for words that the style avoids", problems);
    report.counted.push((found.left.values().sum(), "of them left on screens and in names"));
    Ok(report)
}

/// Writes the sentences of the screens, and prints how they read.
fn sentences() -> Result<Report, String> {
    let root = tree::root()?;
    let files = tree::tracked(&root)?;
    let all = sentences::all(&files);
    let path = root.join(sentences::PATH);
    std::fs::write(&path, sentences::file(&all)).map_err(|error| format!("{}: {error}", sentences::PATH))?;
    let readability = sentences::readability(&all);
    for (kind, of) in &readability {
        say(&format!("{kind:22} {of}\n"));
    }
    let mut report = Report::default();
    report.add(readability.get("all").map_or(0, |of| of.sentences), "sentences", Vec::new());
    Ok(report)
}

/// Prints every circle of imports; more than none is no failure.
fn circles() -> Result<Report, String> {
    let root = tree::root()?;
    let graph = imports::graph(&dependencies::packages(&root)?, &tree::tracked(&root)?);
    let circles = imports::circles(&graph);
    let largest = circles.first().map_or(0, Vec::len);
    say(&format!("largest circle: {largest} of {} files\n", graph.len()));
    for circle in &circles {
        say(&format!("{:>6} {}\n", circle.len(), circle.join("\n       ")));
    }
    let mut report = Report::default();
    report.add(graph.values().map(std::collections::BTreeSet::len).sum(), "imports", Vec::new());
    Ok(report)
}

fn check_docs() -> Result<Report, String> {
    let root = tree::root()?;
    let files = tree::tracked(&root)?;
    let mut report = Report::default();
    let pages: Vec<&tree::File> = files.iter().filter(|file| file.path.ends_with(".md")).collect();
    let (links, problems) = docs::links(&root, &pages);
    report.add(links, "links to files of the repository", problems);
    let readme = files.iter().find(|file| file.path == "README.md").ok_or("there is no README.md")?;
    report.add(1, "README with the pasted output marked", docs::pasted_output(&readme.text));
    let (scripts, problems) = doors::without(&files);
    report.add(scripts, "benches, tests and examples that something must name", problems);
    Ok(report)
}

fn say(text: &str) {
    // A closed pipe is no reason to fail a check.
    let _ = std::io::stdout().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_checks_nothing_fails() {
        let mut report = Report::default();
        report.add(0, "files", vec![]);
        assert_eq!(report.problems, ["nothing was checked: no files"]);
    }
}
