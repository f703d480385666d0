//! Programs of scatter, gather and apply, as the papers on Chaos and BlitzG write them.

use graphmill_engine::{
    Activate, BucketOptions, Direction, Engine, EngineError, Gas, GasProgram, OutDegree,
};
use graphmill_storage::{IoChoice, open_disk};

use crate::common::Ranks;
use crate::{Mode, Plain, all, random, run};

/// PageRank as in Fig. 2 of the paper: the value of a vertex is its rank and its degree.
struct PageRank;

impl GasProgram for PageRank {
    type Value = [f64; 2];
    type Edge = ();
    type Update = f64;
    type Accumulator = f64;
    const IDENTITY: f64 = -0.0;

    fn scatter(&self, [rank, degree]: [f64; 2], (): ()) -> f64 {
        rank / degree
    }
    fn gather(&self, sum: &mut f64, update: f64) {
        *sum += update;
    }
    fn merge(&self, sum: &mut f64, other: f64) {
        *sum += other;
    }
    fn apply(&self, value: &mut [f64; 2], sum: f64) -> Activate {
        value[0] = 0.15 + 0.85 * sum;
        if value[1] > 0.0 {
            Activate::Yes
        } else {
            Activate::No
        }
    }
}

fn ranks(engine: &mut Engine) -> Result<Vec<[f64; 2]>, EngineError> {
    let values = engine.vertex_array::<[f64; 2]>("values")?;
    let rows = (values.write(), OutDegree);
    let mut active = engine.select_vertices(rows, None, |_, (value, degree)| {
        *value = [1.0, degree as f64];
        degree > 0
    })?;
    for _ in 0..3 {
        let rows = (values.read(), values.write());
        let pass =
            engine.process_edges(&Gas(PageRank), rows.0, rows.1, &active, Direction::Forward);
        let count;
        (count, active) = pass?;
        assert_eq!(count, active.len());
    }
    Ok(all(engine, values))
}

#[test]
fn ranks_equal_those_by_hand() {
    let disk = open_disk(IoChoice::Auto).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let graph = Plain::directed("random", 400, random(9, 400, 3000));
    let path = folder.path().join("graph");
    graph.store(&disk, &path, 64, 1 << 20, false);
    let mut degrees = vec![0.0; 400];
    graph
        .pairs()
        .iter()
        .for_each(|(source, _)| degrees[*source as usize] += 1.0);
    let mut wanted = vec![1.0; 400];
    for _ in 0..3 {
        let mut sums = vec![0.0; 400];
        for (source, destination) in graph.pairs() {
            sums[destination as usize] += wanted[source as usize] / degrees[source as usize];
        }
        wanted = sums.iter().map(|sum| 0.15 + 0.85 * sum).collect();
    }
    let in_buckets = Mode {
        buckets: Some(BucketOptions::default()),
        ..Mode::USUAL
    };
    let of_ranks = Mode {
        ranks: Ranks::Local(3),
        ..in_buckets
    };
    for mode in [Mode::USUAL, in_buckets, of_ranks] {
        let found = run(&path, mode, ranks);
        assert_eq!(found.len(), wanted.len());
        for ([rank, degree], (wanted, of_edges)) in found.iter().zip(wanted.iter().zip(&degrees)) {
            assert!((rank - wanted).abs() < 1e-12 && degree == of_edges);
        }
    }
}
