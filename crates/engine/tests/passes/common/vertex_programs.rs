//! The modes and graphs that tests of vertex programs share.

use graphmill_engine::{EdgeResidency, Engine, EngineError, PregelMode};
use graphmill_storage::{IoChoice, open_disk};

use super::Memory::{Bytes, LeastAnd};
use super::{Memory, Mode, Plain, Ranks, random, run};

pub(crate) const VERSIONS: [PregelMode; 2] = [PregelMode::Pull, PregelMode::Push];

pub(crate) fn mode(edges: EdgeResidency, threads: usize, memory: Memory) -> Mode {
    Mode {
        threads,
        memory,
        edges,
        ..Mode::USUAL
    }
}

fn modes() -> [Mode; 7] {
    let plenty = Bytes(1 << 30);
    [
        mode(EdgeResidency::Auto, 2, plenty),
        mode(EdgeResidency::Memory, 3, plenty),
        mode(EdgeResidency::Memory, 4, plenty),
        mode(EdgeResidency::Disk, 2, plenty),
        mode(EdgeResidency::Auto, 1, LeastAnd(0)),
        Mode {
            ranks: Ranks::Local(3),
            ..mode(EdgeResidency::Auto, 2, plenty)
        },
        Mode {
            ranks: Ranks::Simulated(4, 5),
            ..mode(EdgeResidency::Disk, 1, plenty)
        },
    ]
}

pub(crate) fn graphs() -> Vec<Plain> {
    vec![
        Plain::directed("one vertex", 1, []),
        Plain::directed("isolated vertices", 100, [(3, 70, 1.0)]),
        Plain::undirected("a long path", 300, (1..300).map(|v| (v - 1, v, 1.0))),
        Plain::directed("random", 2000, random(1, 2000, 9000)),
        Plain::undirected("random both ways", 3000, random(2, 3000, 20_000)),
    ]
}

/// Runs in every mode; what needs more memory than there is says so.
pub(crate) fn in_modes<T: Send>(
    graph: &Plain,
    what: impl Fn(&mut Engine) -> Result<T, EngineError> + Sync,
    check: impl Fn(Mode, T),
) {
    let disk = open_disk(IoChoice::Auto).unwrap();
    for span in [1 << 20, 64] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("graph");
        graph.store(&disk, &path, span, 500, !graph.symmetric);
        for mode in modes() {
            let outcome = run(&path, mode, |engine| match what(engine) {
                Err(EngineError::PushNeedsMemory { .. } | EngineError::MailNeedsMemory { .. }) => {
                    Ok(None)
                }
                outcome => outcome.map(Some),
            });
            match outcome {
                Some(outcome) => check(mode, outcome),
                None => assert!(matches!(mode.memory, LeastAnd(_)), "{mode:?}"),
            }
        }
    }
}
