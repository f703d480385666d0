//! Columns that are split among workers at run time, because there are fewer of them.

use graphmill_algorithms::pagerank;
use graphmill_engine::{EngineError, KernelChoice, Mode as How, SparseChoice};
use graphmill_storage::{IoChoice, open_disk};

use crate::{Memory, Mode, Plain, Ranks, all, random, ranking, run};

const VERTICES: u64 = 3000;

#[test]
fn split_columns_give_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let disk = open_disk(IoChoice::Auto).unwrap();
    let graph = Plain::undirected("random", VERTICES, random(7, VERTICES, 300_000));
    // One column; three; two of two strips each.
    for (number, (span, strip)) in [(VERTICES, u64::MAX), (1200, u64::MAX), (1500, 1 << 17)]
        .into_iter()
        .enumerate()
    {
        let path = folder.path().join(number.to_string());
        graph.store(&disk, &path, span, strip, false);
        let ranks = |threads, ranks| {
            let mode = Mode {
                kernel: KernelChoice::Scatter,
                sparse: SparseChoice::Never,
                threads,
                memory: Memory::Bytes(1 << 28),
                ranks,
                ..Mode::USUAL
            };
            run(&path, mode, |engine| {
                let rank = pagerank::run::<f64>(engine, &ranking(2))?;
                let passes = engine.metrics().passes.iter();
                let passes = passes.filter(|pass| pass.mode == How::Scatter);
                let counts = passes.map(|pass| [pass.edges, pass.elements_scanned, pass.cells]);
                let counts: Vec<_> = counts.collect();
                let bits: Vec<u64> = all(engine, rank).into_iter().map(f64::to_bits).collect();
                Ok::<_, EngineError>((bits, counts))
            })
        };
        let (bits, counts) = ranks(1, Ranks::One);
        for threads in [2, 4, 8] {
            let split = ranks(threads, Ranks::One);
            assert!(split.0 == bits, "{threads} threads, batches of {span}");
            assert_eq!(split.1, counts, "{threads} threads, batches of {span}");
        }
        if span < VERTICES {
            assert!(
                ranks(8, Ranks::Local(2)).0 == bits,
                "2 ranks, batches of {span}"
            );
        }
    }
}
