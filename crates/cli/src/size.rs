//! Sizes of memory as people write them: `512M`, `2G`, `25%`.

/// Parses a size: a number with K, M, G or T, `%` of the machine's memory, or plain bytes.
///
/// K, M, G and T are powers of 1024, as in `sort -S`. K may be KB or KiB, and so on. The number may have decimals, but bytes are whole.
///
/// # Errors
/// A sentence with an example of a valid size.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let expected =
        || "expected a number with K, M, G, T or %, such as 512M, 1.5G or 25%".to_string();
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let number = &text[..text.len() - unit.len()];
    let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
    let whole: u64 = whole.parse().map_err(|_| expected())?;
    if decimals.is_empty() || !decimals.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(expected());
    }
    let decimals: f64 = format!("0.{decimals}").parse().map_err(|_| expected())?;
    let shift = match unit {
        "" | "B" if number.contains('.') => return Err(expected()),
        "" | "B" => 0,
        "K" | "KB" | "KiB" => 10,
        "M" | "MB" | "MiB" => 20,
        "G" | "GB" | "GiB" => 30,
        "T" | "TB" | "TiB" => 40,
        "%" => return share(whole as f64 + decimals),
        _ => return Err(expected()),
    };
    // Decimals of a terabyte are less than 2^40 bytes, which a float counts exactly.
    let part = (decimals * (1u64 << shift) as f64) as u64;
    let bytes = whole.checked_mul(1 << shift);
    match bytes.and_then(|bytes| bytes.checked_add(part)) {
        None => Err("more bytes than a 64-bit number can count".to_string()),
        Some(0) => Err("nothing can run in no memory".to_string()),
        Some(bytes) => Ok(bytes),
    }
}

/// Parses a size for a budget of this process.
///
/// # Errors
/// As for [`parse`]; the cgroup of this process may not take as much.
pub(crate) fn budget(text: &str) -> Result<u64, String> {
    let bytes = parse(text)?;
    match graphmill::advanced::memory_limit() {
        Some(limit) if bytes > limit => Err(format!(
            "the cgroup of this process may take {limit} bytes, and what takes more is killed: give less, or raise the limit"
        )),
        _ => Ok(bytes),
    }
}

/// Returns a share of the machine's memory, in bytes.
fn share(percent: f64) -> Result<u64, String> {
    if percent > 100.0 {
        return Err("expected 1% to 100% of the machine's memory".to_string());
    }
    if percent == 0.0 {
        return Err("nothing can run in no memory".to_string());
    }
    let total = graphmill::advanced::memory_total()
        .ok_or("the machine does not report its memory: give a size instead of %")?;
    Ok((total as f64 * percent / 100.0) as u64)
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

/// Parses the bytes of a chunk.
pub(crate) fn chunk(text: &str) -> Result<u64, String> {
    let bytes = parse(text).ok().filter(|_| !text.ends_with('%'));
    bytes.ok_or_else(|| "expected a number with K, M or G, such as 512K or 4M".to_string())
}

/// `bytes` in the largest unit that leaves at least one: `1.5 GiB`.
pub(crate) fn text(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["bytes", "KiB", "MiB", "GiB"] {
        match unit {
            _ if value >= 1024.0 => value /= 1024.0,
            "bytes" => return format!("{bytes} bytes"),
            unit => return format!("{value:.1} {unit}"),
        }
    }
    format!("{value:.1} TiB")
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
    fn size_units_are_powers_of_1024() {
        assert_eq!(parse("4096"), Ok(4096));
        assert_eq!(parse("1K"), Ok(1024));
        assert_eq!(parse("512M"), Ok(512 << 20));
        assert_eq!(parse("2G"), Ok(2 << 30));
        assert_eq!(parse("2GiB"), Ok(2 << 30));
        assert_eq!(parse("2GB"), Ok(2 << 30));
        assert_eq!(parse("1.5G"), Ok(3 << 29));
        assert_eq!(parse("0.25MiB"), Ok(1 << 18));
        assert_eq!(parse("1T"), Ok(1 << 40));
        assert!(parse("50%").is_ok_and(|bytes| bytes > 0));
    }

    #[test]
    fn size_text_that_is_no_size_is_refused() {
        for text in [
            "",
            "G",
            "1.5",
            "1.G",
            ".5G",
            "1.5.5G",
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
    fn sizes_and_counts_are_short() {
        assert_eq!(text(512), "512 bytes");
        assert_eq!(text(3 << 29), "1.5 GiB");
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }
}
