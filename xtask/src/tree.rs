//! Do the tracked files keep the rules of the house: length, unsafe code, no path of somebody's machine?

use crate::dependencies::Package;
use crate::rules::Rules;
use regex::Regex;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// One tracked text file.
#[derive(Debug)]
pub(crate) struct File {
    /// Path below the root.
    pub(crate) path: String,
    /// Its text.
    pub(crate) text: String,
}

/// The root of the repository, which holds this crate's folder.
pub(crate) fn root() -> Result<PathBuf, String> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(Path::to_path_buf).ok_or_else(|| "xtask has no parent folder".to_owned())
}

pub(crate) fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Files that git tracks, and new ones that it would; those that are not text are left out.
pub(crate) fn tracked(root: &Path) -> Result<Vec<File>, String> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("git ls-files: {error}"))?;
    if !output.status.success() {
        return Err(format!("git ls-files: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let names = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut paths: Vec<&str> = names.split('\0').filter(|name| !name.is_empty()).collect();
    paths.sort_unstable();
    paths.dedup();
    let text =
        |path: &&str| std::fs::read(root.join(path)).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    Ok(paths.iter().filter_map(|path| Some(File { path: (*path).to_owned(), text: text(path)? })).collect())
}

pub(crate) fn is_source(path: &str) -> bool {
    [".rs", ".py", ".pyi", ".sh"].iter().any(|end| path.ends_with(end))
}

/// Crates whose root does not say `#![forbid(unsafe_code)]`; those with a listed file only deny it.
pub(crate) fn forbids_unsafe(
    rules: &Rules,
    packages: &[Package],
    root: &Path,
) -> Result<Vec<String>, String> {
    let mut problems = Vec::new();
    for package in packages {
        let exempt = rules.unsafe_files.iter().any(|file| file.starts_with(&format!("{}/", package.folder)));
        if package.roots.is_empty() {
            problems.push(format!("{} has neither library nor program", package.folder));
        }
        for path in &package.roots {
            problems.extend(lacks_forbid(path, &read(&root.join(path))?, exempt));
        }
    }
    Ok(problems)
}

fn lacks_forbid(path: &str, text: &str, exempt: bool) -> Option<String> {
    let forbids = text.lines().any(|line| line.trim() == "#![forbid(unsafe_code)]");
    (!forbids && !exempt).then(|| format!("{path} does not say #![forbid(unsafe_code)]"))
}

static UNSAFE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\bunsafe\s*(\{|fn\b|impl\b|extern\b|trait\b|\()").ok());

static TEXT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r#""(\\.|[^"\\])*""#).ok());

/// A line without its comment, its texts emptied: a `//` or the word itself may stand in one.
pub(crate) fn code_of(line: &str) -> String {
    let bare = TEXT.as_ref().map_or(line.to_owned(), |text| text.replace_all(line, "\"\"").into_owned());
    bare.split("//").next().unwrap_or("").to_owned()
}

/// Unsafe code outside of the files that may hold it.
pub(crate) fn unsafe_out_of_place(rules: &Rules, file: &File) -> Vec<String> {
    if !file.path.ends_with(".rs") || Rules::listed(&rules.unsafe_files, &file.path) {
        return Vec::new();
    }
    let found = |line: &str| UNSAFE.as_ref().is_none_or(|regex| regex.is_match(&code_of(line)));
    let lines = file.text.lines().enumerate().filter(|(_, line)| found(line));
    lines.map(|(n, _)| format!("{}:{}: unsafe code may not stand here", file.path, n + 1)).collect()
}

/// A source file that has outgrown the limit.
pub(crate) fn too_long(rules: &Rules, file: &File) -> Option<String> {
    let lines = file.text.lines().count();
    let free = Rules::listed(&rules.long, &file.path) || file.path.contains("/tests/");
    (lines > Rules::MAX_LINES && !free)
        .then(|| format!("{} has {lines} lines; split it at {}", file.path, Rules::MAX_LINES))
}

/// Folders that exist on one machine only. `/home/user` and the like in an example are meant for everybody.
static MACHINE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"(^|[\s"'`=:(<])(/root/|/(home|Users)/[a-z0-9_.-]+/|/wor[k]/|/workspace/|/builds?/|/opt/[a-z0-9_.-]+-dev\b)"#)
        .ok()
});
const EVERYBODY: [&str; 5] = ["/home/x/", "/home/user/", "/home/you/", "/home/me/", "/Users/you/"];

/// A folder of somebody's machine that a file names: the first line, and how many more.
pub(crate) fn machine_paths(rules: &Rules, file: &File) -> Vec<String> {
    // This file holds the patterns themselves.
    if Rules::listed(&rules.paths, &file.path) || file.path == "xtask/src/tree.rs" {
        return Vec::new();
    }
    let found = |line: &str| {
        MACHINE.as_ref().is_none_or(|regex| {
            regex.captures_iter(line).any(|hit| hit.get(2).is_some_and(|m| !EVERYBODY.contains(&m.as_str())))
        })
    };
    let lines = file.text.lines().enumerate().filter(|(_, line)| found(line));
    lines
        .map(|(n, line)| format!("{}:{}: names a path of one machine: {}", file.path, n + 1, line.trim()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        Rules::parse(crate::rules::tests::TEXT).expect("rules")
    }

    fn file(path: &str, text: &str) -> File {
        File { path: path.into(), text: text.into() }
    }

    #[test]
    fn unsafe_code_is_seen_outside_of_its_files_only() {
        let quiet = "fail(\"unsafe { }\"); // unsafe { }";
        assert!(unsafe_out_of_place(&rules(), &file("a.rs", quiet)).is_empty());
        let text = "fn f() {\n    unsafe { g() }\n}\n// unsafe { in a comment }\n#![forbid(unsafe_code)]\n";
        let found = unsafe_out_of_place(&rules(), &file("crates/a/src/x.rs", text));
        assert_eq!(found, ["crates/a/src/x.rs:2: unsafe code may not stand here"]);
        assert!(unsafe_out_of_place(&rules(), &file("crates/b/src/spawn.rs", text)).is_empty());
        assert!(!unsafe_out_of_place(&rules(), &file("a.rs", "pub unsafe fn f() {}")).is_empty());
        assert!(!unsafe_out_of_place(&rules(), &file("a.rs", "unsafe impl Send for X {}")).is_empty());
    }

    #[test]
    fn a_crate_root_without_forbid_is_seen() {
        assert!(lacks_forbid("l.rs", "//! x\n", false).is_some());
        assert!(lacks_forbid("l.rs", "//! x\n", true).is_none());
        assert!(lacks_forbid("l.rs", "//! x\n#![forbid(unsafe_code)]\n", false).is_none());
        assert!(lacks_forbid("l.rs", "// #![forbid(unsafe_code)]\n", false).is_some());
    }

    #[test]
    fn long_files_are_seen_but_for_tests_and_listed_ones() {
        let long = "x\n".repeat(601);
        assert!(too_long(&rules(), &file("crates/a/src/x.rs", &long)).is_some());
        assert!(too_long(&rules(), &file("crates/a/src/x.rs", &"x\n".repeat(600))).is_none());
        assert!(too_long(&rules(), &file("crates/a/tests/x.rs", &long)).is_none());
        assert!(too_long(&rules(), &file("python/tests/test_x.py", &long)).is_none());
    }

    #[test]
    fn paths_of_a_machine_are_seen() {
        for bad in [
            "see /root/x",
            "\"/home/alice/x\"",
            concat!("cd /wor", "k/x"),
            "PATH=/opt/thing-dev/v1",
            "/Users/bob/x",
        ] {
            assert_eq!(machine_paths(&rules(), &file("a.md", bad)).len(), 1, "{bad}");
        }
        for good in ["/proc/PID/root/dev", "/home/user/x", "a/work/x", "/opt/conda/lib", "https://x.y/root/z"]
        {
            assert!(machine_paths(&rules(), &file("a.md", good)).is_empty(), "{good}");
        }
        assert!(machine_paths(&rules(), &file("fixtures/x/maps", "cd /root/x")).is_empty());
    }
}
