//! Figures as people read them: known ones, and for every value of every function the rules that hold for all.
#![allow(clippy::unwrap_used, missing_docs)]

use proptest::prelude::*;
use ullage_model::figures::{amount, bytes, count, duration, number, plural, rate, share};

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
fn counts_are_exact_as_long_as_anybody_compares_them() {
    assert_eq!(count(0), "0");
    assert_eq!(count(999), "999");
    assert_eq!(count(65_530), "65,530");
    assert_eq!(count(1_048_576), "1,048,576");
    assert_eq!(count(9_999_999), "9,999,999");
    assert_eq!(count(10_000_000), "10 million");
    assert_eq!(count(999_500_000), "1 billion");
    assert_eq!(count(u64::MAX), "18.4 quintillion");
    assert_eq!(plural(1, "process", "processes"), "1 process");
    assert_eq!(plural(0, "process", "processes"), "0 processes");
}

#[test]
fn durations_use_at_most_two_units() {
    let cases = [
        (0.0, "0 s"),
        (-0.0, "0 s"),
        (f64::MIN_POSITIVE / 2.0, "1 ms"),
        (0.0004, "1 ms"),
        (-0.0004, "-1 ms"),
        (0.25, "0.2 s"),
        (12.34, "12.3 s"),
        (59.96, "1 min"),
        (245.0, "4 min 5 s"),
        (7380.0, "2 h 3 min"),
        (273_600.0, "3 d 4 h"),
        (34_563_600.0, "400 d"),
        (-2.0, "-2.0 s"),
        (f64::NAN, "unknown time"),
        (1e30, "100+ years"),
        (f64::INFINITY, "100+ years"),
    ];
    for (seconds, text) in cases {
        assert_eq!(duration(seconds), text, "{seconds}");
    }
}

#[test]
fn shares_are_per_cent_and_a_little_is_not_nothing() {
    assert_eq!(share(0.0), "0 %");
    assert_eq!(share(-0.0), "0 %");
    assert_eq!(share(0.00004), "under 0.01 %");
    assert_eq!(share(-1e-300), "over -0.01 %");
    assert_eq!(share(0.002), "0.2 %");
    assert_eq!(share(0.0125), "1.2 %");
    assert_eq!(share(0.97), "97 %");
    assert_eq!(share(f64::NAN), "unknown");
    assert_eq!(share(1e300), "9,999+ %");
}

#[test]
fn a_rate_is_given_by_the_time_in_which_something_is_gained_or_lost() {
    assert_eq!(rate(3.12, "descriptors"), "3.1 a second");
    assert_eq!(rate(5200.0, "mappings"), "5,200 a second");
    assert_eq!(rate(0.25, "tasks"), "15 a minute");
    assert_eq!(rate(0.001, "tasks"), "3.6 an hour");
    assert_eq!(rate(0.00001, "tasks"), "0.9 a day");
    assert_eq!(rate(3_565_158.4, "bytes"), "3.4 MiB a second");
    assert_eq!(rate(-312_523_907.5, "bytes"), "-298 MiB a second");
    assert_eq!(rate(-0.25, "tasks"), "-15 a minute");
    assert_eq!(rate(0.0, "bytes"), "steady");
    assert_eq!(rate(-0.0, "tasks"), "steady");
    assert_eq!(rate(f64::NAN, "bytes"), "unknown rate");
    assert_eq!(rate(f64::INFINITY, "bytes"), "16 EiB a second");
}

#[test]
fn amounts_carry_their_unit_in_the_right_number() {
    assert_eq!(amount(1.0, "processes"), "1 process");
    assert_eq!(amount(1.0, "kills"), "1 kill");
    assert_eq!(amount(0.0, "mappings"), "0 mappings");
    assert_eq!(amount(-5.0, "bytes"), "-5 bytes");
    assert_eq!(amount(-0.2, "bytes"), "0 bytes");
    assert_eq!(amount(1536.4, "bytes"), "1.5 KiB");
    assert_eq!(amount(0.5, "share"), "50 %");
    assert_eq!(number(3.256), "3.26");
    assert_eq!(number(-0.0), "0");
    assert_eq!(number(-0.001), "over -0.01");
    assert_eq!(number(0.001), "under 0.01");
    assert_eq!(number(f64::NEG_INFINITY), "-18.4 quintillion");
}

/// Every kind of f64, absurd ones among them more often than chance would have it.
fn any_f64() -> impl Strategy<Value = f64> {
    let absurd = [
        0.0,
        -0.0,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MIN_POSITIVE,
        f64::MIN_POSITIVE / 4.0,
        f64::MAX,
        f64::MIN,
        u64::MAX as f64,
        -(u64::MAX as f64),
        59.95,
        0.0995,
        999.95,
        86_400.0,
    ];
    prop_oneof![
        any::<u64>().prop_map(f64::from_bits),
        prop::sample::select(absurd.to_vec()),
        -1e6..1e6,
        -1e13..1e13,
        -2.0..2.0,
    ]
}

fn any_u64() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0u64..5000,
        (0u32..64, -3i64..4).prop_map(|(bit, by)| (1u64 << bit).saturating_add_signed(by)),
        (0u32..19, -3i64..4).prop_map(|(tens, by)| 10u64.pow(tens).saturating_add_signed(by)),
    ]
}

/// Every figure of a value that may be anything.
fn figures_of(n: f64) -> Vec<String> {
    let mut all = vec![number(n), duration(n), share(n)];
    for unit in ["bytes", "mappings", "processes", "", "seconds", "share"] {
        all.push(amount(n, unit));
        all.push(rate(n, unit));
    }
    all
}

/// What is read back from a figure: its value in the smallest unit.
fn read_back(text: &str) -> f64 {
    const SIZES: &[(&str, f64)] = &[
        ("KiB", 1024.0),
        ("MiB", 1_048_576.0),
        ("GiB", 1_073_741_824.0),
        ("TiB", 1_099_511_627_776.0),
        ("PiB", 1_125_899_906_842_624.0),
        ("EiB", 1_152_921_504_606_846_976.0),
        ("million", 1e6),
        ("billion", 1e9),
        ("trillion", 1e12),
        ("quadrillion", 1e15),
        ("quintillion", 1e18),
        ("ms", 0.001),
        ("min", 60.0),
        ("h", 3600.0),
        ("d", 86_400.0),
        ("years", 365.0 * 86_400.0),
        ("minute", 1.0 / 60.0),
        ("hour", 1.0 / 3600.0),
        ("day", 1.0 / 86_400.0),
    ];
    if text == "steady" {
        return 0.0;
    }
    let (sign, text) = text.strip_prefix('-').map_or((1.0, text), |text| (-1.0, text));
    let (mut sum, mut value) = (0.0, 0.0);
    for word in text.split(' ') {
        let digits: String = word.chars().filter(|c| !",+".contains(*c)).collect();
        match digits.parse::<f64>() {
            Ok(next) => {
                sum += value;
                value = next;
            }
            Err(_) => {
                value *= SIZES.iter().find(|(name, _)| *name == word).map_or(1.0, |(_, size)| *size);
            }
        }
    }
    // Just below the least that is shown.
    let little = if text.starts_with("under") || text.starts_with("over") { 0.1 } else { 1.0 };
    sign * little * (sum + value)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn no_figure_is_garbage(n in any_f64()) {
        for text in figures_of(n) {
            prop_assert!(!text.is_empty() && !text.contains("NaN") && !text.contains("inf"), "{n:e}: {text}");
            let zero = text.strip_prefix('-').is_some_and(|rest| read_back(rest) == 0.0);
            prop_assert!(!zero, "{n:e}: {text}");
            prop_assert!(!text.contains("--") && !text.contains("  "), "{n:e}: {text}");
        }
    }

    #[test]
    fn no_figure_is_long(n in any_f64(), whole in any_u64()) {
        let exact = |text: &String| text.chars().filter(char::is_ascii_digit).count() <= 7;
        prop_assert!(figures_of(n).iter().all(exact), "{n:e}: {:?}", figures_of(n));
        for text in [bytes(whole), duration(n), share(n), rate(n, "bytes"), amount(n, "bytes")] {
            let digits = text.chars().filter(char::is_ascii_digit).count();
            prop_assert!(digits <= 5, "{text}");
        }
        prop_assert!(exact(&count(whole)), "{}", count(whole));
    }

    #[test]
    fn the_sign_is_preserved_of_all_that_is_more_than_nothing(n in any_f64()) {
        prop_assume!(!n.is_nan());
        for text in figures_of(n) {
            let nothing = text == "steady" || text.starts_with('0');
            prop_assert_eq!(text.contains('-'), n < 0.0 && !nothing, "{:e}: {}", n, text);
        }
    }

    #[test]
    fn the_larger_value_has_no_smaller_figure(a in any_f64(), b in any_f64(), close in 0.9..1.1) {
        prop_assume!(!a.is_nan() && !b.is_nan());
        for b in [b, a * close] {
            let (small, large) = if a <= b { (a, b) } else { (b, a) };
            for (one, other) in figures_of(small).iter().zip(figures_of(large)) {
                if small.is_sign_negative() != large.is_sign_negative() {
                    continue; // "over -0.01" and "under 0.01" read back in their own way.
                }
                let slack = read_back(&other).abs() * 1e-9;
                prop_assert!(read_back(one) <= read_back(&other) + slack, "{small:e} {large:e}: {one} {other}");
            }
        }
    }

    #[test]
    fn more_bytes_or_more_of_a_count_have_no_smaller_figure(a in any_u64(), b in any_u64()) {
        let (small, large) = (a.min(b), a.max(b));
        prop_assert!(read_back(&bytes(small)) <= read_back(&bytes(large)) * 1.000_001);
        prop_assert!(read_back(&count(small)) <= read_back(&count(large)) * 1.000_001);
    }

    #[test]
    fn one_is_singular_and_nothing_else(n in any_f64(), whole in any_u64()) {
        prop_assert_eq!(amount(n, "processes").ends_with(" process"), n == 1.0);
        prop_assert_eq!(bytes(whole).ends_with(" byte"), whole == 1);
        prop_assert_eq!(plural(whole, "process", "processes").ends_with(" process"), whole == 1);
    }
}
