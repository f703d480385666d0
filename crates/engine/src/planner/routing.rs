//! Routing: how messages on disk get to the column groups that need them (DFOGraph, section 4.2: *dispatch*).
//!
//! | mode | mechanism |
//! | --- | --- |
//! | push | the worker that signalled or received a batch, and has it in memory, writes a message run for each group that needs it |
//! | pull | a group reads the messages of a batch and buffers its own, in memory while they fit, then on disk |
//! | none | every group reads all messages of the batches that it has cells of |
//!
//! The paper pushes by one thread, after messages were written and read again. Here the signalling worker pushes the messages that it
//! holds, so all cores push, and no message is written only to be read for routing. A pull costs a full read, as none does; it is
//! worth it to a group that waits for messages of other ranks that come first in the order of its fold. It pulls this rank's
//! messages meanwhile.

use std::ops::Range;
use std::sync::Arc;

use graphmill_graph::FileKind;

use crate::context::ExecContext;
use crate::error::EngineError;
use crate::memory::plan::WINDOW_BATCHES_MIN;
use crate::messages::routing::Routing;
use crate::messages::routing_table::RoutingTable;
use crate::planner::routing_cost::RoutingStats;
use crate::planner::routing_stats::GroupOf;
use crate::schedule::tasks::{StripRef, column_groups, mean, reads};

/// If the table needs smaller groups, it is built once 1/4 of its build cost would have been saved.
const EARLY: u64 = 4;

/// A planner of the routing of a rank's messages, for one program and one orientation.
pub(crate) struct RoutingPlanner {
    group_of: GroupOf,
    /// The name of the file of the table.
    file: &'static str,
    /// The table is made before it is sure to be worth it.
    is_early: bool,
    /// The spread is by some of the sources; by all, once there is a table.
    known: RoutingStats,
    /// Bytes that making a table reads and writes, about.
    making: u64,
    table: Option<Arc<RoutingTable>>,
    /// There is no room to make a table.
    refused: bool,
    /// Bytes that a table would have saved so far.
    missed: u64,
}

/// Returns the inputs that stay constant from pass to pass, for messages of these column groups.
///
/// Active vertices, bytes of a message, and routing lists are zero. `filtered` says whether messages of other ranks are filtered.
fn stats(
    context: &ExecContext,
    groups: &[Vec<StripRef>],
    group_of: &GroupOf,
    filtered: bool,
) -> Result<RoutingStats, EngineError> {
    let cells = context.all_own_cells();
    let [edges, cells] = cells.fold([0; 2], |[edges, bytes], cell| {
        [edges + cell.edges(), bytes + cell.data_bytes()]
    });
    Ok(RoutingStats {
        active: [0; 2],
        width: 0,
        vertices: context.batches.vertices(),
        batches: context.batches.len(),
        edges,
        cells,
        reads: mean(&context.batches, &reads(context, groups)),
        sample: group_of.sample(context, filtered)?,
        lists: 0,
        is_alone: context.ranks.alone(),
        waits: false,
    })
}

/// Returns the approximate bytes read and written to build a table.
///
/// `groups` column groups need messages of `vertices` vertices, each of them `spread` times, as fan-out lists of `fanout` bytes say.
pub(crate) fn making_bytes(groups: usize, vertices: u64, spread: f64, fanout_bytes: u64) -> u64 {
    let lists = (groups as f64 / 8.0).min(4.0 * spread) * vertices as f64;
    fanout_bytes.saturating_add(2 * lists as u64)
}

/// Returns the missed savings, in bytes, after which a table is worth building.
pub(crate) fn worth_making(making: u64, is_early: bool) -> u64 {
    if is_early { making / EARLY } else { making }
}

impl RoutingPlanner {
    /// Plans the routing for these column groups.
    ///
    /// The table is built once the I/O it would have saved equals its build cost (a quarter of it if `is_early`). `filtered` says
    /// whether messages of other ranks are filtered.
    pub(crate) fn new(
        context: &ExecContext,
        groups: &[Vec<StripRef>],
        file: &'static str,
        [filtered, is_early]: [bool; 2],
    ) -> Result<Self, EngineError> {
        let group_of = GroupOf::new(context, groups);
        let known = stats(context, groups, &group_of, filtered)?;
        let fanout = context.graph.forward().bytes(FileKind::Fanout);
        Ok(RoutingPlanner {
            making: making_bytes(groups.len(), known.vertices, known.sample.spread, fanout),
            group_of,
            file,
            is_early,
            known,
            table: None,
            refused: false,
            missed: 0,
        })
    }

    /// Chooses the routing of a pass, given the active vertices of this rank and of others.
    ///
    /// Returns the table to route by, and the bytes read and written to build it in the given memory. `waits`: groups may wait for
    /// messages of other ranks while others are ready.
    pub(crate) fn choose(
        &mut self,
        context: &ExecContext,
        active: [u64; 2],
        (width, waits): (usize, bool),
        room: u64,
    ) -> Result<RoutingDecision, EngineError> {
        let none = (Routing::default(), None, [0; 2]);
        let facts = RoutingStats {
            active,
            width,
            lists: self.table.as_ref().map_or(0, |table| table.all_on_disk()),
            waits,
            ..self.known
        };
        let (by_cost, gained) = facts.choose();
        let asked = context.options.dispatch.asked();
        let dispatch = asked.unwrap_or(by_cost);
        if dispatch == Routing::default() {
            return Ok(none);
        }
        let mut moved = [0; 2];
        if self.table.is_none() && !self.refused {
            self.missed = self.missed.saturating_add(gained);
            if asked.is_none() && self.missed < worth_making(self.making, self.is_early) {
                return Ok(none);
            }
            let path = context.scratch.join(self.file);
            match RoutingTable::build(context, &self.group_of.groups(context), &path, room)? {
                Some((table, made)) => {
                    self.known.sample.spread = table.fanout();
                    self.table = Some(Arc::new(table));
                    moved = made;
                }
                None => self.refused = true,
            }
        }
        Ok((dispatch, self.table.clone(), moved))
    }
}

/// True if smaller groups, which leave memory for a routing table, move fewer bytes in full passes.
///
/// `filtered` says whether messages from other ranks are filtered.
pub(crate) fn pays(
    context: &ExecContext,
    [with, without]: [usize; 2],
    (width, filtered): (usize, bool),
) -> Result<bool, EngineError> {
    let [with, without] = [with, without].map(|group| column_groups(context, group));
    let own = context.arrays.vertices();
    let facts = RoutingStats {
        active: [own, context.batches.vertices() - own],
        width,
        ..stats(context, &with, &GroupOf::new(context, &with), filtered)?
    };
    Ok(facts.pays(mean(&context.batches, &reads(context, &without))))
}

/// True if groups wait for other ranks' messages while their own are ready, and can buffer pulls.
///
/// That is so if others come first in an ordered fold, and a worker holds more than two batches.
pub(crate) fn waits(exact: bool, own: &Range<usize>, window_batches: Option<usize>) -> bool {
    !exact && own.start > 0 && window_batches > Some(WINDOW_BATCHES_MIN)
}

/// The routing of a pass, its table, and the bytes read and written to build it.
pub(crate) type RoutingDecision = (Routing, Option<Arc<RoutingTable>>, [u64; 2]);
