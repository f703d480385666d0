//! Programs of one slot function, against plain computations.

use graphmill_engine::{Activate, Direction, Read, Slot, SlotProgram, Write};
use graphmill_storage::{IoChoice, open_disk};

use crate::{Mode, Plain, all, random, run};

/// The nearest source of an arc to each vertex by index, with the weight of that arc.
struct Nearest;

impl SlotProgram for Nearest {
    type SignalRows = Read<[u64; 2]>;
    type ApplyRows = Write<[u64; 2]>;
    type Edge = f64;
    type Message = u64;
    type Accumulator = [u64; 2];
    type Sum = u64;
    const IDENTITY: [u64; 2] = [u64::MAX; 2];
    const ORDER_INDEPENDENT: bool = true;

    fn signal(&self, v: u64, _: &[u64; 2]) -> Option<u64> {
        (!v.is_multiple_of(3)).then_some(v * 2)
    }
    fn slot(
        &self,
        nearest: &mut [u64; 2],
        message: u64,
        source: u64,
        destination: u64,
        weight: f64,
    ) {
        assert_eq!(message, source * 2);
        *nearest = (*nearest).min([source.abs_diff(destination), weight as u64]);
    }
    fn merge(&self, nearest: &mut [u64; 2], later: [u64; 2]) {
        *nearest = (*nearest).min(later);
    }
    fn apply(&self, _: u64, row: &mut [u64; 2], nearest: [u64; 2]) -> (u64, Activate) {
        *row = nearest;
        (1, Activate::No)
    }
}

#[test]
fn slot_knows_the_vertices_and_the_weight() {
    let graph = Plain::directed("random", 2000, random(1, 2000, 9000));
    let mut expected = vec![[0; 2]; 2000];
    let mut reached = vec![None; 2000];
    for &(s, d, weight) in graph.arcs.iter().filter(|arc| !arc.0.is_multiple_of(3)) {
        let here = [s.abs_diff(d), weight as u64];
        let least = reached[d as usize].get_or_insert(here);
        *least = here.min(*least);
    }
    for (row, nearest) in expected.iter_mut().zip(&reached) {
        *row = nearest.unwrap_or([0; 2]);
    }
    let disk = open_disk(IoChoice::Auto).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    graph.store(&disk, &path, 64, 500, false);
    let (found, count) = run(&path, Mode::USUAL, |engine| {
        let rows = engine.vertex_array::<[u64; 2]>("nearest")?;
        let (read, write, all_vertices) = (rows.read(), rows.write(), engine.full_set()?);
        let forward = Direction::Forward;
        let (count, _) =
            engine.process_edges(&Slot(Nearest), read, write, &all_vertices, forward)?;
        Ok((all(engine, rows), count))
    });
    assert!(found == expected);
    assert_eq!(count, reached.iter().flatten().count() as u64);
}
