//! Rows so wide that the budget has room to borrow them for few workers only.

use graphmill_engine::{Activate, Direction, Read, Slot, SlotProgram, Write};
use graphmill_storage::{IoChoice, open_disk};

use crate::{Memory, Mode, Plain, all, random, run};

const VERTICES: u64 = 80_000;
const BATCH: u64 = 20_000;

/// Adds the messages of all sources to one element of a row.
struct Scatter;

impl SlotProgram for Scatter {
    type SignalRows = Read<[u64; 64]>;
    type ApplyRows = Write<[u64; 64]>;
    type Edge = ();
    type Message = u64;
    type Accumulator = u64;
    type Sum = u64;
    const IDENTITY: u64 = 0;
    const ORDER_INDEPENDENT: bool = true;

    fn signal(&self, v: u64, row: &[u64; 64]) -> Option<u64> {
        Some(row[(v % 64) as usize] + 1)
    }
    fn slot(&self, sum: &mut u64, message: u64, _: u64, _: u64, (): ()) {
        *sum = sum.wrapping_add(message);
    }
    fn merge(&self, sum: &mut u64, later: u64) {
        *sum = sum.wrapping_add(later);
    }
    fn apply(&self, _: u64, row: &mut [u64; 64], sum: u64) -> (u64, Activate) {
        row[(sum % 64) as usize] = sum;
        (1, Activate::Yes)
    }
}

#[test]
fn wide_rows_are_borrowed_by_as_many_workers_as_fit() {
    let graph = Plain::directed("random", VERTICES, random(3, VERTICES, 200_000));
    let disk = open_disk(IoChoice::Auto).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    graph.store(&disk, &path, BATCH, 1 << 20, false);
    let rows = |threads, memory| {
        let mode = Mode {
            threads,
            memory,
            ..Mode::USUAL
        };
        run(&path, mode, |engine| {
            let rows = engine.vertex_array::<[u64; 64]>("rows")?;
            let mut active = engine.full_set()?;
            engine.process_vertices(rows.write(), None, |v, row| *row = [v; 64])?;
            for _ in 0..3 {
                let (read, write) = (rows.read(), rows.write());
                let (program, forward) = (&Slot(Scatter), Direction::Forward);
                (_, active) = engine.process_edges(program, read, write, &active, forward)?;
            }
            let are_in_memory = engine.metrics().vertex_state_resident;
            Ok((all(engine, rows), are_in_memory))
        })
    };
    let (wanted, _) = rows(1, Memory::Bytes(1 << 30));
    // One or two workers have room, and eight have not: each borrows 10 MB.
    for (threads, mebibytes) in [(1, 20), (8, 20), (8, 24), (8, 28)] {
        let (found, are_in_memory) = rows(threads, Memory::Bytes(mebibytes << 20));
        assert!(found == wanted, "{threads} threads, {mebibytes} MiB");
        assert!(!are_in_memory, "{threads} threads, {mebibytes} MiB");
    }
}
