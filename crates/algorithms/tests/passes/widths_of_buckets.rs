//! Shortest paths end soon, and with the same distances, however badly the width of buckets suits the weights.

use graphmill_algorithms::sssp::{self, Method};
use graphmill_engine::{EdgesAt, KernelChoice, SeekChoice};
use graphmill_storage::{IoChoice, open_disk};

use crate::{Memory, Mode, Plain, all, engines, random, run};

fn graphs() -> Vec<Plain> {
    let path = |name, weight: fn(u64) -> f64| {
        Plain::directed(name, 4000, (1..4000).map(|v| (v - 1, v, weight(v))))
    };
    let leaves = (1..4000).map(|v| (0, v, (v % 1999) as f64 * 1e6 + 1.0));
    let close = random(7, 4000, 20_000).into_iter();
    vec![
        path("no length, then long", |v| if v < 1000 { 0.0 } else { 1e9 }),
        path("short, then long", |v| if v < 600 { 1e-9 } else { 1e6 }),
        path("beyond all numbers", |_| 1e38),
        Plain::directed("far leaves", 4000, leaves.clone()),
        Plain::directed("far leaves and near ones", 4000, leaves.chain(close)),
    ]
}

#[test]
fn any_width_will_do() {
    let disk = open_disk(IoChoice::Auto).unwrap();
    for graph in graphs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("graph");
        graph.store(&disk, &path, 512, u64::MAX, false);
        for threads in [1, 3] {
            let mode = Mode {
                kernel: KernelChoice::Auto,
                seek: SeekChoice::Auto,
                threads,
                memory: Memory::Bytes(1 << 28),
                io: IoChoice::Auto,
                edges: EdgesAt::Memory,
            };
            let distances = |method| {
                run(&path, mode, |engine| {
                    let distances = engines(sssp::run::<f64>(engine, 0, method))?;
                    Ok((all(engine, distances), engine.metrics().passes()))
                })
            };
            let (expected, _) = distances(Method::BellmanFord);
            let widths = [1e-320, 1e-300, 1e-3, 1.0, 1e300].map(Some);
            for width in widths.into_iter().chain([None]) {
                let (found, passes) = distances(Method::Delta(width));
                assert_eq!(found, expected, "{}, {width:?}", graph.name);
                assert!(
                    passes < 20_000,
                    "{}, {width:?}: {passes} passes",
                    graph.name
                );
            }
        }
    }
}
