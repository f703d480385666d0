//! Count programs that break a rule, and rounds after an error.

use graphmill_engine::{
    ComponentsMethod, CountProgram, EdgeResidency, Engine, EngineError, VertexArray,
};
use graphmill_storage::{IoChoice, open_disk};

use crate::common::{Ranks, outcomes};
use crate::misuse::hide_planted_panics;
use crate::{Mode, Plain, engine, run};

/// The function that panics if the labels of the neighbours add up to 140.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Panics {
    Count,
    Choose,
    Never,
}

/// Adds up the labels of the neighbours.
struct Sums(Panics);

impl Sums {
    fn meet(&self, at: Panics, is_here: bool) {
        assert!(self.0 != at || !is_here, "no luck in {at:?}");
    }
}

impl CountProgram for Sums {
    type Label = u64;
    type Choice = u64;
    const NONE: u64 = 0;

    fn count(&self, sum: &mut u64, label: u64, times: u64) {
        *sum += label * times;
        self.meet(Panics::Count, *sum == 140 && label != 140);
    }
    fn choose(&self, sum: u64) -> u64 {
        self.meet(Panics::Choose, sum == 140);
        sum
    }
}

/// A cycle, in which the labels of the neighbours of vertex 70 alone add up to 140.
fn cycle(vertices: u64) -> Plain {
    let edges = (0..vertices).map(|v| (v, (v + 1) % vertices, 1.0));
    Plain::undirected("a cycle", vertices, edges)
}

/// Returns arrays for the labels before and after a round; the first label of a vertex is its index.
fn labels(engine: &mut Engine) -> Result<[VertexArray<u64>; 2], EngineError> {
    let [from, to] = [engine.vertex_array("labels")?, engine.vertex_array("next")?];
    engine.process_vertices(from.write(), None, |v, label| *label = v)?;
    Ok([from, to])
}

/// Over lists, in windows, and label range by label range.
fn modes() -> impl Iterator<Item = Mode> {
    let residency = [
        (EdgeResidency::Memory, None),
        (EdgeResidency::Disk, None),
        (EdgeResidency::Disk, Some(8)),
    ];
    residency.into_iter().flat_map(|(edges, window_bytes)| {
        [Ranks::One, Ranks::Local(2)].map(|ranks| Mode {
            edges,
            window_bytes,
            ranks,
            ..Mode::USUAL
        })
    })
}

#[test]
fn panic_of_a_count_program_names_its_vertex() {
    hide_planted_panics();
    let disk = open_disk(IoChoice::Auto).unwrap();
    let folder = tempfile::tempdir().unwrap();
    // One thread does a small round.
    for vertices in [300, 6000] {
        let path = folder.path().join(vertices.to_string());
        cycle(vertices).store(&disk, &path, 64, 500, false);
        for (panics, mode) in modes().flat_map(|mode| {
            let functions = [Panics::Count, Panics::Choose];
            functions.map(|panics| (panics, mode))
        }) {
            let outcomes = outcomes(&path, mode, 1 << 30, |engine| {
                let arrays = labels(engine)?;
                let all = engine.full_set()?;
                engine.process_counts(&Sums(panics), arrays, &all).map(drop)
            });
            let errors = outcomes
                .into_iter()
                .map(|done| done.unwrap_err().to_string());
            let errors: Vec<_> = errors.filter(|error| !error.contains("is lost")).collect();
            let expected =
                format!("the program panicked at vertex 70 (id 70): no luck in {panics:?}");
            assert_eq!(errors, [expected], "{mode:?}");
        }
    }
}

#[test]
fn engine_stays_broken_after_a_failed_pass() {
    hide_planted_panics();
    let disk = open_disk(IoChoice::Auto).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    cycle(300).store(&disk, &path, 64, 500, false);
    for mode in modes().filter(|mode| mode.ranks == Ranks::One) {
        run(&path, mode, |engine| {
            let arrays = labels(engine)?;
            let all = engine.full_set()?;
            // The lists of a round stay in memory.
            engine.process_counts(&Sums(Panics::Never), arrays, &all)?;
            let failed = engine.process_vertices(arrays[0].write(), None, |v, label| {
                assert!(v != 70, "no luck in work");
                *label = 0;
            });
            assert!(failed.is_err());
            let is_broken = |done: Result<(), _>| matches!(done, Err(EngineError::Broken));
            for _ in 0..2 {
                let counted = engine.process_counts(&Sums(Panics::Never), arrays, &all);
                assert!(is_broken(counted.map(drop)), "{mode:?}");
                let united = engine.connected_components(arrays[0], ComponentsMethod::Auto);
                assert!(is_broken(united.map(drop)), "{mode:?}");
            }
            let read = engine.read_batch(&arrays[0], 0, &mut Vec::new());
            assert!(is_broken(read), "{mode:?}");
            Ok(())
        });
    }
}

#[test]
fn round_refuses_a_set_of_another_engine() {
    let disk = open_disk(IoChoice::Auto).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    cycle(300).store(&disk, &path, 64, 500, false);
    for mode in modes().filter(|mode| mode.ranks == Ranks::One) {
        let theirs = engine(&path, folder.path(), mode, 1 << 30).unwrap();
        let theirs = theirs.empty_set().unwrap();
        run(&path, mode, |engine| {
            let arrays = labels(engine)?;
            let refused = engine.process_counts(&Sums(Panics::Never), arrays, &theirs);
            assert!(matches!(refused, Err(EngineError::ForeignSet)), "{mode:?}");
            Ok(())
        });
    }
}
