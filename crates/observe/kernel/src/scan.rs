//! Small steps over bytes that the parsers share: numbers, fields, lines, octal escapes. Nothing allocates
//! but [`unescape`].

/// An unsigned decimal number that fills `bytes`; `None` where it does not, or overflows.
pub(crate) fn number(bytes: &[u8]) -> Option<u64> {
    if bytes.is_empty() {
        return None;
    }
    bytes.iter().try_fold(0u64, |value, &byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit < 10).then_some(())?;
        value.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// A signed decimal number that fills `bytes`.
pub(crate) fn signed(bytes: &[u8]) -> Option<i64> {
    match bytes.strip_prefix(b"-") {
        Some(rest) => i64::try_from(number(rest)?).ok().map(|n| -n),
        None => i64::try_from(number(bytes)?).ok(),
    }
}

/// A hexadecimal number at the start of `bytes`, and what follows it.
pub(crate) fn hex_prefix(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0u64;
    let mut length = 0;
    while let Some(digit) = bytes.get(length).and_then(|&byte| hex_digit(byte)) {
        // 17 digits would not fit; the kernel prints at most 16.
        if length == 16 {
            return None;
        }
        value = (value << 4) | u64::from(digit);
        length += 1;
    }
    (length > 0).then(|| (value, &bytes[length..]))
}

fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

/// Lines without their newline. A last line without newline is a line; an empty end is none.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty())
}

/// Words between runs of blanks and tabs.
pub(crate) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&byte| byte == b' ' || byte == b'\t').filter(|word| !word.is_empty())
}

/// The number of a line `KEY VALUE` whose first word is `key`.
pub(crate) fn value_of(bytes: &[u8], key: &[u8]) -> Option<u64> {
    lines(bytes).find_map(|line| {
        let mut words = words(line);
        (words.next()? == key).then(|| words.next().and_then(number))?
    })
}

/// Bytes without blanks and newlines around them.
pub(crate) fn trim(bytes: &[u8]) -> &[u8] {
    bytes.trim_ascii()
}

/// First position of `needle`.
pub(crate) fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

/// Last position of `needle`.
pub(crate) fn find_last(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).rposition(|window| window == needle)
}

/// Text with `\040`-like escapes (mountinfo, maps) resolved; bytes that are not UTF-8 are replaced.
pub(crate) fn unescape(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&byte, tail)) = rest.split_first() {
        match (byte, tail) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..]) => {
                out.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
                rest = after;
            }
            _ => {
                out.push(byte);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fill_their_bytes_or_are_none() {
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(number(b"18446744073709551616"), None);
        assert_eq!(number(b""), None);
        assert_eq!(number(b"12 "), None);
        assert_eq!(signed(b"-12"), Some(-12));
        assert_eq!(hex_prefix(b"7fff-8"), Some((0x7fff, &b"-8"[..])));
        assert_eq!(hex_prefix(b"fffffffffffffffff"), None);
    }

    #[test]
    fn escapes_are_octal_of_three_digits() {
        assert_eq!(unescape(b"/a\\040b\\012c"), "/a b\nc");
        assert_eq!(unescape(b"/a\\04"), "/a\\04");
        assert_eq!(unescape(b"\\777"), "\\777");
    }

    #[test]
    fn a_key_is_a_whole_word() {
        assert_eq!(value_of(b"oom_kill_group 3\noom_kill 2\n", b"oom_kill"), Some(2));
        assert_eq!(value_of(b"oom_kill\n", b"oom_kill"), None);
    }
}
