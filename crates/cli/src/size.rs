//! Sizes of memory as people write them: `512M`, `2G`, `25%`.

/// Bytes of `text`: a number with K, M, G or T (powers of 1024, as in `sort -S`), `%` of the machine's memory, or nothing for bytes.
///
/// # Errors
/// A sentence that says what would have been right.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let expected = || "expected a whole number with K, M, G, T or %, such as 512M".to_string();
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| expected())?;
    let bytes = match unit {
        "" | "B" => Some(number),
        "K" | "KiB" => number.checked_mul(1 << 10),
        "M" | "MiB" => number.checked_mul(1 << 20),
        "G" | "GiB" => number.checked_mul(1 << 30),
        "T" | "TiB" => number.checked_mul(1 << 40),
        "%" if number > 100 => {
            return Err("expected 1% to 100% of the machine's memory".to_string());
        }
        "%" => {
            let total = graphmill::memory_total().ok_or(
                "the machine does not say how much memory it has: give a size instead of %",
            )?;
            Some((u128::from(total) * u128::from(number) / 100).min(u128::from(u64::MAX)) as u64)
        }
        _ => return Err(expected()),
    };
    match bytes {
        None => Err("more bytes than a 64-bit number can count".to_string()),
        Some(0) => Err("nothing can run in no memory".to_string()),
        Some(bytes) => Ok(bytes),
    }
}

/// Bytes a second that memory may give a thread: a number with K, M, G or T, from 1M to 1T.
///
/// # Errors
/// A sentence that says what would have been right.
pub(crate) fn bandwidth(text: &str) -> Result<u64, String> {
    let is_rate = |bytes: &u64| (1 << 20..=1 << 40).contains(bytes) && !text.ends_with('%');
    let expected = || "expected bytes a second from 1M to 1T, such as 6G".to_string();
    let bytes = parse(text).ok().filter(is_rate);
    bytes.ok_or_else(expected)
}

/// `bytes` in the largest unit that leaves at least one: `1.5 GiB`.
pub(crate) fn text(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["bytes", "KiB", "MiB", "GiB", "TiB"] {
        if value < 1024.0 || unit == "TiB" {
            return if unit == "bytes" {
                format!("{bytes} bytes")
            } else {
                format!("{value:.1} {unit}")
            };
        }
        value /= 1024.0;
    }
    format!("{bytes} bytes")
}

/// `count` with commas between the thousands.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_powers_of_1024() {
        assert_eq!(parse("4096"), Ok(4096));
        assert_eq!(parse("1K"), Ok(1024));
        assert_eq!(parse("512M"), Ok(512 << 20));
        assert_eq!(parse("2G"), Ok(2 << 30));
        assert_eq!(parse("2GiB"), Ok(2 << 30));
        assert_eq!(parse("1T"), Ok(1 << 40));
        assert!(parse("50%").is_ok_and(|bytes| bytes > 0));
    }

    #[test]
    fn what_is_not_a_size_is_refused() {
        for text in [
            "",
            "G",
            "1.5G",
            "1 G",
            "-1G",
            "0",
            "0M",
            "1Q",
            "99999999999T",
            "99999999999999999999",
            "101%",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        for text in ["0", "1", "1023K", "2T", "50%", "6 G"] {
            let said = bandwidth(text).expect_err(text);
            assert!(said.contains("1M to 1T"), "{text}: {said}");
        }
        assert_eq!(bandwidth("6G"), Ok(6 << 30));
    }

    #[test]
    fn sizes_and_counts_read_well() {
        assert_eq!(text(512), "512 bytes");
        assert_eq!(text(3 << 29), "1.5 GiB");
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }
}
