//! How is a figure spelt? Bytes, counts, shares, durations and rates, the one way for every sentence and table.
//!
//! Pure functions that take any value: what is no number is "unknown", a value past what makes sense ends in `+`, a
//! minus stands before what is shown as more than nothing. A figure has at most five digits; counts are exact below
//! ten million, because people compare them with a limit digit by digit.

/// Counts from here on are rounded.
const EXACT_BELOW: u64 = 10_000_000;
/// The largest share shown, percent.
const MOST_PERCENT: f64 = 9999.0;
/// The longest time shown.
const MOST_YEARS: f64 = 100.0;
const DAY_S: f64 = 86_400.0;
const MOST_DAYS: f64 = MOST_YEARS * 365.0;

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

/// `65,530`, `1,048,576`, `12.3 million`.
pub fn count(n: u64) -> String {
    const NAMES: [&str; 5] = ["million", "billion", "trillion", "quadrillion", "quintillion"];
    if n < EXACT_BELOW {
        return grouped(n);
    }
    let mut value = n as f64 / 1e6;
    let mut name = 0;
    while value >= 999.5 && name + 1 < NAMES.len() {
        value /= 1000.0;
        name += 1;
    }
    format!("{} {}", three_digits(value), NAMES[name])
}

/// `1 process`, `3 processes`.
pub fn plural(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// Any number: `65,530`, `3.25`, `-0.5`, `under 0.01`.
pub fn number(n: f64) -> String {
    match n.abs() {
        _ if n.is_nan() => "unknown".into(),
        0.0 => "0".into(),
        size if size < 0.005 => (if n < 0.0 { "over -0.01" } else { "under 0.01" }).into(),
        size if size < 999.95 && size.fract() != 0.0 => {
            signed(n, &trimmed(size, if size < 9.995 { 2 } else { 1 }))
        }
        size => signed(n, &count(saturated(size))),
    }
}

/// `250 ms`, `12.3 s`, `4 min 5 s`, `2 h 3 min`, `3 d 4 h`, `400 d`.
pub fn duration(seconds: f64) -> String {
    let size = seconds.abs();
    let text = match size {
        _ if size.is_nan() => return "unknown time".into(),
        0.0 => return "0 s".into(),
        s if s < 0.0995 => format!("{:.0} ms", (s * 1000.0).ceil()),
        s if s < 59.95 => format!("{s:.1} s"),
        s if s > MOST_DAYS * DAY_S => format!("{MOST_YEARS}+ years"),
        s => long_duration(s.round() as u64),
    };
    signed(seconds, &text)
}

fn long_duration(seconds: u64) -> String {
    let (large, large_unit, small, small_unit) = match seconds {
        0..=3599 => (seconds / 60, "min", seconds % 60, "s"),
        3600..=86_399 => (seconds / 3600, "h", seconds % 3600 / 60, "min"),
        _ => (seconds / 86_400, "d", seconds % 86_400 / 3600, "h"),
    };
    if small == 0 || large >= 1000 || (large >= 100 && large_unit == "d") {
        format!("{} {large_unit}", count(large))
    } else {
        format!("{large} {large_unit} {small} {small_unit}")
    }
}

/// A share from 0 to 1 as per cent: `0.2 %`, `97 %`, `under 0.01 %`.
pub fn share(share: f64) -> String {
    let percent = share * 100.0;
    let size = percent.abs();
    let text = match size {
        _ if size.is_nan() => return "unknown".into(),
        0.0 => return "0 %".into(),
        p if p < 0.005 => {
            return (if percent < 0.0 { "over -0.01 %" } else { "under 0.01 %" }).into();
        }
        p if p < 0.995 => trimmed(p, 2),
        p if p < 9.95 => trimmed(p, 1),
        p if p < MOST_PERCENT => grouped(p.round() as u64),
        _ => format!("{}+", grouped(MOST_PERCENT as u64)),
    };
    format!("{} %", signed(percent, &text))
}

/// A number with its unit: `254 MiB`, `65,530 mappings`, `12.3 s`, `40 %`.
pub fn amount(n: f64, unit: &str) -> String {
    match unit {
        "seconds" | "s" => duration(n),
        "share" => share(n),
        "bytes" if n.is_nan() => "unknown".into(),
        "bytes" => whole_bytes(n),
        "" => number(n),
        other => format!("{} {}", number(n), if n == 1.0 { singular(other) } else { other }),
    }
}

/// A count or bytes: `65,530`, `254 MiB`. The unit's name stands only where the number does not carry it.
pub fn quantity(n: u64, unit: &str) -> String {
    if unit == "bytes" {
        bytes(n)
    } else {
        count(n)
    }
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

/// How fast something changes: `3.4 MiB a second`, `2 a minute`, `-90 a day`, `steady`.
pub fn rate(per_second: f64, unit: &str) -> String {
    if per_second.is_nan() {
        return "unknown rate".into();
    }
    let per = [("a second", 1.0), ("a minute", 60.0), ("an hour", 3600.0), ("a day", DAY_S)];
    let size = per_second.abs();
    // A rate is told by the time in which one is gained; what is less than one a day is told by the day, or not.
    let (name, n) = per
        .iter()
        .map(|(name, seconds)| (*name, size * seconds))
        .find(|(_, n)| *n >= 1.0)
        .unwrap_or(("a day", size * DAY_S));
    match unit {
        "bytes" if n < 1.0 => "steady".into(),
        "bytes" => format!("{} {name}", signed(per_second, &bytes(saturated(n)))),
        _ if n < 0.05 => "steady".into(),
        _ if n < 9.95 => format!("{} {name}", signed(per_second, &trimmed(n, 1))),
        _ => format!("{} {name}", signed(per_second, &count(saturated(n)))),
    }
}

/// `1 process`, not `1 processes`.
fn singular(unit: &str) -> &str {
    unit.strip_suffix("sses")
        .map_or_else(|| unit.strip_suffix('s').unwrap_or(unit), |_| &unit[..unit.len() - 2])
}

fn whole_bytes(n: f64) -> String {
    match saturated(n.abs()) {
        0 => bytes(0),
        whole => signed(n, &bytes(whole)),
    }
}

fn signed(n: f64, text: &str) -> String {
    if n < 0.0 {
        format!("-{text}")
    } else {
        text.to_owned()
    }
}

/// The nearest integer, the largest where there is none so large.
fn saturated(n: f64) -> u64 {
    n.round() as u64
}

fn grouped(n: u64) -> String {
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
