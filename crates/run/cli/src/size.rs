//! How much: `16GiB`, `500M`, `1073741824`. One parser for every flag that takes a size.
//!
//! The surprise: `k`, `M`, `G`, `T` mean powers of 1024, as in `memory.max`, `ulimit` and `docker --memory`;
//! `kB`, `MB`, `GB`, `TB` mean powers of 1000.

use thiserror::Error;

/// Why a size was not understood.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum SizeError {
    /// No digits in front.
    #[error("`{0}` is not a size: write a number and a unit, for example 16GiB, 500M or 1073741824")]
    NotANumber(String),
    /// A unit that does not exist.
    #[error("`{unit}` in `{text}` is not a unit of size: use B, K, M, G, T (of 1024), KiB, MiB, GiB, TiB, or kB, MB, GB, TB (of 1000)")]
    UnknownUnit {
        /// What was typed.
        text: String,
        /// Its unit.
        unit: String,
    },
    /// Zero, or more than 2^63.
    #[error("`{0}` is not a usable size: it must be at least one byte and less than 8 EiB")]
    OutOfRange(String),
}

/// The bytes meant by `text`.
pub fn parse_size(text: &str) -> Result<u64, SizeError> {
    let trimmed = text.trim();
    let digits = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(digits);
    let number: f64 = number.parse().map_err(|_| SizeError::NotANumber(text.to_string()))?;
    let unit = unit.trim();
    let factor: f64 = match unit {
        "" | "B" | "b" => 1.0,
        "k" | "K" | "KiB" | "Ki" | "kib" => 1024.0,
        "m" | "M" | "MiB" | "Mi" | "mib" => 1024f64.powi(2),
        "g" | "G" | "GiB" | "Gi" | "gib" => 1024f64.powi(3),
        "t" | "T" | "TiB" | "Ti" | "tib" => 1024f64.powi(4),
        "kB" | "KB" | "kb" => 1e3,
        "MB" | "mb" => 1e6,
        "GB" | "gb" => 1e9,
        "TB" | "tb" => 1e12,
        _ => return Err(SizeError::UnknownUnit { text: text.to_string(), unit: unit.to_string() }),
    };
    let bytes = number * factor;
    if !(1.0..9.2e18).contains(&bytes) {
        return Err(SizeError::OutOfRange(text.to_string()));
    }
    Ok(bytes as u64)
}

/// The seconds meant by `1s`, `250ms`, `2`, `1m`.
pub fn parse_interval(text: &str) -> Result<f64, String> {
    let seconds = parse_length(text)?;
    if !(0.05..=3600.0).contains(&seconds) {
        return Err(format!("`{text}` is out of range: the interval may be from 50ms to 60m"));
    }
    Ok(seconds)
}

/// The seconds meant by a length of time, `90s`, `5m`, `2h`.
pub fn parse_length(text: &str) -> Result<f64, String> {
    let trimmed = text.trim();
    let digits = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(digits);
    let wrong = || format!("`{text}` is not a length of time: write for example 1s, 250ms, 2m or 30d");
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let seconds = match unit.trim() {
        "" | "s" => number,
        "ms" => number / 1000.0,
        "m" | "min" => number * 60.0,
        "h" => number * 3600.0,
        "d" => number * 86_400.0,
        _ => return Err(wrong()),
    };
    if seconds < 0.05 {
        return Err(format!("`{text}` is too short: 50ms is the shortest"));
    }
    Ok(seconds)
}

/// The share of one core meant by `0.5`, `0.5%`, `20 %`.
pub fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end();
    let wrong = || format!("`{text}` is not a percentage from 0.01 to 100: write for example 0.5 or 20%");
    if !number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return Err(wrong());
    }
    let percent: f64 = number.parse().map_err(|_| wrong())?;
    if !(0.01..=100.0).contains(&percent) {
        return Err(wrong());
    }
    Ok(percent / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_with_and_without_units() {
        assert_eq!(parse_size("16GiB"), Ok(16 << 30));
        assert_eq!(parse_size("500M"), Ok(500 << 20));
        assert_eq!(parse_size("1.5k"), Ok(1536));
        assert_eq!(parse_size("2 GB"), Ok(2_000_000_000));
        assert_eq!(parse_size("4096"), Ok(4096));
    }

    #[test]
    fn wrong_sizes_say_what_to_write() {
        for wrong in ["", "GiB", "-1G", "16QiB", "0", "1e3", "99999999T", "1..2G"] {
            let error = parse_size(wrong).expect_err(wrong).to_string();
            assert!(error.contains("size"), "{error}");
        }
    }

    #[test]
    fn intervals() {
        assert_eq!(parse_interval("1s"), Ok(1.0));
        assert_eq!(parse_interval("250ms"), Ok(0.25));
        assert_eq!(parse_interval("2"), Ok(2.0));
        for wrong in ["", "s", "2h", "0", "-1s", "1ms"] {
            assert!(parse_interval(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_length("2h"), Ok(7200.0));
    }

    #[test]
    fn percentages() {
        assert_eq!(parse_percent("0.5"), Ok(0.005));
        assert_eq!(parse_percent("20 %"), Ok(0.2));
        for wrong in ["", "%", "0", "-1", "101", "1e1", "nan", "half"] {
            assert!(parse_percent(wrong).is_err(), "{wrong}");
        }
    }
}
