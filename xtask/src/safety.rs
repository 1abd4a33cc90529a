//! Does every unsafe block, impl and function say why it is sound, and does every lock stand where one may?

use crate::rules::Rules;
use crate::tree::{code_of, File};
use regex::Regex;
use std::sync::LazyLock;

static UNSAFE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    // Texts are empty here: `extern "C"` is `extern ""`. A type has no name behind `fn`.
    Regex::new(r#"\bunsafe\s*(\{|impl\b|trait\b|(extern\s*(""\s*)?)?(\{|fn\s+\w))"#).ok()
});

static LOCK: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"\b(Mutex|RwLock|Condvar|Barrier|Once|OnceLock|OnceCell|LazyLock|PyOnceLock|GILOnceCell)\b|\bpyo3::intern!",
        r"|\bthreading\.(Lock|RLock|Condition|Semaphore|BoundedSemaphore|Event|Barrier)\("
    ))
    .ok()
});

fn is_code(line: &str, regex: &LazyLock<Option<Regex>>) -> bool {
    regex.as_ref().is_none_or(|regex| regex.is_match(&code_of(line)))
}

/// Unsafe code without a reason: a comment with `SAFETY:` or `# Safety` before its statement.
pub(crate) fn without_reason(file: &File) -> Vec<String> {
    // The tests of this file and of `tree` hold unsafe code in texts of several lines.
    if !file.path.ends_with(".rs") || file.path.starts_with("xtask/") {
        return Vec::new();
    }
    let lines: Vec<&str> = file.text.lines().collect();
    let found = (0..lines.len()).filter(|at| is_code(lines[*at], &UNSAFE) && !has_reason(&lines, *at));
    found.map(|at| format!("{}:{}: unsafe without a SAFETY: reason", file.path, at + 1)).collect()
}

fn has_reason(lines: &[&str], at: usize) -> bool {
    let says = |line: &str| line.contains("// SAFETY:") || line.contains("/// # Safety");
    if says(lines[at]) {
        return true;
    }
    for line in lines[..at].iter().rev().map(|line| line.trim()) {
        if line.starts_with("//") {
            if says(line) {
                return true;
            }
        } else if line.is_empty() || line.ends_with([';', '{', '}']) {
            return false; // the end of the statement before
        }
    }
    false
}

/// Locks of what runs inside the job, in files that are not listed for them. Tests may hold what they like.
pub(crate) fn locks_out_of_place(rules: &Rules, file: &File) -> Vec<String> {
    let inside = ["crates/share/", "python/native/src/", "python/ullage/"];
    let is_test = file.path.contains("/tests/");
    if !inside.iter().any(|folder| file.path.starts_with(folder)) || is_test {
        return Vec::new();
    }
    if Rules::listed(&rules.locks, &file.path) {
        return Vec::new();
    }
    let lines = file
        .text
        .lines()
        .take_while(|line| !line.starts_with("#[cfg(test)]") && !line.starts_with("#[cfg(all(test"));
    let found = lines.enumerate().filter(|(_, line)| is_code(line, &LOCK));
    found.map(|(n, _)| format!("{}:{}: a lock may not stand here", file.path, n + 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rust(text: &str) -> File {
        File { path: "crates/share/a.rs".into(), text: text.into() }
    }

    #[test]
    fn unsafe_code_without_a_reason_is_seen() {
        for text in [
            "fn f() {\n    unsafe { g() }\n}\n",
            "// SAFETY: of another statement.\ng();\nunsafe { g() };\n",
            "// SAFETY: too far away.\n\nunsafe impl Send for X {}\n",
            "unsafe impl Send for X {}\n",
            "/// Says nothing.\npub unsafe fn f() {}\n",
            "unsafe extern \"C\" fn f() {}\n",
            "unsafe extern \"C\" {\n    fn f();\n}\n",
        ] {
            assert_eq!(without_reason(&rust(text)).len(), 1, "{text}");
        }
        let found = without_reason(&rust("\n    unsafe { g() }\n"));
        assert_eq!(found, ["crates/share/a.rs:2: unsafe without a SAFETY: reason"]);
    }

    #[test]
    fn unsafe_code_with_a_reason_is_not() {
        for text in [
            "// SAFETY: because.\nunsafe { g() };\n",
            "// SAFETY: because,\n// and for a second reason.\nlet x =\n    unsafe { g() };\n",
            "// SAFETY: as above.\n#[inline]\nunsafe impl Send for X {}\n",
            "/// Does it.\n///\n/// # Safety\n/// Nobody else does.\n#[inline]\npub unsafe fn f() {}\n",
            "call: Option<unsafe extern \"C\" fn(*mut u8) -> i32>,\n",
            "let text = \"unsafe { }\"; // unsafe { }\n",
        ] {
            assert!(without_reason(&rust(text)).is_empty(), "{text}");
        }
    }

    #[test]
    fn locks_are_seen_outside_of_their_files_and_of_tests_only() {
        let mut rules = Rules::default();
        let held = rust("use std::sync::{Arc, Mutex};\n// A Mutex.\nstatic A: PyOnceLock<u8> = x;\n");
        let found = locks_out_of_place(&rules, &held);
        assert_eq!(
            found,
            [
                "crates/share/a.rs:1: a lock may not stand here",
                "crates/share/a.rs:3: a lock may not stand here"
            ]
        );
        assert!(locks_out_of_place(&rules, &rust("#[cfg(test)]\nmod tests {\n    use std::sync::Mutex;\n"))
            .is_empty());
        let python = File { path: "python/ullage/_x.py".into(), text: "_lock = threading.RLock()\n".into() };
        assert_eq!(locks_out_of_place(&rules, &python).len(), 1);
        let elsewhere = File { path: "crates/run/a.rs".into(), ..held };
        assert!(locks_out_of_place(&rules, &elsewhere).is_empty());
        rules.locks = vec!["python/ullage/_x.py".into()];
        assert!(locks_out_of_place(&rules, &python).is_empty());
    }
}
