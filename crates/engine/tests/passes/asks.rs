//! Asks: pointer jumping on a forest, against a walk to the root, and asks that are wrong.

use graphmill_engine::{
    Activate, AskProgram, EdgeResidency, Engine, EngineError, ProgramFootprint, Read, VertexArray,
    Write,
};
use graphmill_storage::{IoChoice, open_disk};

use crate::common::Ranks;
use crate::{Memory, Mode, Plain, all, run};

/// A vertex that is nearer to the root, and the sum of the steps up to it.
type Row = [u64; 2];

/// Each vertex asks the vertex above it for its row, until both know the root.
struct Jump;

impl AskProgram for Jump {
    type AskRows = Read<Row>;
    type AnswerRows = Read<Row>;
    type TakeRows = Write<Row>;
    type Answer = Row;
    type Sum = u64;

    fn ask(&self, v: u64, row: &Row) -> Option<u64> {
        (row[0] != v).then_some(row[0])
    }
    fn answer(&self, _: u64, row: &Row) -> Row {
        *row
    }
    fn take(&self, _: u64, row: &mut Row, [above, steps]: Row) -> (u64, Activate) {
        let is_below = row[0] != above;
        *row = [above, row[1] + steps];
        (
            1,
            if is_below {
                Activate::Yes
            } else {
                Activate::No
            },
        )
    }
}

/// The vertex above another; every 1000th is a root.
fn above(v: u64) -> u64 {
    match v % 1000 {
        0 => v,
        _ => v - 1 - (v * v + v / 7) % (v % 1000).min(40),
    }
}

fn by_hand(vertices: u64) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for v in 0..vertices {
        let row = match above(v) {
            up if up == v => [v, 0],
            up => [rows[up as usize][0], rows[up as usize][1] + v % 5],
        };
        rows.push(row);
    }
    rows
}

fn forest(engine: &mut Engine) -> Result<VertexArray<Row>, EngineError> {
    let rows = engine.vertex_array::<Row>("above")?;
    engine.process_vertices(rows.write(), None, |v, row| {
        *row = [above(v), if above(v) == v { 0 } else { v % 5 }];
    })?;
    Ok(rows)
}

/// Jumps until all vertices know their root; returns the rows, and the answers that were taken.
fn jumped(engine: &mut Engine) -> Result<(Vec<Row>, u64), EngineError> {
    let rows = forest(engine)?;
    let mut active = engine.full_set()?;
    let mut taken = 0;
    while !active.is_empty() {
        let (read, write) = (rows.read(), rows.write());
        let (sum, next) = engine.process_asks(&Jump, read, read, write, Some(&active))?;
        taken += sum;
        active = next;
    }
    Ok((all(engine, rows), taken))
}

#[test]
fn pointer_jumping_equals_a_walk_to_the_root() {
    let disk = open_disk(IoChoice::Auto).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for vertices in [1, 3000] {
        let expected = by_hand(vertices);
        let mut taken = None;
        for span in [64, 1 << 20] {
            let path = folder.path().join(format!("{vertices} {span}"));
            Plain::directed("a forest", vertices, []).store(&disk, &path, span, 1000, false);
            for ranks in [Ranks::One, Ranks::Local(2), Ranks::Simulated(4, 7)] {
                for memory in [Memory::Bytes(1 << 28), Memory::LeastAnd(0)] {
                    let mode = Mode {
                        ranks,
                        memory,
                        edges: EdgeResidency::Disk,
                        footprint: ProgramFootprint::USUAL.with_rows::<Write<Row>>(),
                        ..Mode::USUAL
                    };
                    let (rows, sum) = run(&path, mode, jumped);
                    assert!(rows == expected, "{vertices}, {span}, {mode:?}");
                    assert_eq!(*taken.get_or_insert(sum), sum, "{mode:?}");
                }
            }
        }
    }
}

#[test]
fn asks_that_do_not_fit_in_memory_go_to_disk() {
    const VERTICES: u64 = 200_000;
    let disk = open_disk(IoChoice::Auto).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    Plain::directed("a forest", VERTICES, []).store(&disk, &path, 1 << 13, 1000, false);
    let mode = Mode {
        memory: Memory::LeastAnd(0),
        edges: EdgeResidency::Disk,
        footprint: ProgramFootprint::USUAL.with_rows::<Write<Row>>(),
        ..Mode::USUAL
    };
    let (rows, written) = run(&path, mode, |engine| {
        let rows = forest(engine)?;
        let (read, write) = (rows.read(), rows.write());
        engine.process_asks(&Jump, read, read, write, None)?;
        let pass = engine.metrics().passes.last();
        let written = pass.map(|pass| [pass.messages, pass.bytes_written]);
        Ok((all(engine, rows), written.unwrap()))
    });
    for (v, row) in (0..VERTICES).zip(rows) {
        let steps = |v| if above(v) == v { 0 } else { v % 5 };
        let expected = [above(above(v)), steps(v) + steps(above(v))];
        assert_eq!(row, expected, "vertex {v}");
    }
    // A request and an answer for each vertex that is no root.
    assert_eq!(written[0], 2 * (VERTICES - VERTICES / 1000));
    let rows_bytes = VERTICES * size_of::<Row>() as u64;
    assert!(
        written[1] > 2 * rows_bytes,
        "{} bytes are written",
        written[1]
    );
}

/// The last vertex asks one that the graph does not have, or its answer panics.
struct Wrong {
    panics: bool,
}

impl AskProgram for Wrong {
    type AskRows = ();
    type AnswerRows = ();
    type TakeRows = ();
    type Answer = u64;
    type Sum = ();

    fn ask(&self, v: u64, (): ()) -> Option<u64> {
        Some(if self.panics { v } else { v + 1 })
    }
    fn answer(&self, v: u64, (): ()) -> u64 {
        assert!(!self.panics || v != 77, "vertex 77 is asked");
        v
    }
    fn take(&self, _: u64, (): (), _: u64) -> ((), Activate) {
        ((), Activate::No)
    }
}

#[test]
fn wrong_asks_end_the_pass_with_an_error() {
    let disk = open_disk(IoChoice::Auto).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    Plain::directed("isolated vertices", 100, []).store(&disk, &path, 64, 1000, false);
    let error = |panics| {
        run(&path, Mode::USUAL, |engine| {
            let asked = engine.process_asks(&Wrong { panics }, (), (), (), None);
            Ok(asked.map(drop).unwrap_err())
        })
    };
    let outside = error(false);
    assert!(
        matches!(
            outside,
            EngineError::NoSuchIndex {
                index: 100,
                vertices: 100
            }
        ),
        "{outside}"
    );
    let panicked = error(true).to_string();
    assert!(panicked.contains("vertex 77 is asked"), "{panicked}");
}
