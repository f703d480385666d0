//! Programs over edges that carry records: every way to read edges, and refused programs.

use graphmill_engine::{
    Activate, Direction, EdgeProgram, EdgeResidency, EdgeValue, EngineError, FieldType, Label,
    MonotoneProgram, PregelMode, Read, VertexContext, VertexProgram, Write, edge_record,
};
use graphmill_storage::{IoChoice, open_disk};

use crate::common::{Memory, Ranks, Records, engine};
use crate::{Mode, Plain, all, random, run};

edge_record! {
    /// A road.
    struct Road {
        metres: u16,
        speed: f32,
        lanes: u8,
    }
}

fn road(weight: f64) -> Road {
    Road {
        metres: 1 + weight as u16,
        speed: 0.5 + weight as f32,
        lanes: weight as u8 % 4,
    }
}

const ROADS: Records = Records {
    fields: Road::FIELDS,
    of_weight: |weight| {
        let Road {
            metres,
            speed,
            lanes,
        } = road(weight);
        let parts = [&metres.to_le_bytes()[..], &speed.to_le_bytes(), &[lanes]];
        parts.concat()
    },
};

/// Tolls over roads of more than one lane; they divide by a field that no edge has as 0.
#[derive(Clone, Copy)]
struct Tolls;

impl MonotoneProgram for Tolls {
    type Edge = Road;
    type Label = u64;
    fn on_edge(&self, label: u64, road: Road) -> u64 {
        let toll = 70_000 / u64::from(road.metres);
        match road.lanes {
            0 | 1 => u64::MAX,
            _ => label + toll,
        }
    }
}

/// The same as a vertex program.
struct TollsOfVertices;

impl VertexProgram for TollsOfVertices {
    type Value = u64;
    type Message = u64;
    type Edge = Road;
    type Aggregate = ();
    const IDENTITY: u64 = u64::MAX;
    const ORDER_INDEPENDENT: bool = true;

    fn compute(&self, me: &mut VertexContext<'_, Self>, cheapest: Option<u64>) {
        if me.superstep() == 0 {
            *me.value = u64::MAX;
        }
        let is_source = me.superstep() == 0 && me.index() == 0;
        let here = if is_source { Some(0) } else { cheapest };
        if let Some(here) = here.filter(|here| *here < *me.value) {
            *me.value = here;
            me.broadcast(here);
        }
        me.vote_to_halt();
    }
    fn combine(&self, cheapest: &mut u64, other: u64) {
        *cheapest = other.min(*cheapest);
    }
    fn on_edge(&self, toll: u64, road: Road) -> u64 {
        Tolls.on_edge(toll, road)
    }
}

/// Tolls by relaxing all arcs until none changes.
fn expected(graph: &Plain) -> Vec<u64> {
    let mut tolls = vec![u64::MAX; graph.vertices as usize];
    tolls[0] = 0;
    loop {
        let before = tolls.clone();
        for &(from, to, weight) in &graph.arcs {
            let here = before[from as usize];
            if here < u64::MAX {
                let there = Tolls.on_edge(here, road(weight));
                tolls[to as usize] = tolls[to as usize].min(there);
            }
        }
        if tolls == before {
            return tolls;
        }
    }
}

#[test]
fn records_reach_programs_in_every_mode() {
    let mut directed = Plain::directed("roads", 700, random(3, 700, 3000));
    let mut both = Plain::undirected("roads both ways", 500, random(4, 500, 900));
    for graph in [&mut directed, &mut both] {
        graph.records = Some(ROADS);
        let expected = expected(graph);
        assert!(expected.iter().filter(|toll| **toll < u64::MAX).count() > 100);
        let disk = open_disk(IoChoice::Auto).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("graph");
        graph.store(&disk, &path, 64, 500, !graph.symmetric);
        for edges in [
            EdgeResidency::Auto,
            EdgeResidency::Memory,
            EdgeResidency::Disk,
        ] {
            for ranks in [Ranks::One, Ranks::Local(3)] {
                for memory in [Memory::Bytes(1 << 28), Memory::LeastAnd(0)] {
                    let mode = Mode {
                        edges,
                        ranks,
                        memory,
                        ..Mode::USUAL
                    };
                    let found = run(&path, mode, |engine| {
                        let labels = engine.vertex_array::<u64>("tolls")?;
                        engine.process_vertices(labels.write(), None, |v, label| {
                            *label = if v == 0 { 0 } else { u64::MAX };
                        })?;
                        let mut source = engine.empty_set()?;
                        source.insert(0)?;
                        engine.run_to_fixpoint(&Tolls, labels, source, Direction::Forward)?;
                        Ok(all(engine, labels))
                    });
                    assert!(found == expected, "{}: {mode:?}", graph.name);
                    let versions = match edges {
                        EdgeResidency::Disk => &[PregelMode::Pull][..],
                        _ => &[PregelMode::Pull, PregelMode::Push],
                    };
                    for version in versions {
                        let found = run(&path, mode, |engine| {
                            let values = engine.vertex_array::<u64>("tolls")?;
                            match engine.pregel(TollsOfVertices, values, *version, None) {
                                Err(EngineError::PushNeedsMemory { .. }) => Ok(None),
                                Err(error) => Err(error),
                                Ok(()) => Ok(Some(all(engine, values))),
                            }
                        });
                        let is_right = found.is_none_or(|found| found == expected);
                        assert!(is_right, "{}: {version:?}, {mode:?}", graph.name);
                    }
                }
            }
        }
    }
}

/// Counts the arcs into each vertex, whose edges have values of some type.
struct Count<E>(std::marker::PhantomData<E>);

impl<E: EdgeValue> EdgeProgram for Count<E> {
    type SignalRows = Read<u64>;
    type ApplyRows = Write<u64>;
    type Edge = E;
    type Message = u64;
    type EdgeMessage = u64;
    type Accumulator = u64;
    type Sum = u64;
    const IDENTITY: u64 = 0;
    const ORDER_INDEPENDENT: bool = true;
    fn signal(&self, _: u64, _: &u64) -> Option<u64> {
        Some(1)
    }
    fn on_edge(&self, message: u64, _: E) -> u64 {
        message
    }
    fn fold(&self, sum: &mut u64, one: u64) {
        *sum += one;
    }
    fn merge(&self, sum: &mut u64, later: u64) {
        *sum += later;
    }
    fn apply(&self, _: u64, row: &mut u64, sum: u64) -> (u64, Activate) {
        *row = sum;
        (sum, Activate::No)
    }
}

edge_record! {
    /// The fields of a road in another order.
    struct Turned {
        speed: f32,
        metres: u16,
        lanes: u8,
    }
}

#[test]
fn programs_over_other_data_than_the_edges_carry_are_refused() {
    let mut roads = Plain::directed("roads", 100, random(5, 100, 300));
    roads.records = Some(ROADS);
    let weights = Plain::directed("weights", 100, random(5, 100, 300));
    let disk = open_disk(IoChoice::Auto).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let count =
        |name: &str, call: &dyn Fn(&mut graphmill_engine::Engine) -> Result<u64, EngineError>| {
            let scratch = tempfile::tempdir().unwrap();
            let path = folder.path().join(name);
            let mut engine = engine(&path, scratch.path(), Mode::USUAL, 1 << 28).unwrap();
            call(&mut engine).map_err(|error| error.to_string())
        };
    fn pass<E: EdgeValue>(engine: &mut graphmill_engine::Engine) -> Result<u64, EngineError> {
        let rows = engine.vertex_array::<u64>("arcs")?;
        let (every, program) = (engine.full_set()?, Count::<E>(std::marker::PhantomData));
        let direction = Direction::Forward;
        let done = engine.process_edges(&program, rows.read(), rows.write(), &every, direction)?;
        Ok(done.0)
    }
    for graph in [&roads, &weights] {
        graph.store(&disk, &folder.path().join(graph.name), 64, 500, false);
    }
    assert_eq!(count("roads", &pass::<Road>), Ok(300));
    assert_eq!(count("roads", &pass::<()>), Ok(300));
    let told = |name, call, parts: &[&str]| {
        let error = count(name, call).unwrap_err();
        for part in parts {
            assert!(error.contains(part), "{part}: {error}");
        }
    };
    let fields = "metres:u16,speed:f32,lanes:u8";
    let record = format!("carry the record {fields}");
    told(
        "roads",
        &pass::<f64>,
        &["a weight of each edge", &record, "--weights f32 or f64"],
    );
    let turned = "--edge-data speed:f32,metres:u16,lanes:u8";
    told(
        "roads",
        &pass::<Turned>,
        &["the record speed:f32,", &record, turned],
    );
    let wanted = format!("--edge-data {fields}");
    told("weights", &pass::<Road>, &["carry a weight", &wanted]);
    assert_eq!(Road::FIELDS[0], ("metres", FieldType::U16));
    assert_eq!(<u64 as Label>::NONE, u64::MAX);
}
