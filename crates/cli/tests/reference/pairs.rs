//! Rows of a table of factors in which each two levels of any two factors meet: far fewer than the full product, and the same each time.

use std::collections::BTreeSet;

/// A level of a factor, as the factor and its number.
type Level = (usize, usize);

/// Returns rows that have every pair of levels that fits.
///
/// `counts` has the number of levels of each factor. `fits` is true if a row may have two levels, that of the factor with
/// the smaller number first. Every such pair must be part of a row that fits.
pub(crate) fn rows(counts: &[usize], fits: impl Fn(Level, Level) -> bool) -> Vec<Vec<usize>> {
    let levels = |factor: usize| (0..counts[factor]).map(move |level| (factor, level));
    let ordered = |a: Level, b: Level| if a < b { (a, b) } else { (b, a) };
    let fit = |a: Level, b: Level| {
        let (a, b) = ordered(a, b);
        fits(a, b)
    };
    let mut open = BTreeSet::new();
    for first in 0..counts.len() {
        for second in first + 1..counts.len() {
            for a in levels(first) {
                open.extend(levels(second).filter(|b| fits(a, *b)).map(|b| (a, b)));
            }
        }
    }
    let mut rows = Vec::new();
    while let Some((a, b)) = open.first().copied() {
        let mut row = vec![a, b];
        // The factors with most levels last: they have the most choice.
        let mut rest: Vec<usize> = (0..counts.len())
            .filter(|factor| ![a.0, b.0].contains(factor))
            .collect();
        rest.sort_by_key(|factor| counts[*factor]);
        for factor in rest {
            let gain = |level: Level| {
                let meet = row.iter().filter(|of| open.contains(&ordered(**of, level)));
                meet.count()
            };
            let may_be = levels(factor).filter(|level| row.iter().all(|of| fit(*of, *level)));
            // Of levels that gain as much, another one each time.
            let turned = |level: Level| (level.1 + rows.len()) % counts[factor];
            let best = may_be.max_by_key(|level| (gain(*level), turned(*level)));
            row.push(best.expect("a level that fits"));
        }
        row.sort_unstable();
        for (number, a) in row.iter().enumerate() {
            for b in &row[number + 1..] {
                open.remove(&(*a, *b));
            }
        }
        rows.push(row.into_iter().map(|level| level.1).collect());
    }
    rows
}

#[test]
fn pairwise_rows_have_every_valid_pair() {
    // Level 2 of the first factor goes with the even levels of the last alone.
    let counts = [3, 2, 5, 4];
    let fits = |a: Level, b: Level| a != (0, 2) || b.0 != 3 || b.1.is_multiple_of(2);
    let rows = rows(&counts, fits);
    let mut found = BTreeSet::new();
    for row in &rows {
        for first in 0..4 {
            for second in first + 1..4 {
                found.insert(((first, row[first]), (second, row[second])));
            }
        }
    }
    assert!(found.iter().all(|(a, b)| fits(*a, *b)));
    let all = 3 * 2 + 3 * 5 + 3 * 4 + 2 * 5 + 2 * 4 + 5 * 4;
    assert_eq!(found.len(), all - 2);
    assert!(rows.len() < 30, "{} rows of 120", rows.len());
}
