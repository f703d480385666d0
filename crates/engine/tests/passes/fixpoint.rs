//! Programs whose labels get less along a cycle, as distances do along one of negative weight, end with an error instead of never.

use graphmill_engine::{
    Direction, EdgeResidency, EdgeValue, Engine, EngineError, MonotoneProgram, VertexArray,
};
use graphmill_storage::{IoChoice, open_disk};

use crate::{Mode, Plain, engine};

/// A label that gets less with each arc.
#[derive(Clone, Copy)]
struct Falls<const UNIT_STEP: bool>;

impl<const UNIT_STEP: bool> MonotoneProgram for Falls<UNIT_STEP> {
    type Label = u32;
    type Edge = f32;
    const UNIT_STEP: bool = UNIT_STEP;

    fn on_edge(&self, label: u32, weight: f32) -> u32 {
        label - weight as u32
    }
    fn bucket(&self, label: u32) -> u64 {
        label.into()
    }
}

type Settle<P> = fn(&mut Engine, &P, VertexArray<u32>) -> Result<(), EngineError>;

/// What comes of a program over a cycle of a hundred vertices.
fn outcome<P: MonotoneProgram<Label = u32>>(
    edges: EdgeResidency,
    program: P,
    settle: Settle<P>,
) -> Result<(), EngineError> {
    let disk = open_disk(IoChoice::Auto).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    let cycle = (0..100).map(|v| (v, (v + 1) % 100, f32::ONE.into()));
    Plain::directed("a cycle", 100, cycle).store(&disk, &path, 30, 500, true);
    let mode = Mode {
        edges,
        ..Mode::USUAL
    };
    let mut engine = engine(&path, folder.path(), mode, 1 << 28).unwrap();
    let labels = engine.vertex_array::<u32>("labels").unwrap();
    let first = |v, label: &mut u32| *label = if v == 0 { 1 << 20 } else { u32::MAX };
    engine
        .process_vertices(labels.write(), None, first)
        .unwrap();
    settle(&mut engine, &program, labels)
}

fn active(engine: &Engine) -> graphmill_engine::ActiveSet {
    let mut active = engine.empty_set().unwrap();
    active.insert(0).unwrap();
    active
}

fn settled<P: MonotoneProgram<Label = u32>>(
    engine: &mut Engine,
    program: &P,
    labels: VertexArray<u32>,
) -> Result<(), EngineError> {
    let active = active(engine);
    engine.run_to_fixpoint(program, labels, active, Direction::Forward)
}

fn in_passes<P: MonotoneProgram<Label = u32>>(
    engine: &mut Engine,
    program: &P,
    labels: VertexArray<u32>,
) -> Result<(), EngineError> {
    let active = active(engine);
    engine.run_to_fixpoint_by_passes(program, labels, active, Direction::Forward)
}

#[test]
fn labels_falling_along_a_cycle_are_an_error() {
    for edges in [EdgeResidency::Disk, EdgeResidency::Memory] {
        for outcome in [
            outcome(edges, Falls::<false>, settled),
            outcome(edges, Falls::<false>, in_passes),
            outcome(edges, Falls::<true>, settled),
            outcome(edges, Falls::<true>, in_passes),
        ] {
            let Err(EngineError::Unsettled {
                passes, vertices, ..
            }) = outcome
            else {
                panic!("{edges:?}: {outcome:?}");
            };
            assert!(vertices == 100 && passes <= 101, "{passes} passes");
        }
    }
}
