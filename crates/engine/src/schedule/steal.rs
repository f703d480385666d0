//! Whether the owner of a batch accepts help with it (Chaos, section 5.4).

use std::fmt::{Display, Formatter};
use std::str::FromStr;

/// The bias of the criterion: 0 never accepts, 1 is that of the paper, infinity always accepts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StealBias(f64);

impl Default for StealBias {
    fn default() -> Self {
        StealBias::PAPER
    }
}

impl FromStr for StealBias {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let bias = match text {
            "inf" => Ok(f64::INFINITY),
            _ => text.parse().map_err(|_| ()),
        };
        // `-0` is 0.
        bias.ok()
            .filter(|bias| *bias >= 0.0 && (bias.is_finite() || text == "inf"))
            .map(|bias| StealBias(bias.abs()))
            .ok_or_else(|| "a bias is 0, a positive number, or inf".to_string())
    }
}

impl Display for StealBias {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl StealBias {
    /// The bias that never accepts.
    pub const NEVER: StealBias = StealBias(0.0);
    /// The bias that accepts all help while there are bytes left.
    pub const ALWAYS: StealBias = StealBias(f64::INFINITY);
    /// The criterion of the paper, without bias.
    pub const PAPER: StealBias = StealBias(1.0);

    /// Returns true if no help is ever accepted.
    pub fn is_never(self) -> bool {
        self.0 == 0.0
    }

    /// Returns true if one more worker on a batch ends it sooner than its state takes to load.
    ///
    /// The criterion is V/B + D/(B(H+1)) < bias D/(BH). The bandwidth B cancels out.
    /// V is `state_bytes`, which a helper loads. D is `bytes_left`, of edges or updates. H is `workers`, the owner
    /// included.
    pub fn accepts(self, state_bytes: u64, bytes_left: u64, workers: usize) -> bool {
        let (state, left) = (state_bytes as f64, bytes_left as f64);
        let workers = workers.max(1) as f64;
        state + left / (workers + 1.0) < self.0 * (left / workers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bias_has_its_text() {
        for text in ["0", "0.8", "1", "1.2", "inf", "100"] {
            let bias: StealBias = text.parse().unwrap();
            assert_eq!(bias.to_string(), text);
        }
        assert_eq!("1.0".parse(), Ok(StealBias::default()));
        assert_eq!("-0".parse::<StealBias>().unwrap().to_string(), "0");
        for wrong in ["", "-1", "nan", "infinity", "1e999", "-inf", "one", "1 "] {
            assert!(wrong.parse::<StealBias>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn help_is_accepted_where_it_pays() {
        for (bias, state, left, workers, expected) in [
            // Never, and always but where nothing is left.
            ("0", 0, 1000, 1, false),
            ("0", 0, u64::MAX, 1, false),
            ("inf", u64::MAX, 1, 31, true),
            ("inf", 0, 0, 1, false),
            // The second worker saves half, the third a sixth, the fourth a twelfth.
            ("1", 499, 1000, 1, true),
            ("1", 500, 1000, 1, false),
            ("1", 166, 1000, 2, true),
            ("1", 167, 1000, 2, false),
            ("1", 83, 1000, 3, true),
            ("1", 84, 1000, 3, false),
            ("1", 0, 1, 1, true),
            ("1", 0, 0, 1, false),
            // An owner that has not begun counts as one.
            ("1", 499, 1000, 0, true),
            ("1", 500, 1000, 0, false),
            ("0.8", 299, 1000, 1, true),
            ("0.8", 301, 1000, 1, false),
            ("1.2", 699, 1000, 1, true),
            ("1.2", 701, 1000, 1, false),
            // Below H/(H+1) even free state is not worth it.
            ("0.8", 0, 1000, 4, false),
        ] {
            let accepts = bias
                .parse::<StealBias>()
                .unwrap()
                .accepts(state, left, workers);
            assert_eq!(accepts, expected, "{bias}: {state}, {left}, {workers}");
        }
    }
}
