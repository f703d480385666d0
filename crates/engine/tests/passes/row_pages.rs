//! Passes over rows on disk read the pages of the rows that they change, and no other.

use graphmill_engine::{
    Activate, Direction, EdgeProgram, EdgeResidency, KernelChoice, ProgramFootprint, SparseChoice,
    Write,
};
use graphmill_storage::{IoChoice, open_disk};

use crate::{Memory, Mode, Plain, run};

const VERTICES: u64 = 1 << 16;

type Row = [u64; 16];

/// Counts the messages to a vertex in its row.
struct Count;

impl EdgeProgram for Count {
    type SignalRows = ();
    type ApplyRows = Write<Row>;
    type Edge = ();
    type Message = u64;
    type EdgeMessage = u64;
    type Accumulator = u64;
    type Sum = u64;
    const IDENTITY: u64 = 0;
    const ORDER_INDEPENDENT: bool = true;

    fn signal(&self, _: u64, (): ()) -> Option<u64> {
        Some(1)
    }
    fn on_edge(&self, message: u64, (): ()) -> u64 {
        message
    }
    fn fold(&self, sum: &mut u64, message: u64) {
        *sum += message;
    }
    fn merge(&self, sum: &mut u64, later: u64) {
        *sum += later;
    }
    fn apply(&self, _: u64, row: &mut Row, sum: u64) -> (u64, Activate) {
        row[1] += sum;
        (sum, Activate::No)
    }
}

#[test]
fn scatter_reads_pages_of_reached_rows_only() {
    let disk = open_disk(IoChoice::Auto).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    let cycle = (0..VERTICES).map(|v| (v, (v + 1) % VERTICES, 1.0));
    Plain::directed("a cycle", VERTICES, cycle).store(&disk, &path, 1 << 14, 1 << 14, false);
    for kernel in [KernelChoice::Scatter, KernelChoice::Gather] {
        let mode = Mode {
            kernel,
            sparse: SparseChoice::Never,
            edges: EdgeResidency::Disk,
            memory: Memory::LeastAnd(0),
            footprint: ProgramFootprint::of::<Count>(),
            ..Mode::USUAL
        };
        let (rows_bytes, read) = run(&path, mode, |engine| {
            let rows = engine.vertex_array::<Row>("rows")?;
            engine.process_vertices(rows.write(), None, |v, row| *row = [v; 16])?;
            let mut active = engine.empty_set()?;
            for v in [0, 1, VERTICES - 1] {
                active.insert(v)?;
            }
            let (write, forward) = (rows.write(), Direction::Forward);
            let (sum, _) = engine.process_edges(&Count, (), write, &active, forward)?;
            assert_eq!(sum, 3);
            assert!(!engine.metrics().vertex_state_resident);
            let read = engine.metrics().passes.last().map(|pass| pass.bytes_read);
            // The rows of other pages are as they were.
            let wrong = |v, row: &Row| {
                let reached = u64::from(v < 3);
                u64::from(row[0] != v || row[1] != v + reached)
            };
            assert_eq!(engine.process_vertices(rows.read(), None, wrong)?, 0);
            Ok((VERTICES * size_of::<Row>() as u64, read.unwrap()))
        });
        assert!(read < rows_bytes / 8, "{kernel:?}: {read} bytes are read");
    }
}
