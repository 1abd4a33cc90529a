//! Does a number that decides stand outside of `policy`, in a crate that has such a module?
//!
//! Outside of it no number has a name but one of how many entries are kept or shown: an integer called `MOST_…`. And no
//! float stands in the code but those that are no choice: nothing, whole, half of a span, per cent. A certainty that
//! stands beside its status, in one tuple, is left to that.

use crate::imports::Text;
use crate::rules::Rules;
use crate::tree::File;
use regex::Regex;
use std::sync::LazyLock;

/// Numbers and times, alone or in what holds them; `At` is a time of the model.
static NAMED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"\b(?:const|static)\s+(\w+):\s*(f32|f64|[iu](?:8|16|32|64|128|size)|At|Duration|[^=;]*\bf(?:32|64)\b[^=;]*)\s*=")
        .ok()
});
/// A certainty beside its status.
static CERTAINTY: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\(Status::\w+,[^()]*\)").ok());
/// The field of a tuple, `x.0`, is no number, nor is the end of a range, `0..1`.
static FLOAT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?:^|[^\w.])(\d[\d_]*\.\d[\d_]*(?:e-?\d+)?|\d[\d_]*e-?\d+|\d[\d_]*(?:\.\d+)?_?f(?:32|64))\b")
        .ok()
});
const NO_CHOICE: [&str; 4] = ["0.0", "1.0", "2.0", "100.0"];

/// How many files were looked at, and each number out of place with its line.
pub(crate) fn check(rules: &Rules, files: &[File]) -> (usize, Vec<String>) {
    let mut checked = 0;
    let mut problems = Vec::new();
    let with_policy = rules.layers.iter().filter(|(_, order)| order.iter().any(|module| module == "policy"));
    for (folder, _) in with_policy {
        // Modules may stand beside `src`, by `#[path]`.
        let here = |file: &&File| {
            let below = file.path.strip_prefix(&format!("{folder}/")).unwrap_or("");
            let free = below.starts_with("src/policy") || format!("/{below}").contains("/tests/");
            below.ends_with(".rs") && !free
        };
        for file in files.iter().filter(here) {
            checked += 1;
            problems.extend(out_of_place(file));
        }
    }
    (checked, problems)
}

fn out_of_place(file: &File) -> Vec<String> {
    let code = Text::code(&file.text);
    let line = |at: usize| code[..at].matches('\n').count() + 1;
    let mut found = Vec::new();
    for named in NAMED.iter().flat_map(|regex| regex.captures_iter(&code)) {
        let (Some(name), Some(kind)) = (named.get(1), named.get(2)) else { continue };
        let bounds = name.as_str().starts_with("MOST_") && kind.as_str().starts_with(['u', 'i']);
        if !bounds {
            found.push((line(name.start()), format!("{} is a threshold", name.as_str())));
        }
    }
    // What is named is told already; a certainty keeps its place, so that lines stay right.
    let keep = |found: &regex::Captures| "\n".repeat(found[0].matches('\n').count());
    let rest = CERTAINTY.as_ref().map_or(code.clone(), |regex| regex.replace_all(&code, keep).into_owned());
    for float in FLOAT.iter().flat_map(|regex| regex.captures_iter(&rest)).filter_map(|float| float.get(1)) {
        let line = rest[..float.start()].matches('\n').count() + 1;
        let value = float.as_str().trim_end_matches("f64").trim_end_matches("f32").trim_end_matches('_');
        if !NO_CHOICE.contains(&value) && !found.iter().any(|(named, _)| *named == line) {
            found.push((line, format!("{} decides something", float.as_str())));
        }
    }
    found.sort();
    found.into_iter().map(|(line, what)| format!("{}:{line}: {what}: name it in policy", file.path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        let file = File { path: "crates/a/src/x.rs".into(), text: text.into() };
        out_of_place(&file).into_iter().map(|problem| problem.replace("crates/a/src/x.rs:", "")).collect()
    }

    #[test]
    fn a_number_with_a_name_is_a_threshold() {
        assert_eq!(
            problems("//! 0.5 of \"it\"\nconst LEAST: u64 = 5;\nfn f() {\n    const NEAR: f64 = 0.9;\n}\n"),
            ["2: LEAST is a threshold: name it in policy", "4: NEAR is a threshold: name it in policy"]
        );
        assert_eq!(
            problems("static AT: (f64, f64) = (0.1, 3.0);\npub(crate) const BY: At = At(3);").len(),
            2
        );
        let others =
            "const MOST_KEPT: usize = 5;\nconst NAMES: [&str; 2] = [];\nconst FIXED: (u32, u32) = (1, 10);";
        assert_eq!(problems(others), Vec::<String>::new());
        assert_eq!(problems("const MOST_OF: f64 = 2.0;").len(), 1);
    }

    #[test]
    fn a_float_in_the_code_decides() {
        assert_eq!(
            problems("fn f(x: f64) -> bool {\n    x >= 0.95 * 2.0\n}\n"),
            ["2: 0.95 decides something: name it in policy"]
        );
        assert_eq!(problems("let a = 0.0f64;\nlet a = 1e-3;\nlet b = 3f64;\nlet c = 2.5_f32;").len(), 3);
        let none = "let a = (Status::Supported, if met { 0.9 } else { 0.7 });\nlet b = 100.0 * x.0.1 + y / 2.0;\nlet c = \"3.11\"; // 0.3\n\
                    let d = 0..5;";
        assert_eq!(problems(none), Vec::<String>::new());
        assert_eq!(problems("#[cfg(test)]\nmod tests {\n    const X: f64 = 0.3;\n}\n"), Vec::<String>::new());
    }

    #[test]
    fn only_a_crate_with_a_policy_is_held_to_it() {
        let rules = |modules: &str| {
            let text = crate::rules::tests::TEXT.replace("`low`, `high`", modules);
            Rules::parse(&text).expect("rules")
        };
        let file = |path: &str| File { path: path.into(), text: "const X: f64 = 0.3;\n".into() };
        let files = [
            "crates/a/src/x.rs",
            "crates/a/causes/y/rule.rs",
            "crates/a/src/policy/mod.rs",
            "crates/a/src/tests/x.rs",
            "crates/b/src/x.rs",
        ]
        .map(file);
        let (checked, problems) = check(&rules("`policy`, `high`"), &files);
        assert_eq!((checked, problems.len()), (2, 2));
        assert_eq!(check(&rules("`low`, `high`"), &files), (0, Vec::new()));
    }
}
