//! Edges of a Kronecker graph, several levels of its recursion at a time.

use super::counter_rng::{CounterRng, RngStream};

/// Levels of the recursion that one random number of 32 bits decides.
const LEVELS: u32 = 5;

/// Random 32-bit numbers for one edge at most: 48 levels take ten.
const DRAWS_MAX: usize = 10;

/// The recursion of R-MAT, several levels at a time.
///
/// An alias table draws at once which of the 4^levels cells an edge falls into (Walker, "An efficient method for generating
/// discrete random variables with general distributions", TOMS 1977). R-MAT is from Chakrabarti, Zhan and Faloutsos, "R-MAT: a
/// recursive model for graph mining", SDM 2004. Huebschle-Schneider and Sanders show that a path of several levels can be drawn
/// as one ("Linear work generation of R-MAT graphs", Network Science 2020).
#[derive(Debug)]
pub(super) struct RmatWalk {
    /// For the first levels, where their number is no multiple of [`LEVELS`].
    first: QuadrantTable,
    others: QuadrantTable,
    /// Draws of [`LEVELS`] levels.
    draws: usize,
    /// Each number decides two draws.
    sequences: [CounterRng; DRAWS_MAX / 2 + 1],
}

impl RmatWalk {
    pub(super) fn new(scale: u32, seed: u64) -> Self {
        RmatWalk {
            first: QuadrantTable::new(scale % LEVELS),
            others: QuadrantTable::new(LEVELS),
            draws: (scale / LEVELS) as usize,
            sequences: std::array::from_fn(|i| CounterRng::new(seed, RngStream::Ends, i as u64)),
        }
    }

    /// The ends of edge number `edge`, before their labels are permuted.
    #[inline(always)]
    pub(super) fn ends(&self, edge: u64) -> (u64, u64) {
        let [first, others @ ..] = &self.sequences;
        let (mut source, mut destination) = self.first.draw(first.number(edge) as u32);
        for (pair, sequence) in others.iter().enumerate().take(self.draws.div_ceil(2)) {
            let random = sequence.number(edge);
            let (s, d) = self.others.draw(random as u32);
            (source, destination) = (source << LEVELS | s, destination << LEVELS | d);
            if 2 * pair + 1 < self.draws {
                let (s, d) = self.others.draw((random >> 32) as u32);
                (source, destination) = (source << LEVELS | s, destination << LEVELS | d);
            }
        }
        (source, destination)
    }
}

/// The cells of some levels of the recursion, each as likely as the product of its quadrants.
///
/// A cell's number has the row's bits above the column's.
#[derive(Debug)]
struct QuadrantTable {
    levels: u32,
    /// Per cell its share of draws, of 2^(32 - 2 levels); in the low half the cell that gets the others.
    table: Vec<u64>,
}

impl QuadrantTable {
    /// In integers throughout, so that every machine has the same table.
    fn new(levels: u32) -> Self {
        // Quadrants A, B, C and D in hundredths.
        const QUADRANTS: [u64; 4] = [57, 19, 19, 5];
        let cells = 1u64 << (2 * levels);
        let weight = |cell: u64| -> u64 {
            let quadrant = |level| (cell >> (level + levels) & 1) << 1 | cell >> level & 1;
            (0..levels)
                .map(|level| QUADRANTS[quadrant(level) as usize & 3])
                .product()
        };
        // Each cell holds `cells` times its weight; a full one holds the weight of all.
        let full = 100u64.pow(levels);
        let mut held: Vec<u64> = (0..cells).map(|cell| weight(cell) * cells).collect();
        // Without levels there is one cell, and it does not matter that its share is lost in the shift below.
        let share = 1u64 << (32 - 2 * levels);
        let mut table: Vec<u64> = (0..cells).map(|cell| share << 32 | cell).collect();
        let (mut poor, mut rich): (Vec<usize>, Vec<usize>) =
            (0..held.len()).partition(|&cell| held[cell] < full);
        while let (Some(&from), Some(to)) = (rich.last(), poor.pop()) {
            table[to] = (held[to] * share / full) << 32 | from as u64;
            held[from] -= full - held[to];
            if held[from] < full {
                rich.pop();
                poor.push(from);
            }
        }
        QuadrantTable { levels, table }
    }

    /// The row and the column of the cell that 32 random bits choose.
    #[inline(always)]
    fn draw(&self, random: u32) -> (u64, u64) {
        let bits = 2 * self.levels;
        let own = random & ((1 << bits) - 1);
        let entry = self.table.get(own as usize).copied().unwrap_or(0);
        let cell = if u64::from(random >> bits) < entry >> 32 {
            own
        } else {
            entry as u32
        };
        let column = cell & ((1 << self.levels) - 1);
        (u64::from(cell >> self.levels), u64::from(column))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kronecker_cell_odds_are_quadrant_products() {
        for levels in 1..=LEVELS {
            let cells = QuadrantTable::new(levels);
            let share = 1u64 << (32 - 2 * levels);
            let mut directions = vec![0u64; cells.table.len()];
            for (own, entry) in cells.table.iter().enumerate() {
                directions[own] += entry >> 32;
                directions[*entry as u32 as usize] += share - (entry >> 32);
            }
            for (cell, directions) in directions.into_iter().enumerate() {
                let quadrant = |level: u32| match (cell >> (level + levels) & 1, cell >> level & 1)
                {
                    (0, 0) => 0.57,
                    (1, 1) => 0.05,
                    _ => 0.19,
                };
                let expected = (0..levels).map(quadrant).product::<f64>() * 4_294_967_296.0;
                // Shares are rounded, and the few likely cells lose what all other cells gain.
                let error = (directions as f64 - expected).abs();
                assert!(
                    error <= 1100.0 && error <= 1.0 + expected / 500.0,
                    "{levels} levels, cell {cell}: {directions} of {expected}"
                );
            }
        }
    }

    #[test]
    fn kronecker_quadrants_have_their_frequencies() {
        let edges = 1 << 17;
        for scale in [1, 5, 12, 24, 48] {
            let paths = RmatWalk::new(scale, 9);
            let mut counts = vec![[0u32; 4]; scale as usize];
            for edge in 0..edges {
                let (source, destination) = paths.ends(edge);
                assert!(source >> scale == 0 && destination >> scale == 0);
                for (level, counts) in counts.iter_mut().enumerate() {
                    counts[(source >> level & 1) as usize * 2
                        + (destination >> level & 1) as usize] += 1;
                }
            }
            for (level, counts) in counts.iter().enumerate() {
                for (count, share) in counts.iter().zip([0.57, 0.19, 0.19, 0.05]) {
                    let expected = share * edges as f64;
                    let sigma = (expected * (1.0 - share)).sqrt();
                    let off = (f64::from(*count) - expected).abs();
                    assert!(
                        off < 5.0 * sigma,
                        "scale {scale}, level {level}: {count} where {expected} are expected"
                    );
                }
            }
        }
    }
}
