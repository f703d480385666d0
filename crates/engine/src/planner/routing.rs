//! Dispatch: how messages that are on disk get to the runs of columns that need them (DFOGraph, section 4.2).
//!
//! | way | what is done |
//! | --- | --- |
//! | push | who has a batch of messages in memory, having signalled or received it, appends to a piece for each run what that one needs |
//! | pull | a run goes through the messages of a batch and puts aside what it needs, in memory as long as there is room, then on disk |
//! | none | every run reads all messages of the batches that it has cells of |
//!
//! The paper pushes by one thread, after messages were written and read again. Here whoever signals pushes what it has in its hands,
//! so that all cores do, and nothing is written that is only read to be dispatched. A pull costs reading everything, as none does; it is
//! worth it to a run that waits: for messages of other ranks that come first in the order of its fold. It pulls this rank's
//! meanwhile.

use std::ops::Range;
use std::sync::Arc;

use graphmill_graph::FileKind;

use crate::context::ExecContext;
use crate::error::EngineError;
use crate::memory::plan::HELD_MIN;
use crate::messages::routing::Routing;
use crate::messages::routing_table::RoutingTable;
use crate::planner::routing_cost::RoutingStats;
use crate::planner::routing_stats::{GroupOf, RoutingSample};
use crate::schedule::tasks::{StripRef, column_groups, mean, reads};

/// Where runs have fewer strips to leave a dispatch graph room, it is made once it would have saved so many ones of what making it takes.
const EARLY: u64 = 4;

/// Keeps what is known of the dispatch of a rank's messages, for one program and one way round of the graph.
pub(crate) struct RoutingPlanner {
    run_of: GroupOf,
    /// The name of the graph's file.
    file: &'static str,
    /// The graph is made before it is sure to be worth it.
    is_early: bool,
    known: RoutingConstants,
    graph: Option<Arc<RoutingTable>>,
    /// There is no room to make a graph.
    refused: bool,
    /// Bytes that a graph would have saved so far.
    missed: u64,
}

/// What does not change from pass to pass.
struct RoutingConstants {
    /// Runs that read a batch of messages, in the mean over vertices.
    reads: f64,
    /// By some of the sources; the spread by all, once there is a graph.
    sample: RoutingSample,
    /// Bytes that making a graph reads and writes, about.
    making: u64,
    /// Of the rank's columns: edges, and bytes of cells.
    edges: u64,
    cells: u64,
}

/// Edges, and bytes of cells, of a rank's columns.
fn work(machine: &ExecContext) -> [u64; 2] {
    machine
        .all_own_cells()
        .fold([0; 2], |[edges, bytes], cell| {
            [edges + cell.edges(), bytes + cell.data_bytes()]
        })
}

/// Bytes that making a graph reads and writes, about: of so many runs, that need messages of so many vertices, each of them `spread` times,
/// which fan-out lists of so many bytes say.
pub(crate) fn making_bytes(runs: usize, vertices: u64, spread: f64, fanout_bytes: u64) -> u64 {
    let lists = (runs as f64 / 8.0).min(4.0 * spread) * vertices as f64;
    fanout_bytes.saturating_add(2 * lists as u64)
}

/// What a graph has to have missed to save before it is made, of so many bytes to make it.
pub(crate) fn worth_making(making: u64, is_early: bool) -> u64 {
    if is_early { making / EARLY } else { making }
}

impl RoutingPlanner {
    /// The dispatcher of such runs, which makes its graph once that would have saved what making it takes, or a part of that where it `is_early`.
    /// Whether messages of other ranks are `filtered`.
    pub(crate) fn new(
        machine: &ExecContext,
        runs: &[Vec<StripRef>],
        file: &'static str,
        [filtered, is_early]: [bool; 2],
    ) -> Result<Self, EngineError> {
        let run_of = GroupOf::new(machine, runs);
        let sample = run_of.sample(machine, filtered)?;
        let vertices = machine.batches.vertices();
        let fanout = machine.graph.forward().bytes(FileKind::Fanout);
        let [edges, cells] = work(machine);
        Ok(RoutingPlanner {
            run_of,
            file,
            is_early,
            known: RoutingConstants {
                reads: mean(&machine.batches, &reads(machine, runs)),
                sample,
                making: making_bytes(runs.len(), vertices, sample.spread, fanout),
                edges,
                cells,
            },
            graph: None,
            refused: false,
            missed: 0,
        })
    }

    /// How the messages of a pass are dispatched, of so many active vertices of this rank and of others, of so many bytes each, and by what graph; with the
    /// bytes read and written to make it, in at most so much memory. `waits`: runs may have to wait for messages of other ranks while others are there.
    pub(crate) fn choose(
        &mut self,
        machine: &ExecContext,
        active: [u64; 2],
        (width, waits): (usize, bool),
        room: u64,
    ) -> Result<RoutingDecision, EngineError> {
        let none = (Routing::default(), None, [0; 2]);
        let facts = RoutingStats {
            active,
            width,
            vertices: machine.batches.vertices(),
            batches: machine.batches.len(),
            edges: self.known.edges,
            cells: self.known.cells,
            reads: self.known.reads,
            sample: self.known.sample,
            lists: self.graph.as_ref().map_or(0, |graph| graph.all_on_disk()),
            is_alone: machine.ranks.alone(),
            waits,
        };
        let (by_cost, gained) = facts.choose();
        let asked = machine.dispatch.asked();
        let dispatch = asked.unwrap_or(by_cost);
        if dispatch == Routing::default() {
            return Ok(none);
        }
        let mut moved = [0; 2];
        if self.graph.is_none() && !self.refused {
            self.missed = self.missed.saturating_add(gained);
            if asked.is_none() && self.missed < worth_making(self.known.making, self.is_early) {
                return Ok(none);
            }
            let path = machine.scratch.join(self.file);
            match RoutingTable::build(machine, &self.run_of.groups(machine), &path, room)? {
                Some((graph, made)) => {
                    self.known.sample.spread = graph.fanout();
                    self.graph = Some(Arc::new(graph));
                    moved = made;
                }
                None => self.refused = true,
            }
        }
        Ok((dispatch, self.graph.clone(), moved))
    }
}

/// Whether passes of all vertices move less where runs of fewer strips leave memory to dispatch their messages than where they do not:
/// groups of so many strips, and messages of so many bytes, which are `filtered` or not on their way from other ranks.
pub(crate) fn pays(
    machine: &ExecContext,
    [with, without]: [usize; 2],
    (width, filtered): (usize, bool),
) -> Result<bool, EngineError> {
    let [with, without] = [with, without].map(|group| column_groups(machine, group));
    let reads = |runs: &[Vec<StripRef>]| mean(&machine.batches, &reads(machine, runs));
    let vertices = machine.batches.vertices();
    let own = machine.arrays.vertices();
    let [edges, cells] = work(machine);
    let facts = RoutingStats {
        active: [own, vertices - own],
        width,
        vertices,
        batches: machine.batches.len(),
        edges,
        cells,
        reads: reads(&with),
        sample: GroupOf::new(machine, &with).sample(machine, filtered)?,
        lists: 0,
        is_alone: machine.ranks.alone(),
        waits: false,
    };
    Ok(facts.pays(reads(&without)))
}

/// Whether runs of a dense pass wait for messages of other ranks while those of their own are there, and have buffers for what they pull
/// meanwhile: others come first, in the order of a fold that goes by it, and a worker holds more than two batches.
pub(crate) fn waits(exact: bool, own: &Range<usize>, held: Option<usize>) -> bool {
    !exact && own.start > 0 && held > Some(HELD_MIN)
}

/// How the messages of a pass are dispatched, by what graph, and the bytes read and written to make it.
pub(crate) type RoutingDecision = (Routing, Option<Arc<RoutingTable>>, [u64; 2]);
