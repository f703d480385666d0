//! Ranks that were rounded to 32 bits.

use graphmill_algorithms::pagerank::Dangling;
use graphmill_algorithms::pagerank::check::{Ending, Equation, Rounding, check_run};

use crate::odd;

const NO_ARCS: &[(u64, u64)] = &[];

/// Returns ranks in 32 bits and the number of iterations, which end as a run's do.
///
/// The formula is the run's, but the sums go from the last arc to the first: another order than the checker's.
fn narrow(
    vertices: u64,
    arcs: &[(u64, u64)],
    equation: Equation<'_>,
    ending: Ending,
) -> (Vec<f64>, u32) {
    let n = vertices as usize;
    let is_place = |v: usize| equation.sources.is_empty() || equation.sources.contains(&(v as u64));
    let places = (0..n).filter(|v| is_place(*v)).count() as f64;
    let jump = |v: usize| if is_place(v) { 1.0 / places } else { 0.0 };
    let mut degrees = vec![0; n];
    arcs.iter().for_each(|arc| degrees[arc.0 as usize] += 1);
    let mut ranks: Vec<f32> = (0..n).map(|v| jump(v) as f32).collect();
    let mut done = 0;
    while done < ending.iterations {
        let lost: f64 = (0..n)
            .filter(|v| degrees[*v] == 0 && equation.dangling == Dangling::Redistribute)
            .map(|v| f64::from(ranks[v]))
            .sum();
        let mut sums = vec![0.0_f32; n];
        for &(u, v) in arcs.iter().rev() {
            let u = u as usize;
            sums[v as usize] += (f64::from(ranks[u]) / f64::from(degrees[u])) as f32;
        }
        let jumping = 1.0 - equation.damping + equation.damping * lost;
        let new: Vec<f32> = (0..n)
            .map(|v| (jump(v) * jumping + equation.damping * f64::from(sums[v])) as f32)
            .collect();
        let change: f64 = (0..n).map(|v| f64::from((new[v] - ranks[v]).abs())).sum();
        ranks = new;
        done += 1;
        if ending.tolerance.is_some_and(|tolerance| change < tolerance) {
            break;
        }
    }
    (ranks.into_iter().map(f64::from).collect(), done)
}

#[test]
fn ranks_in_f32_may_differ_by_rounding_only() {
    let sum = |leaves: u64| (1..leaves).map(|v| (v, 0)).collect();
    let mut graphs = odd::graphs();
    graphs.push(("a hub", 20_000, sum(20_000)));
    for (name, vertices, arcs) in graphs {
        for (sources, iterations) in [(&[][..], 20), (&[0][..], 7), (&[][..], 0)] {
            let equation = Equation {
                sources,
                ..Equation::default()
            };
            let ending = Ending {
                iterations,
                tolerance: None,
            };
            let (right, _) = narrow(vertices, &arcs, equation, ending);
            let judge = |ranks: &[f64], rounding| {
                check_run(vertices, &arcs, equation, ending, ranks, rounding)
            };
            assert_eq!(judge(&right, Rounding::F32), Ok(()), "{name}");
            // What the longest sum may lose comes back to everyone as mass that returns.
            let mut sums = vec![0; vertices as usize];
            arcs.iter().for_each(|arc| sums[arc.1 as usize] += 1);
            let longest: u32 = sums.into_iter().max().unwrap_or(0);
            let share = 1e-4 + 6e-7 * f64::from(longest);
            for vertex in (0..right.len()).step_by(1 + right.len() / 20) {
                for share in [share, -share] {
                    let mut ranks = right.clone();
                    ranks[vertex] += share * ranks[vertex] + 1e-12 * share.signum();
                    assert!(judge(&ranks, Rounding::F32).is_err(), "{name}: {vertex}");
                }
            }
        }
    }
}

#[test]
fn ranks_in_f32_are_refused_as_f64() {
    let arcs: Vec<(u64, u64)> = (0..99).map(|v| (v, v / 2)).collect();
    let ending = Ending {
        iterations: 20,
        tolerance: None,
    };
    let (ranks, _) = narrow(99, &arcs, Equation::default(), ending);
    let judge = |rounding| check_run(99, &arcs, Equation::default(), ending, &ranks, rounding);
    assert_eq!(judge(Rounding::F32), Ok(()));
    assert!(judge(Rounding::F64).is_err());
}

#[test]
fn converged_run_is_judged_by_its_last_iteration() {
    let arcs: Vec<(u64, u64)> = (0..99).map(|v| (v, (v * v + 3) % 99)).collect();
    for tolerance in [1e-1, 1e-3, 1e-5, 1e-7, 1e-12] {
        let ending = Ending {
            iterations: 300,
            tolerance: Some(tolerance),
        };
        let (ranks, done) = narrow(99, &arcs, Equation::default(), ending);
        let judge =
            |ranks: &[f64]| check_run(99, &arcs, Equation::default(), ending, ranks, Rounding::F32);
        assert_eq!(judge(&ranks), Ok(()), "{tolerance}, {done}");
        let mut wrong = ranks.clone();
        wrong[3] *= 1.001;
        assert!(judge(&wrong).is_err(), "{tolerance}");
        if tolerance > 1e-4 {
            for iterations in [done - 1, done + 1] {
                let other = Ending {
                    iterations,
                    tolerance: None,
                };
                let (other, _) = narrow(99, &arcs, Equation::default(), other);
                assert!(
                    judge(&other).is_err(),
                    "{tolerance}: {iterations} for {done}"
                );
            }
        }
    }
}

#[test]
fn empty_graph_has_no_wrong_rank() {
    let ending = Ending {
        iterations: 5,
        tolerance: Some(1e-3),
    };
    assert_eq!(
        check_run(0, NO_ARCS, Equation::default(), ending, &[], Rounding::F64),
        Ok(())
    );
}
