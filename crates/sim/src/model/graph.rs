//! Sizes of graphs, and how unevenly ranges of vertices share their edges.

/// A graph as the model sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ModelGraph {
    pub(super) vertices: f64,
    pub(super) edges: f64,
    /// Of each half of a range of vertices, the share of edges that the first quarter has.
    lower_half: f64,
}

impl ModelGraph {
    /// RMAT with labels as drawn: the first of P ranges holds 0.76^log2 P of the edges.
    pub(super) fn rmat(scale: i32) -> Self {
        ModelGraph {
            vertices: 2f64.powi(scale),
            edges: 2f64.powi(scale + 4),
            lower_half: 0.76,
        }
    }

    /// RMAT with its vertices distributed by a hash.
    pub(super) fn hashed(scale: i32) -> Self {
        ModelGraph {
            lower_half: 0.5,
            ..ModelGraph::rmat(scale)
        }
    }

    /// Data Commons; its ranges are sites in order of names, and taken as even.
    pub(super) fn data_commons() -> Self {
        ModelGraph {
            vertices: 3.5e9,
            edges: 128e9,
            lower_half: 0.5,
        }
    }

    /// Returns true if ids take four bytes.
    pub(super) fn is_compact(&self) -> bool {
        self.vertices <= 2f64.powi(32)
    }

    /// Returns the share of edges of each of `batches` equal ranges of vertices.
    pub(super) fn shares(&self, batches: usize) -> Vec<f64> {
        // The share of the vertices below x is a recursion on the bits of x.
        let below = |mut x: f64| {
            let (mut sum, mut part) = (0.0, 1.0);
            if x >= 1.0 {
                return 1.0;
            }
            for _ in 0..40 {
                x *= 2.0;
                if x >= 1.0 {
                    sum += part * self.lower_half;
                    part *= 1.0 - self.lower_half;
                    x -= 1.0;
                } else {
                    part *= self.lower_half;
                }
            }
            sum
        };
        (0..batches)
            .map(|i| {
                let at = |i: usize| below(i as f64 / batches as f64);
                at(i + 1) - at(i)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_range_of_drawn_labels_has_its_power() {
        for levels in 0..8 {
            let shares = ModelGraph::rmat(27).shares(1 << levels);
            assert!((shares[0] - 0.76f64.powi(levels)).abs() < 1e-9);
            assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            assert!(
                shares.windows(2).all(|pair| pair[0] > 0.0)
                    && shares[0] >= shares[shares.len() - 1]
            );
        }
        let even = ModelGraph::data_commons().shares(96);
        assert!(even.iter().all(|share| (share * 96.0 - 1.0).abs() < 1e-6));
    }
}
