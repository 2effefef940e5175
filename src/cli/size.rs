//! Sizes of memory and of files: `512M`, `1.5GiB`.

/// A number of bytes, at least one: a number followed by K, M, G or T, which are powers of 1024, and optionally by `iB`
/// or `B`. Without a letter, the number is in bytes.
pub(super) fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at(text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len()));
    let shift = match unit.strip_suffix("iB").or(unit.strip_suffix('B')).unwrap_or(unit) {
        "" => 0,
        "K" | "k" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return None,
    };
    let number: f64 = number.trim().parse().ok()?;
    let bytes = number * (1u64 << shift) as f64;
    (bytes >= 1.0 && bytes < i64::MAX as f64).then_some(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_a_unit_of_1024_or_is_in_bytes() {
        for (text, expected) in [
            ("32M", 32 << 20),
            ("2G", 2 << 30),
            ("1.5GiB", 3 << 29),
            ("64MB", 64 << 20),
            ("33554432", 32 << 20),
            ("1 T", 1 << 40),
            ("64KiB", 64 << 10),
            ("1B", 1),
        ] {
            assert_eq!(bytes(text), Some(expected), "{text}");
        }
        for wrong in ["", "M", "0", "-1G", "1e30G", "9999999T", "nanG", "1 day", "1GiBiB", "iB"] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
    }
}
