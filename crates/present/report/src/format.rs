//! How does a value look? The one place that decides it, for every report and for the terminal; figures look as findings
//! spell them.
//!
//! Pure functions of values. The surprise: text that came out of the job (names, messages, commands) may
//! hold escape sequences that would repaint the reader's terminal, so it all passes through [`clean`].

pub use ullage_model::figures::{
    amount, bytes, count, duration, number, plural, quantity, rate, share, signal,
};
use ullage_model::{At, EvidenceValue, Limit, Measured, Missing, Unit};

/// A limit in its unit: `65,530`, `8 GiB`, `unlimited`.
pub fn limit(limit: Limit, unit: &str) -> String {
    limit.at().map_or_else(|| "unlimited".into(), |n| quantity(n, unit))
}

/// A value, or in brackets why there is none: `(no permission)`.
pub fn measured<T>(value: &Measured<T>, show: impl FnOnce(&T) -> String) -> String {
    match value {
        Measured::Known(value) => show(value),
        Measured::Missing(reason) => missing(*reason),
    }
}

/// Why there is no value: `(no permission)`.
pub fn missing(reason: Missing) -> String {
    format!("({})", reason.reason())
}

/// An evidence's value beside its limit: `65,530 of 65,530 mappings`, `11 (no limit)`.
pub fn reading(value: &EvidenceValue, beside: Option<Limit>) -> String {
    match (value, beside) {
        (EvidenceValue::Text(text), _) => clean(text),
        (EvidenceValue::Missing(reason, _), _) => missing(*reason),
        (EvidenceValue::Number(n, unit), None) => amount(*n, unit.word()),
        (EvidenceValue::Number(n, unit), Some(Limit::Unlimited)) => {
            format!("{}, unlimited", amount(*n, unit.word()))
        }
        (EvidenceValue::Number(n, unit), Some(Limit::At(max))) => {
            let used = if *unit == Unit::Bytes { amount(*n, unit.word()) } else { number(*n) };
            format!("{used} of {}", amount(max as f64, unit.word()))
        }
    }
}

/// Time since the start of the run: `at 12.3 s`.
pub fn at(at: At) -> String {
    format!("at {}", duration(at.seconds()))
}

/// A command as a person would type it, with quotes where a shell needs them.
pub fn command(words: &[String]) -> String {
    let quoted: Vec<String> = words
        .iter()
        .map(|word| {
            let safe = |c: char| c.is_alphanumeric() || "_-./=:,+@%".contains(c);
            if !word.is_empty() && word.chars().all(safe) {
                word.clone()
            } else {
                format!("'{}'", word.replace('\'', r"'\''"))
            }
        })
        .collect();
    clean(&quoted.join(" "))
}

/// Text of the job made safe to print: control characters are shown, not obeyed; newlines become spaces.
pub fn clean(text: &str) -> String {
    clean_lines(text).replace(['\n', '\t'], " ")
}

/// Like [`clean`], with its newlines and tabs left in place: for commands and code of several lines.
pub fn clean_lines(text: &str) -> String {
    text.chars().map(|c| if is_steering(c) { '\u{fffd}' } else { c }).collect()
}

/// A finished screen on its way to the terminal. The reports have cleaned what the job said; this holds for what any of
/// them forgot: no escape sequence leaves but for the colours that [`crate::text::Style`] gives.
pub fn clean_screen(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(escape) = rest.find('\u{1b}') {
        out.push_str(&clean_lines(&rest[..escape]));
        let colour = colour_length(&rest[escape..]);
        out.push_str(if colour > 0 { &rest[escape..escape + colour] } else { "\u{fffd}" });
        rest = &rest[escape + colour.max(1)..];
    }
    out.push_str(&clean_lines(rest));
    out
}

/// Bytes of the sequence that sets colours, `ESC [ 1 ; 31 m`, with which the text begins; 0 where it begins otherwise.
fn colour_length(text: &str) -> usize {
    let Some(rest) = text.strip_prefix("\u{1b}[") else { return 0 };
    let numbers = rest.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(rest.len());
    if rest[numbers..].starts_with('m') {
        numbers + 3
    } else {
        0
    }
}

/// JSON on its way to where people may look at it: the same values, with such characters escaped. They can only stand in
/// its strings.
pub fn clean_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if is_steering(c) {
            // All of them lie in the first plane, so that one escape holds them.
            out.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    out
}

/// Control characters but for newline and tab (C1 too: U+009B begins an escape sequence), and those that turn the
/// direction of writing.
fn is_steering(c: char) -> bool {
    let turning =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turning || (c.is_control() && c != '\n' && c != '\t')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn readings_name_value_limit_and_unit_once() {
        let n = |n: f64, things: &'static str| EvidenceValue::Number(n, Unit::Of(things));
        let full = n(65_530.0, "mappings");
        assert_eq!(reading(&full, Some(Limit::At(65_530))), "65,530 of 65,530 mappings");
        let bytes = EvidenceValue::Number(1048576.0, Unit::Bytes);
        assert_eq!(reading(&bytes, Some(Limit::At(2 << 30))), "1 MiB of 2 GiB");
        assert_eq!(reading(&n(7.0, "processes"), Some(Limit::Unlimited)), "7 processes, unlimited");
        assert_eq!(reading(&n(1.0, "processes"), None), "1 process");
        assert_eq!(reading(&n(1.0, "kills"), None), "1 kill");
        assert_eq!(
            reading(&EvidenceValue::Missing(Missing::NoPermission, Unit::Bytes), None),
            "(no permission)"
        );
        assert_eq!(reading(&n(f64::NAN, ""), None), "unknown");
    }

    #[test]
    fn a_message_of_the_job_cannot_steer_the_terminal() {
        assert_eq!(clean("a\u{1b}[2Jb\nc\u{7}"), "a\u{fffd}[2Jb c\u{fffd}");
        assert_eq!(clean("\u{202e}gpj"), "\u{fffd}gpj");
        assert_eq!(clean_lines("a\n\tb\r"), "a\n\tb\u{fffd}");
        assert_eq!(
            clean_screen("\u{1b}[1;31mred\u{1b}[0m\u{1b}[2J\u{9b}1m\u{1b}"),
            "\u{1b}[1;31mred\u{1b}[0m\u{fffd}[2J\u{fffd}1m\u{fffd}"
        );
    }

    #[test]
    fn json_preserves_its_values_and_shows_what_would_steer() {
        let value = serde_json::json!({"a\u{9b}": "b\u{202e}\u{7f}\n", "c": ["\u{200f}"]});
        let text = clean_json(&format!("{value:#}\n"));
        assert!(text.contains(r"\u009b") && text.contains(r"\u202e") && text.contains(r"\u007f"), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }

    /// Any text, with more of what steers than chance would have it.
    fn any_text() -> impl Strategy<Value = String> {
        let one = prop_oneof![
            any::<char>(),
            prop::sample::select(STEERING.to_vec()),
            prop::sample::select(vec!['[', 'm', ';', '1'])
        ];
        prop::collection::vec(one, 0..40).prop_map(|chars| chars.into_iter().collect())
    }

    const STEERING: [char; 13] = [
        '\u{0}', '\u{7}', '\u{8}', '\r', '\u{1b}', '\u{7f}', '\u{80}', '\u{9b}', '\u{9f}', '\u{61c}',
        '\u{200e}', '\u{202e}', '\u{2069}',
    ];

    proptest! {
        #[test]
        fn nothing_that_steers_leaves(text in any_text()) {
            let steers = |text: &str| text.chars().any(|c| c.is_control() && !"\n\t".contains(c) || STEERING.contains(&c));
            let screen = clean_screen(&text);
            let mut colourless = screen.clone();
            for (at, _) in screen.match_indices('\u{1b}').collect::<Vec<_>>().into_iter().rev() {
                let end = at + screen[at..].find('m').unwrap() + 1;
                prop_assert!(screen[at + 1..end].chars().all(|c| "[;m".contains(c) || c.is_ascii_digit()));
                colourless.replace_range(at..end, "");
            }
            prop_assert!(!steers(&colourless), "{screen:?}");
            prop_assert_eq!(clean_screen(&screen), screen.clone(), "done twice it is the same");
            prop_assert!(!steers(&clean(&text)) && !steers(&clean_lines(&text)) && !clean(&text).contains('\n'));
            let json = clean_json(&serde_json::json!({ text.clone(): text }).to_string());
            prop_assert!(!steers(&json));
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap(), serde_json::json!({ text.clone(): text }));
        }
    }

    #[test]
    fn commands_are_quoted_for_a_shell() {
        let words = ["python", "-c", "print('x')", ""].map(String::from);
        assert_eq!(command(&words), r"python -c 'print('\''x'\'')' ''");
    }

    #[test]
    fn signals_have_names() {
        assert_eq!(signal(9), "SIGKILL");
        assert_eq!(signal(7), "SIGBUS");
        assert_eq!(signal(31), "SIGSYS");
        assert_eq!(signal(0), "signal 0");
        assert_eq!(signal(40), "signal 40");
    }

    #[test]
    fn limits_and_missing_values_have_words() {
        assert_eq!(limit(Limit::Unlimited, "bytes"), "unlimited");
        assert_eq!(limit(Limit::At(2048), "bytes"), "2 KiB");
        let gone: Measured<u64> = Measured::Missing(Missing::Vanished);
        assert_eq!(measured(&gone, |n| count(*n)), "(ended before it could be read)");
    }
}
