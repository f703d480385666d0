//! Large counts and rates as people write them: `2^38`, `274e9`, `25gbit`.

/// Parses a whole number: digits, a power such as 2^38, or an exponent such as 1.5e9.
///
/// # Errors
/// A sentence with an example of a valid number.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let expected = || "expected a whole number, such as 1000000, 2^38 or 274e9".to_string();
    let beyond = || "more than a 64-bit number can count".to_string();
    if let Some((base, exponent)) = text.split_once('^') {
        let base: u64 = base.parse().map_err(|_| expected())?;
        let exponent: u32 = exponent.parse().map_err(|_| expected())?;
        return base.checked_pow(exponent).ok_or_else(beyond);
    }
    let Some((number, exponent)) = text.split_once(['e', 'E']) else {
        let is_number = !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
        return match is_number {
            true => text.parse().map_err(|_| beyond()),
            false => Err(expected()),
        };
    };
    // Decimals move into the exponent, so that nothing is rounded.
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{decimals}");
    if whole.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(expected());
    }
    let exponent: u32 = exponent.parse().map_err(|_| expected())?;
    let places = u32::try_from(decimals.len()).map_err(|_| expected())?;
    let shift = exponent.checked_sub(places).ok_or_else(expected)?;
    let digits: u64 = digits.parse().map_err(|_| beyond())?;
    let power = 10u64.checked_pow(shift).ok_or_else(beyond)?;
    digits.checked_mul(power).ok_or_else(beyond)
}

/// Bytes a second of `text`: a size a second, such as 2G, or bits with powers of 1000, such as 10gbit.
///
/// # Errors
/// A sentence that says what would have been right.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let expected = || "expected bytes a second, such as 2G, or bits, such as 10gbit".to_string();
    let lower = text.to_ascii_lowercase();
    let rate = match lower.strip_suffix("bit") {
        Some(bits) => {
            let units = [("k", 1e3), ("m", 1e6), ("g", 1e9), ("t", 1e12), ("", 1.0)];
            let number = |(unit, power)| Some((bits.strip_suffix(unit)?, power));
            let (number, power) = units.into_iter().find_map(number).ok_or_else(expected)?;
            let is_number = number.bytes().all(|c| c.is_ascii_digit() || c == b'.');
            let number: f64 = number.parse().map_err(|_| expected())?;
            is_number.then_some(number * power / 8.0)
        }
        None if text.ends_with('%') => None,
        None => crate::size::parse(text).ok().map(|bytes| bytes as f64),
    };
    rate.filter(|rate| *rate >= 1.0).ok_or_else(expected)
}

/// Arcs a second of `text`: a count above 0.
///
/// # Errors
/// A sentence that says what would have been right.
pub(crate) fn arcs(text: &str) -> Result<f64, String> {
    match parse(text)? {
        0 => Err("it must be positive".to_string()),
        arcs => Ok(arcs as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_exact() {
        for (text, count) in [
            ("0", 0),
            ("1000000", 1_000_000),
            ("2^38", 1 << 38),
            ("2^0", 1),
            ("274e9", 274_000_000_000),
            ("1.5e9", 1_500_000_000),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse(text), Ok(count), "{text}");
        }
        for text in [
            "",
            "x",
            "-1",
            "2^",
            "^2",
            "2^64",
            "1.5",
            "1.55e1",
            "e9",
            "1e",
            "1e20",
            "2^99999999999",
            "+5",
            " 5",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rates_are_bytes_or_bits_a_second() {
        assert_eq!(rate("2G"), Ok((2u64 << 30) as f64));
        assert_eq!(rate("2000000000"), Ok(2e9));
        assert_eq!(rate("10gbit"), Ok(1.25e9));
        assert_eq!(rate("25Gbit"), Ok(3.125e9));
        assert_eq!(rate("100mbit"), Ok(12.5e6));
        for text in [
            "", "0", "fast", "10 gbit", "-1gbit", "gbit", "infbit", "50%", "0gbit", "nangbit",
        ] {
            assert!(rate(text).is_err(), "{text}");
        }
        assert!(arcs("0").is_err() && arcs("4e8") == Ok(4e8));
    }
}
