//! Is how sure a finding is set anywhere but in the one table of kinds of proof?

use crate::tree::{code_of, File};
use regex::Regex;
use std::sync::LazyLock;

/// The file with the table.
const TABLE: &str = "crates/observe/model/src/proof.rs";

static BY_HAND: LazyLock<Option<Regex>> = LazyLock::new(|| {
    // A float literal behind a status or a proof, and a field or variable that is given one.
    Regex::new(concat!(
        r"\b(Status|Proof)::\w+\s*,\s*(if\b[^,{}]*\{\s*)?\d+\.\d",
        r"|\bconfidence\s*(:\s*f64\s*)?[:=]\s*[^=]*?\d+\.\d",
        r"|\bconfidence:\s*(if|match)\b",
    ))
    .ok()
});

/// Places of a file, tests counted, that set it by hand.
pub(crate) fn by_hand(file: &File) -> Vec<String> {
    let applies = file.path.starts_with("crates/") && file.path.ends_with(".rs") && file.path != TABLE;
    let Some(regex) = BY_HAND.as_ref().filter(|_| applies) else { return Vec::new() };
    let code = file.text.lines().map(code_of).collect::<Vec<_>>().join("\n");
    let found = regex.find_iter(&code).map(|found| 1 + code[..found.start()].matches('\n').count());
    found
        .map(|line| format!("{}:{line}: a confidence set by hand; {TABLE} has the table", file.path))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rust(path: &str, text: &str) -> File {
        File { path: path.into(), text: text.into() }
    }

    #[test]
    fn a_confidence_that_is_set_by_hand_is_seen() {
        for text in [
            "let known = (Status::Established, 0.96);",
            "let known = (\n    Status::Supported,\n    0.8,\n);",
            "let known = (Proof::Estimated, if bus { 0.85 } else { 0.7 });",
            "confidence: 0.9,",
            "finding.confidence = 0.4;",
            "let confidence = 0.6 + 0.3 * share;",
            "let confidence: f64 = 0.6;",
            "confidence: if sure { high } else { low },",
        ] {
            assert_eq!(by_hand(&rust("crates/a.rs", text)).len(), 1, "{text}");
        }
    }

    #[test]
    fn what_follows_from_the_table_is_not() {
        for text in [
            "confidence: finding.proof.confidence(),",
            "confidence: f64,",
            "// (Status::Established, 0.96)",
            "let proof = if 2.0 * kept < most { Proof::InPart } else { Proof::Estimated };",
            "(Severity::Warning, Status::Supported)",
        ] {
            assert!(by_hand(&rust("crates/a.rs", text)).is_empty(), "{text}");
        }
        assert!(by_hand(&rust(TABLE, "(Proof::Consistent, Status::Hypothesis, 0.45),")).is_empty());
    }
}
