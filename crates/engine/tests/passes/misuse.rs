//! Programs that break a rule: the error names the rule and the vertex.

use std::path::PathBuf;
use std::sync::Once;

use graphmill_engine::{
    Activate, Direction, EdgeProgram, EdgeResidency, Engine, EngineError, Greatest, KernelChoice,
    Least, MonotoneProgram, PregelMode, Read, SparseChoice, VertexContext, VertexProgram, Write,
    job,
};
use graphmill_storage::{IoChoice, open_disk};
use tempfile::TempDir;

use crate::Memory::Bytes;
use crate::common::vertex_programs::{VERSIONS, graphs, in_modes, mode};
use crate::common::{Ranks, outcomes};
use crate::{Mode, Plain, all, random, run};

/// Broadcasts numbers of supersteps 0 to 2 and counts what comes; a mailbox holds the least or the sum.
struct Calls<const IDENTITY: u64, const SUM: bool> {
    twice: bool,
}

impl<const IDENTITY: u64, const SUM: bool> VertexProgram for Calls<IDENTITY, SUM> {
    type Value = u64;
    type Message = u64;
    type Edge = ();
    type Aggregate = ((Least<f64>, Greatest<f64>), (Least<u64>, Greatest<i64>));
    const IDENTITY: u64 = IDENTITY;
    const ORDER_INDEPENDENT: bool = true;

    fn compute(&self, vertex: &mut VertexContext<'_, Self>, message: Option<u64>) {
        let index = vertex.index();
        let signed = index as f64 - 10.5;
        vertex.aggregate((
            (Least(signed), Greatest(signed)),
            (Least(index + 7), Greatest(-(index as i64))),
        ));
        if vertex.superstep() == 1 {
            *vertex.value = message.unwrap_or(9);
        } else {
            vertex.broadcast(index + 1);
            if self.twice {
                vertex.broadcast(index + 3);
            }
        }
        if vertex.superstep() > 0 {
            vertex.vote_to_halt();
        }
    }
    fn combine(&self, into: &mut u64, message: u64) {
        *into = match SUM {
            true => *into + message,
            false => (*into).min(message),
        };
    }
}

#[test]
fn second_broadcast_is_combined_with_the_first() {
    for graph in graphs() {
        let mut expected = vec![9; graph.vertices as usize];
        let mut senders = vec![Vec::new(); graph.vertices as usize];
        for (s, d) in graph.pairs() {
            senders[d as usize].push(s);
        }
        for (sum, senders) in expected.iter_mut().zip(&senders) {
            if !senders.is_empty() {
                *sum = senders.iter().map(|s| 2 * s + 4).sum();
            }
        }
        for version in VERSIONS {
            let twice = |engine: &mut Engine| {
                let values = engine.vertex_array::<u64>("values")?;
                engine.pregel(Calls::<0, true> { twice: true }, values, version, Some(2))?;
                Ok(all(engine, values))
            };
            in_modes(&graph, twice, |mode, found| {
                let is_rank_0 = !found.is_empty();
                assert!(is_rank_0 && found == expected, "{version:?}, {mode:?}");
            });
        }
    }
}

#[test]
fn aggregators_keep_the_least_and_the_greatest() {
    let graph = Plain::directed("random", 2000, random(1, 2000, 9000));
    for version in VERSIONS {
        let extremes = |engine: &mut Engine| {
            let values = engine.vertex_array::<u64>("values")?;
            engine.pregel(Calls::<0, true> { twice: false }, values, version, Some(1))
        };
        in_modes(&graph, extremes, |mode, found| {
            let expected = ((Least(-10.5), Greatest(1988.5)), (Least(7), Greatest(0)));
            assert_eq!(found, expected, "{version:?}, {mode:?}");
        });
    }
}

#[test]
fn identity_that_changes_a_message_is_an_error() {
    let graph = Plain::directed("random", 2000, random(1, 2000, 9000));
    let first = graph.pairs().iter().map(|(s, _)| *s).min().unwrap();
    for version in VERSIONS {
        let zero = |engine: &mut Engine| {
            let values = engine.vertex_array::<u64>("values")?;
            let program = Calls::<0, false> { twice: false };
            let done = engine.pregel(program, values, version, Some(2));
            Ok(done.map(drop).map_err(|error| match &error {
                EngineError::NotIdentity { vertex, .. } => (*vertex, error.to_string()),
                error => panic!("{error}"),
            }))
        };
        for ranks in [Ranks::One, Ranks::Local(2)] {
            for edges in [EdgeResidency::Memory, EdgeResidency::Disk] {
                let mode = Mode {
                    ranks,
                    ..mode(edges, 2, Bytes(1 << 30))
                };
                let (vertex, text) = stored(&graph, mode, zero).unwrap_err();
                assert_eq!(vertex, first, "{version:?}, {mode:?}");
                let of_both = format!("IDENTITY 0 and message {} combine to 0", first + 1);
                assert!(text.contains("Calls") && text.contains(&of_both), "{text}");
            }
        }
    }
}

/// Stores a graph in a folder of its own; returns the folder and the graph's path.
fn in_folder(graph: &Plain) -> (TempDir, PathBuf) {
    let disk = open_disk(IoChoice::Auto).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    graph.store(&disk, &path, 64, 500, !graph.symmetric);
    (folder, path)
}

/// Runs over a stored graph in one mode.
fn stored<T: Send>(
    graph: &Plain,
    mode: Mode,
    what: impl Fn(&mut Engine) -> Result<T, EngineError> + Sync,
) -> T {
    let (_folder, path) = in_folder(graph);
    run(&path, mode, what)
}

/// The function that panics, at vertex 70 or on the edge from 3 to 70.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Panics {
    Signal,
    OnEdge,
    Fold,
    Apply,
    Never,
}

struct Panicking(Panics);

impl Panicking {
    fn meet(&self, at: Panics, is_here: bool) {
        assert!(self.0 != at || !is_here, "no luck in {at:?}");
    }
}

impl EdgeProgram for Panicking {
    type SignalRows = Read<u64>;
    type ApplyRows = Write<u64>;
    type Edge = f64;
    type Message = u64;
    type EdgeMessage = [u64; 2];
    type Accumulator = u64;
    type Sum = u64;
    const IDENTITY: u64 = 0;
    const ORDER_INDEPENDENT: bool = true;

    fn signal(&self, v: u64, _: &u64) -> Option<u64> {
        self.meet(Panics::Signal, v == 70);
        Some(v + 1)
    }
    fn on_edge(&self, _: u64, _: f64) -> [u64; 2] {
        [0, 0]
    }
    fn on_arc(&self, sender: u64, receiver: u64, message: u64, _: f64) -> [u64; 2] {
        assert_eq!(message, sender + 1);
        self.meet(Panics::OnEdge, sender == 3 && receiver == 70);
        [sender, receiver]
    }
    fn fold(&self, sum: &mut u64, [sender, receiver]: [u64; 2]) {
        self.meet(Panics::Fold, sender == 3 && receiver == 70);
        *sum = sum.wrapping_add((sender + 1) * (receiver + 1));
    }
    fn merge(&self, sum: &mut u64, later: u64) {
        *sum = sum.wrapping_add(later);
    }
    fn apply(&self, v: u64, row: &mut u64, sum: u64) -> (u64, Activate) {
        self.meet(Panics::Apply, v == 70);
        *row = sum;
        (1, Activate::Yes)
    }
}

/// All kernels, edges in memory and on disk, one rank and two.
fn kernels() -> impl Iterator<Item = Mode> {
    let kernels = [
        KernelChoice::Gather,
        KernelChoice::Scatter,
        KernelChoice::Auto,
    ];
    let sparse = [
        SparseChoice::Never,
        SparseChoice::Never,
        SparseChoice::Always,
    ];
    let residency = [EdgeResidency::Memory, EdgeResidency::Disk];
    let each = kernels.into_iter().zip(sparse).zip(0..3);
    each.flat_map(move |((kernel, sparse), _)| {
        residency.into_iter().flat_map(move |edges| {
            [Ranks::One, Ranks::Local(2)].map(|ranks| Mode {
                kernel,
                sparse,
                ranks,
                ..mode(edges, 2, Bytes(1 << 30))
            })
        })
    })
}

/// Prints no panics of the programs below.
pub(crate) fn hide_planted_panics() {
    static HIDDEN: Once = Once::new();
    HIDDEN.call_once(|| {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !panic
                .payload_as_str()
                .is_some_and(|text| text.starts_with("no luck in"))
            {
                hook(panic);
            }
        }));
    });
}

/// Returns the errors of a call at all ranks, but for those that say that another rank is lost.
fn errors(
    graph: &Plain,
    mode: Mode,
    what: impl Fn(&mut Engine) -> Result<(), EngineError> + Sync,
) -> Vec<String> {
    let (_folder, path) = in_folder(graph);
    let outcomes = outcomes(&path, mode, 1 << 30, what).into_iter();
    let mut errors: Vec<_> = outcomes.map(|done| done.unwrap_err().to_string()).collect();
    errors.retain(|error| !error.contains("is lost"));
    errors
}

#[test]
fn panic_of_a_program_names_its_vertex() {
    let arcs = random(1, 300, 1500).into_iter();
    let graph = Plain::directed("random", 300, arcs.chain([(3, 70, 1.0), (70, 3, 1.0)]));
    hide_planted_panics();
    for panics in [Panics::Signal, Panics::OnEdge, Panics::Fold, Panics::Apply] {
        for mode in kernels() {
            let told = errors(&graph, mode, |engine| {
                let sums = engine.vertex_array::<u64>("sums")?;
                let mut active = engine.empty_set()?;
                active.insert(3)?;
                active.insert(70)?;
                let (read, write) = (sums.read(), sums.write());
                let program = Panicking(panics);
                let done = engine.process_edges(&program, read, write, &active, Direction::Forward);
                let again = engine.process_vertices(sums.read(), None, |_, sum| *sum);
                assert!(again.is_err(), "{mode:?}");
                done.map(drop)
            });
            let site = match panics {
                Panics::OnEdge | Panics::Fold => {
                    "on the edge from vertex 3 (id 3) to vertex 70 (id 70)"
                }
                _ => "at vertex 70 (id 70)",
            };
            let expected = format!("the program panicked {site}: no luck in {panics:?}");
            assert_eq!(told, [expected], "{mode:?}");
        }
    }
}

#[test]
fn on_arc_knows_both_vertices_in_all_kernels() {
    let graph = Plain::directed("random", 300, random(1, 300, 1500));
    for direction in [Direction::Forward, Direction::Backward] {
        let mut expected = vec![0_u64; 300];
        for (s, d) in graph.pairs() {
            let (from, to) = match direction {
                Direction::Forward => (s, d),
                Direction::Backward => (d, s),
            };
            expected[to as usize] += (from + 1) * (to + 1);
        }
        for mode in kernels() {
            let sums = stored(&graph, mode, |engine| {
                let sums = engine.vertex_array::<u64>("sums")?;
                let active = engine.full_set()?;
                let (read, write) = (sums.read(), sums.write());
                engine.process_edges(&Panicking(Panics::Never), read, write, &active, direction)?;
                Ok(all(engine, sums))
            });
            assert!(sums == expected, "{mode:?}, {direction:?}");
        }
    }
}

/// Counts arcs, and panics at label `AT`: in `on_edge` if levels have one label, else in `bucket`.
#[derive(Clone, Copy)]
pub(crate) struct PanickingLabels<const UNIT_STEP: bool, const AT: u32>;

impl<const UNIT_STEP: bool, const AT: u32> MonotoneProgram for PanickingLabels<UNIT_STEP, AT> {
    type Label = u32;
    type Edge = ();
    const UNIT_STEP: bool = UNIT_STEP;

    fn on_edge(&self, label: u32, (): ()) -> u32 {
        assert!(!UNIT_STEP || label != AT, "no luck in OnEdge");
        label + 1
    }
    fn bucket(&self, label: u32) -> u64 {
        assert!(label != AT, "no luck in Bucket");
        label.into()
    }
}

pub(crate) fn settle_from<P: MonotoneProgram<Label = u32>>(
    engine: &mut Engine,
    source: u64,
    program: P,
) -> Result<(), EngineError> {
    let labels = engine.vertex_array::<u32>("labels")?;
    engine.process_vertices(labels.write(), None, |v, label| {
        *label = if v == source { 0 } else { u32::MAX };
    })?;
    let mut active = engine.empty_set()?;
    active.insert(source)?;
    let done = engine.run_to_fixpoint(&program, labels, active, Direction::Forward);
    let again = engine.process_vertices(labels.read(), None, |_, label| u64::from(*label));
    assert!(again.is_err());
    done
}

#[test]
fn panic_of_a_label_program_names_its_vertex() {
    let cycle = (0..300).map(|v| (v, (v + 1) % 300, 1.0));
    let graph = Plain::undirected("a cycle", 300, cycle);
    hide_planted_panics();
    for mode in kernels() {
        let told = errors(&graph, mode, |engine| {
            settle_from(engine, 0, PanickingLabels::<true, 2>)
        });
        let at = |v: u64| format!("the program panicked at vertex {v} (id {v}): no luck in OnEdge");
        assert!(told.contains(&at(2)), "{mode:?}: {told:?}");
        assert!(
            told.iter().all(|told| [at(2), at(298)].contains(told)),
            "{told:?}"
        );
        if mode.edges == EdgeResidency::Memory {
            let told = errors(&graph, mode, |engine| {
                settle_from(engine, 0, PanickingLabels::<false, 0>)
            });
            let expected = "the program panicked at vertex 0 (id 0): no luck in Bucket";
            assert_eq!(told, [expected], "{mode:?}");
        }
    }
}

#[test]
fn read_of_a_set_within_a_pass_is_an_error() {
    let graph = Plain::directed("random", 300, random(1, 300, 1500));
    for ranks in [Ranks::One, Ranks::Local(2)] {
        let mode = Mode {
            ranks,
            ..mode(EdgeResidency::Auto, 2, Bytes(1 << 30))
        };
        let refused = stored(&graph, mode, |engine| {
            let sums = engine.vertex_array::<u64>("sums")?;
            let mut active = engine.empty_set()?;
            active.insert_each([3, 70])?;
            let is_refused = |read: Result<(), _>| matches!(read, Err(EngineError::SetReadInPass));
            engine.process_vertices(sums.write(), Some(&active), |v, _| {
                let asked = is_refused(active.contains(v).map(drop));
                u64::from(asked && is_refused(active.for_each(|_| ())))
            })
        });
        assert_eq!(refused, 2, "{ranks:?}");
    }
}

/// Panics in superstep 1 at vertex 70.
struct Unlucky;

impl VertexProgram for Unlucky {
    type Value = u64;
    type Message = u64;
    type Edge = ();
    type Aggregate = ();
    const IDENTITY: u64 = 0;

    fn compute(&self, vertex: &mut VertexContext<'_, Self>, _: Option<u64>) {
        assert!(
            vertex.superstep() == 0 || vertex.index() != 70,
            "no luck here"
        );
        vertex.broadcast(1);
    }
    fn combine(&self, sum: &mut u64, other: u64) {
        *sum += other;
    }
}

#[test]
fn panic_of_compute_names_its_vertex() {
    let graph = Plain::directed("random", 2000, random(1, 2000, 9000));
    for version in [PregelMode::Pull, PregelMode::Push] {
        let told = stored(
            &graph,
            mode(EdgeResidency::Auto, 2, Bytes(1 << 30)),
            |engine| {
                let values = engine.vertex_array::<u64>("values")?;
                let done = engine.pregel(Unlucky, values, version, Some(3));
                Ok(done.map_err(|error| error.to_string()))
            },
        );
        let expected = "the program panicked at vertex 70 (id 70): no luck here";
        assert_eq!(told, Err(expected.into()), "{version:?}");
    }
}

#[test]
fn calls_that_differ_between_ranks_are_an_error() {
    let graph = Plain::directed("random", 2000, random(1, 2000, 9000));
    let two = Mode {
        ranks: Ranks::Local(2),
        ..mode(EdgeResidency::Auto, 1, Bytes(1 << 30))
    };
    for (ends_early, asks_set) in [(false, false), (true, false), (false, true)] {
        let told = stored(&graph, two, |engine| {
            job::compare_calls(engine);
            let sums = engine.vertex_array::<u64>("sums")?;
            engine.process_vertices(sums.write(), None, |v, sum| *sum = v)?;
            let (read, write) = (sums.read(), sums.write());
            if job::rank(engine).0 == 0 {
                let active = engine.empty_set()?;
                if asks_set {
                    let done = active.contains(3);
                    return Ok(done.map(drop).map_err(|error| error.to_string()));
                }
                let program = Panicking(Panics::Never);
                let done = engine.process_edges(&program, read, write, &active, Direction::Forward);
                return Ok(done.map(drop).map_err(|error| error.to_string()));
            }
            if !ends_early {
                engine.process_vertices(read, None, |_, sum| *sum)?;
            }
            Ok(Ok(()))
        });
        let theirs = match ends_early {
            true => "nothing more",
            false => "process_vertices of (Read<u64>, u64)",
        };
        let ours = match asks_set {
            true => "contains",
            false => "process_edges of Panicking",
        };
        let expected = format!(
            "cannot make call 1 of this session: rank 1 calls {theirs}, and this rank {ours}; \
             every rank must make the same calls in the same order"
        );
        assert_eq!(told, Err(expected), "{ends_early} {asks_set}");
    }
}
