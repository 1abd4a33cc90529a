//! What are the texts of a Rust file, and what is its code without them?

/// The string literals outside of comments and of tests; raw ones are patterns and are left out. Escapes are resolved, white
/// space is one space.
pub(crate) fn rust(source: &str) -> Vec<String> {
    let source = source.split("#[cfg(test)]").next().unwrap_or_default();
    parts(source).into_iter().filter(|part| part.kind == Kind::Text).map(|part| plain(part.text)).collect()
}

/// The code alone: no comment, no text.
pub(crate) fn code(source: &str) -> String {
    parts(source).iter().map(|part| if part.kind == Kind::Code { part.text } else { " " }).collect()
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Code,
    Text,
    Other,
}

struct Part<'a> {
    kind: Kind,
    text: &'a str,
}

fn parts(source: &str) -> Vec<Part<'_>> {
    let bytes = source.as_bytes();
    let mut parts = Vec::new();
    let (mut at, mut from) = (0, 0);
    while at < bytes.len() {
        let rest = &source[at..];
        // Length of what is no code, and where its text is.
        let other = if rest.starts_with("//") {
            Some((Kind::Other, rest.find('\n').unwrap_or(rest.len()), 0, 0))
        } else if rest.starts_with("/*") {
            Some((Kind::Other, rest.find("*/").map_or(rest.len(), |end| end + 2), 0, 0))
        } else if let Some(hashes) = raw(rest, at.checked_sub(1).map(|before| bytes[before])) {
            let end = format!("\"{}", "#".repeat(hashes));
            let open = hashes + 2;
            let length = rest
                .get(open..)
                .and_then(|text| text.find(&end))
                .map_or(rest.len(), |at| open + at + end.len());
            Some((Kind::Other, length, 0, 0))
        } else if rest.starts_with('"') {
            let length = quoted(rest);
            Some((Kind::Text, length, 1, 1))
        } else {
            character(rest).map(|length| (Kind::Other, length, 0, 0))
        };
        let Some((kind, length, head, tail)) = other else {
            at += rest.chars().next().map_or(1, char::len_utf8);
            continue;
        };
        parts.push(Part { kind: Kind::Code, text: &source[from..at] });
        let end = (at + length).min(source.len());
        parts.push(Part {
            kind,
            text: source.get(at + head..end.saturating_sub(tail).max(at + head)).unwrap_or_default(),
        });
        at = end;
        from = end;
    }
    parts.push(Part { kind: Kind::Code, text: &source[from..] });
    parts
}

/// The number of `#` of a raw text that begins here.
fn raw(rest: &str, before: Option<u8>) -> Option<usize> {
    if before.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_') && before != Some(b'b') {
        return None;
    }
    let rest = rest.strip_prefix('r')?;
    let hashes = rest.len() - rest.trim_start_matches('#').len();
    rest[hashes..].starts_with('"').then_some(hashes)
}

/// The length of a text with its quotes.
fn quoted(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// The length of a character in quotes; a lifetime is none.
fn character(rest: &str) -> Option<usize> {
    let inside = rest.strip_prefix('\'')?;
    let mut chars = inside.char_indices();
    let (_, first) = chars.next()?;
    if first == '\\' {
        return inside.get(2..)?.find('\'').map(|at| at + 4);
    }
    let (at, second) = chars.next()?;
    (second == '\'').then_some(at + 2)
}

/// A text as it is read: a line that goes on has no break, and white space is one space.
fn plain(text: &str) -> String {
    let text = text.replace("\\n", " ").replace("\\\"", "\"").replace("\\x20", " ").replace("\\\n", "");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_and_code_is_what_is_left() {
        let source = "/// a \"doc\"\nfn f<'a>(kept: &'a str) -> char { // \"no\"\n    g(\"one \\\"two\\\" \\\n     three\", r#\"raw \"x\" \"#, '\"', '\\'', b\"bytes\"); 'x' }";
        assert_eq!(rust(source), ["one \"two\" three", "bytes"]);
        let code = code(source);
        assert!(code.contains("fn f<'a>(kept: &'a str) -> char {"), "{code}");
        assert!(!code.contains("two") && !code.contains("raw") && !code.contains("doc"), "{code}");
        assert!(code.ends_with(" }"), "{code}");
    }

    #[test]
    fn tests_and_ends_without_a_quote_are_no_trouble() {
        assert_eq!(rust("a(\"x\")\n#[cfg(test)]\nmod tests { b(\"y\") }"), ["x"]);
        assert_eq!(rust("a(\"x"), [""]);
        assert_eq!(code("'"), "'");
        assert_eq!(rust("let br = r; \"x\""), ["x"]);
    }
}
