//! How does a value look? The one place that decides it, for every report and for the terminal.
//!
//! Pure functions of values. The surprise: text that came out of the job (names, messages, commands) may
//! hold escape sequences that would repaint the reader's terminal, so it all passes through [`clean`].

use ullage_model::{At, EvidenceValue, Limit, Measured, Missing};

/// `0 bytes`, `320 bytes`, `254 MiB`, `1.5 GiB`: three digits, powers of 1024.
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    match n {
        1 => return "1 byte".into(),
        0..=1023 => return format!("{n} bytes"),
        _ => {}
    }
    let mut value = n as f64 / 1024.0;
    let mut unit = 0;
    // 1023.6 KiB would round to a four-digit "1024 KiB".
    while value >= 1023.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{} {}", three_digits(value), UNITS[unit])
}

/// `65,530`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `250 ms`, `12.3 s`, `4 min 5 s`, `2 h 3 min`, `3 d 4 h`.
pub fn duration(seconds: f64) -> String {
    if !seconds.is_finite() {
        return "unknown time".into();
    }
    if seconds < 0.0 {
        return format!("-{}", duration(-seconds));
    }
    if seconds < 0.0995 {
        return format!("{:.0} ms", (seconds * 1000.0).ceil());
    }
    if seconds < 59.95 {
        return format!("{seconds:.1} s");
    }
    let whole = seconds.round() as u64;
    let (large, large_unit, small, small_unit) = match whole {
        0..=3599 => (whole / 60, "min", whole % 60, "s"),
        3600..=86_399 => (whole / 3600, "h", whole % 3600 / 60, "min"),
        _ => (whole / 86_400, "d", whole % 86_400 / 3600, "h"),
    };
    if small == 0 {
        format!("{} {large_unit}", count(large))
    } else {
        format!("{} {large_unit} {small} {small_unit}", count(large))
    }
}

/// A share from 0 to 1 as per cent: `0.2 %`, `97 %`, `under 0.01 %`.
pub fn share(share: f64) -> String {
    let percent = share * 100.0;
    if !percent.is_finite() {
        "unknown".into()
    } else if percent == 0.0 {
        "0 %".into()
    } else if percent.abs() < 0.01 {
        "under 0.01 %".into()
    } else if percent.abs() < 1.0 {
        format!("{} %", trimmed(percent, 2))
    } else if percent.abs() < 10.0 {
        format!("{} %", trimmed(percent, 1))
    } else {
        format!("{percent:.0} %")
    }
}

/// A number in its unit, without the unit's name where the number does not carry it: `254 MiB`, `65,530`.
pub fn quantity(n: u64, unit: &str) -> String {
    if unit == "bytes" {
        bytes(n)
    } else {
        count(n)
    }
}

/// A number with its unit: `254 MiB`, `65,530 mappings`, `12.3 s`, `40 %`.
pub fn amount(n: f64, unit: &str) -> String {
    match unit {
        "seconds" | "s" => duration(n),
        "share" => share(n),
        "bytes" => whole(n).map_or_else(|| plain_number(n), bytes),
        "" => plain_number(n),
        other => format!("{} {}", plain_number(n), clean(if n == 1.0 { singular(other) } else { other })),
    }
}

/// A growth: `3.4 MiB a second`, `2 a minute`, `90 a day`.
pub fn rate(per_second: f64, unit: &str) -> String {
    let per = [("a second", 1.0), ("a minute", 60.0), ("an hour", 3600.0)];
    let (name, seconds) =
        per.into_iter().find(|(_, seconds)| per_second * seconds >= 1.0).unwrap_or(("a day", 86_400.0));
    let n = per_second * seconds;
    let n = if unit == "bytes" { whole(n.round()).map_or_else(|| plain_number(n), bytes) } else { tenths(n) };
    format!("{n} {name}")
}

/// One digit after the point, where it says something.
fn tenths(n: f64) -> String {
    if n < 10.0 {
        trimmed(n, 1)
    } else {
        whole(n.round()).map_or_else(|| plain_number(n), count)
    }
}

/// `1 process`, not `1 processes`.
fn singular(unit: &str) -> &str {
    unit.strip_suffix("sses")
        .map_or_else(|| unit.strip_suffix('s').unwrap_or(unit), |_| &unit[..unit.len() - 2])
}

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
pub fn reading(value: &EvidenceValue, beside: Option<Limit>, unit: &str) -> String {
    match (value, beside) {
        (EvidenceValue::Text(text), _) => clean(text),
        (EvidenceValue::Missing(reason), _) => missing(*reason),
        (EvidenceValue::Number(n), None) => amount(*n, unit),
        (EvidenceValue::Number(n), Some(Limit::Unlimited)) => format!("{}, unlimited", amount(*n, unit)),
        (EvidenceValue::Number(n), Some(Limit::At(max))) => {
            let used = whole(*n).map_or_else(|| plain_number(*n), |n| quantity(n, unit));
            format!("{used} of {}", amount(max as f64, unit))
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

/// The name of a signal (signal(7), x86-64 numbers): `SIGKILL`, `signal 40`.
pub fn signal(number: i32) -> String {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE",
        "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ",
        "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
    ];
    match usize::try_from(number).ok().filter(|n| (1..=31).contains(n)) {
        Some(n) => format!("SIG{}", NAMES[n - 1]),
        None => format!("signal {number}"),
    }
}

/// Text of the job made safe to print: control characters are shown, not obeyed; newlines become spaces.
pub fn clean(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => ' ',
            c if is_steering(c) => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// Like [`clean`], with its newlines and tabs left in place: for commands and code of several lines.
pub fn clean_lines(text: &str) -> String {
    text.chars().map(|c| if c != '\n' && c != '\t' && is_steering(c) { '\u{fffd}' } else { c }).collect()
}

/// Control characters, and those that turn the direction of writing.
fn is_steering(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn plain_number(n: f64) -> String {
    match whole(n) {
        Some(n) => count(n),
        None if n.is_finite() => trimmed(n, 2),
        None => "unknown".into(),
    }
}

/// As an integer, where it is one that an f64 holds exactly.
pub(crate) fn whole(n: f64) -> Option<u64> {
    (n >= 0.0 && n.fract() == 0.0 && n < u64::MAX as f64).then_some(n as u64)
}

fn three_digits(value: f64) -> String {
    trimmed(value, if value >= 99.95 { 0 } else { 1 + usize::from(value < 9.995) })
}

fn trimmed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_three_digits_and_binary_units() {
        let cases = [
            (0, "0 bytes"),
            (1, "1 byte"),
            (320, "320 bytes"),
            (1023, "1023 bytes"),
            (1024, "1 KiB"),
            (1536, "1.5 KiB"),
            (10 * 1024 + 512, "10.5 KiB"),
            (1_048_575, "1 MiB"),
            (266_153_984, "254 MiB"),
            (1 << 40, "1 TiB"),
            (u64::MAX, "16 EiB"),
        ];
        for (n, text) in cases {
            assert_eq!(bytes(n), text);
        }
    }

    #[test]
    fn counts_are_grouped_by_three() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1000), "1,000");
        assert_eq!(count(65_530), "65,530");
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
    }

    #[test]
    fn durations_use_at_most_two_units() {
        let cases = [
            (0.0, "0 ms"),
            (0.0004, "1 ms"),
            (0.25, "0.2 s"),
            (12.34, "12.3 s"),
            (59.96, "1 min"),
            (245.0, "4 min 5 s"),
            (7380.0, "2 h 3 min"),
            (273_600.0, "3 d 4 h"),
            (-2.0, "-2.0 s"),
            (f64::NAN, "unknown time"),
            (1e30, "213,503,982,334,601 d 7 h"),
        ];
        for (seconds, text) in cases {
            assert_eq!(duration(seconds), text, "{seconds}");
        }
    }

    #[test]
    fn shares_are_per_cent_and_a_little_is_not_nothing() {
        assert_eq!(share(0.0), "0 %");
        assert_eq!(share(0.00004), "under 0.01 %");
        assert_eq!(share(0.002), "0.2 %");
        assert_eq!(share(0.0125), "1.2 %");
        assert_eq!(share(0.97), "97 %");
        assert_eq!(share(f64::NAN), "unknown");
    }

    #[test]
    fn a_rate_is_told_by_the_time_in_which_something_is_gained() {
        assert_eq!(rate(3.12, "descriptors"), "3.1 a second");
        assert_eq!(rate(5200.0, "mappings"), "5,200 a second");
        assert_eq!(rate(0.25, "tasks"), "15 a minute");
        assert_eq!(rate(0.001, "tasks"), "3.6 an hour");
        assert_eq!(rate(0.00001, "tasks"), "0.9 a day");
        assert_eq!(rate(3_565_158.4, "bytes"), "3.4 MiB a second");
    }

    #[test]
    fn readings_name_value_limit_and_unit_once() {
        let n = EvidenceValue::Number;
        assert_eq!(reading(&n(65_530.0), Some(Limit::At(65_530)), "mappings"), "65,530 of 65,530 mappings");
        assert_eq!(reading(&n(1048576.0), Some(Limit::At(2 << 30)), "bytes"), "1 MiB of 2 GiB");
        assert_eq!(reading(&n(7.0), Some(Limit::Unlimited), "processes"), "7 processes, unlimited");
        assert_eq!(reading(&n(0.5), None, "share"), "50 %");
        assert_eq!(reading(&n(1.0), None, "processes"), "1 process");
        assert_eq!(reading(&n(1.0), None, "kills"), "1 kill");
        assert_eq!(reading(&EvidenceValue::Missing(Missing::NoPermission), None, "bytes"), "(no permission)");
        assert_eq!(reading(&n(f64::INFINITY), None, ""), "unknown");
    }

    #[test]
    fn a_message_of_the_job_cannot_steer_the_terminal() {
        assert_eq!(clean("a\u{1b}[2Jb\nc\u{7}"), "a\u{fffd}[2Jb c\u{fffd}");
        assert_eq!(clean("\u{202e}gpj"), "\u{fffd}gpj");
        assert_eq!(clean_lines("a\n\tb\r"), "a\n\tb\u{fffd}");
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
