//! A sum of floats that is rounded once, so that it is the same in any order.

/// Sums floats exactly: parts that do not overlap, from the least to the greatest (Shewchuk 1997).
#[derive(Debug, Clone, Default)]
pub(crate) struct ExactSum {
    parts: Vec<f64>,
    /// The sum of infinities and of NaN.
    special: Option<f64>,
}

impl ExactSum {
    pub(crate) fn add(&mut self, value: f64) {
        if !value.is_finite() {
            let special = self.special.get_or_insert(0.0);
            *special += value;
            return;
        }
        let (mut sum, mut kept) = (value, 0);
        for at in 0..self.parts.len() {
            let (mut high, mut low) = (sum, self.parts[at]);
            if high.abs() < low.abs() {
                (high, low) = (low, high);
            }
            let both = high + low;
            let lost = low - (both - high);
            if lost != 0.0 {
                self.parts[kept] = lost;
                kept += 1;
            }
            sum = both;
        }
        self.parts.truncate(kept);
        self.parts.push(sum);
    }

    /// Returns the sum of all values, rounded once.
    pub(crate) fn value(&self) -> f64 {
        if let Some(special) = self.special {
            return special;
        }
        let Some((&last, rest)) = self.parts.split_last() else {
            return 0.0;
        };
        let (mut sum, mut lost, mut left) = (last, 0.0, rest);
        while let Some((&next, before)) = left.split_last() {
            let whole = sum;
            sum = whole + next;
            lost = next - (sum - whole);
            left = before;
            if lost != 0.0 {
                break;
            }
        }
        // Half of a last digit is rounded by the parts below it.
        if let Some(&next) = left.last()
            && (lost < 0.0) == (next < 0.0)
        {
            let twice = 2.0 * lost;
            let rounded = sum + twice;
            if twice == rounded - sum {
                sum = rounded;
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(values: impl IntoIterator<Item = f64>) -> f64 {
        let mut sum = ExactSum::default();
        values.into_iter().for_each(|value| sum.add(value));
        sum.value()
    }

    #[test]
    fn sum_is_the_same_in_any_order() {
        assert_eq!(sum([]), 0.0);
        assert_eq!(sum([1e100, 1.0, -1e100]), 1.0);
        assert_eq!(sum([0.1; 10]), 1.0);
        assert_eq!(sum([1e16, 1.0, 1e-16]), 10000000000000002.0);
        assert_eq!(sum([f64::INFINITY, 1.0]), f64::INFINITY);
        assert!(sum([f64::INFINITY, f64::NEG_INFINITY]).is_nan());
        let values = |i: u64| (i * 7919 % 1009) as f64 / 7.0 * 10_f64.powi((i % 30) as i32 - 15);
        let up = sum((0..1000).map(values));
        assert_eq!(up.to_bits(), sum((0..1000).rev().map(values)).to_bits());
    }
}
