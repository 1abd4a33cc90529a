//! How much memory a failed request asked for, as far as its message says.

use crate::policy::given::KIB;

/// Bytes from torch's, numpy's and mmap's messages.
pub(crate) fn requested_bytes(text: &str) -> Option<u64> {
    for before in ["you tried to allocate ", "unable to mmap "] {
        if let Some(start) = text.find(before) {
            let digits: String =
                text[start + before.len()..].chars().take_while(char::is_ascii_digit).collect();
            if let Ok(bytes) = digits.parse() {
                return Some(bytes);
            }
        }
    }
    let rest = &text[text.find("Unable to allocate ")? + "Unable to allocate ".len()..];
    let mut words = rest.split_whitespace();
    let number: f64 = words.next()?.parse().ok()?;
    let unit = match words.next()? {
        "bytes" | "B" => 1.0,
        "KiB" => KIB,
        "MiB" => KIB.powi(2),
        "GiB" => KIB.powi(3),
        "TiB" => KIB.powi(4),
        "PiB" => KIB.powi(5),
        "EiB" => KIB.powi(6),
        _ => return None,
    };
    Some((number * unit) as u64)
}

#[cfg(test)]
mod tests {
    use super::requested_bytes;

    #[test]
    fn the_size_stands_in_the_message() {
        let torch = "DefaultCPUAllocator: can't allocate memory: you tried to allocate 17592186044416 bytes. Error code 12";
        assert_eq!(requested_bytes(torch), Some(1 << 44));
        let numpy =
            "Unable to allocate 32.0 TiB for an array with shape (4398046511104,) and data type float64";
        assert_eq!(requested_bytes(numpy), Some(32 << 40));
        assert_eq!(requested_bytes("unable to mmap 384 bytes from file </torch_1_2_3>"), Some(384));
        assert_eq!(requested_bytes("MemoryError"), None);
        assert_eq!(requested_bytes("Unable to allocate é"), None);
    }
}
