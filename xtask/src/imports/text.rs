//! Rust's text without what is no code: comments, texts, and what only tests compile.

use regex::{Captures, Regex};
use std::sync::LazyLock;

/// Patterns of what is no code. `'"'` is a letter and begins no text.
static NO_CODE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r##"(?s)//[^\n]*|/\*.*?\*/|r#"(.*?)"#|r"[^"]*"|b?"(\\.|[^"\\])*"|b?'(\\.|[^'\\])'"##).ok()
});
static TEST_ONLY: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"#\[cfg\((?:test|all\(test[^\]]*\))\)\]").ok());

/// Code only.
pub(crate) struct Text;

impl Text {
    /// Without comments and texts, and without items behind `#[cfg(test)]`; each line stays where it was.
    pub(crate) fn code(source: &str) -> String {
        let gone = |found: &Captures| blank(found.get(0).map_or("", |text| text.as_str()));
        let bare = NO_CODE.as_ref().map_or(source.to_owned(), |regex| regex.replace_all(source, gone).into());
        without_tests(&bare)
    }

    /// The text from an opening brace to where it closes, and where that is.
    pub(crate) fn block(code: &str, open: usize) -> (&str, usize) {
        let mut depth = 0usize;
        for (at, letter) in code[open..].char_indices() {
            match letter {
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                _ => continue,
            }
            if depth == 0 {
                return (&code[open + 1..open + at], open + at + 1);
            }
        }
        (&code[open + 1..], code.len())
    }
}

/// A space and the line ends of what is left out.
fn blank(text: &str) -> String {
    format!(" {}", "\n".repeat(text.matches('\n').count()))
}

fn without_tests(code: &str) -> String {
    let mut left = String::new();
    let mut rest = code;
    while let Some(found) = TEST_ONLY.as_ref().and_then(|regex| regex.find(rest)) {
        left.push_str(&rest[..found.start()]);
        let behind = &rest[found.end()..];
        // An item ends with its block, or with a semicolon before one.
        let (open, end) = (behind.find('{'), behind.find(';'));
        let cut = match (open, end) {
            (Some(open), end) if end.is_none_or(|end| open < end) => Text::block(behind, open).1,
            (_, Some(end)) => end + 1,
            (_, None) => behind.len(),
        };
        left.push_str(&blank(&behind[..cut]));
        rest = &behind[cut..];
    }
    left.push_str(rest);
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_texts_and_tests_are_no_code() {
        let source = "use a::B; // use c::D;\nlet x = \"use e::F;\"; let y = '\"';\n#[cfg(test)]\nmod tests { use g::H; }\n\
                      #[cfg(test)]\nmod more;\nuse i::J;\n";
        let code = Text::code(source);
        assert!(code.contains("use a::B;") && code.contains("use i::J;"), "{code}");
        assert_eq!(code.lines().count(), source.lines().count());
        for gone in ["c::D", "e::F", "g::H", "mod more"] {
            assert!(!code.contains(gone), "{gone}: {code}");
        }
    }

    #[test]
    fn a_block_ends_where_its_brace_does() {
        assert_eq!(Text::block("mod x { a { b } c } d", 6), (" a { b } c ", 19));
    }
}
