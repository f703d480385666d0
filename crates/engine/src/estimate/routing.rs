//! Messages on disk: whether a rank routes them to its groups, from which pass on, and what they move.

use graphmill_raw::AlignedBuffer;

use crate::config::DispatchChoice;
use crate::estimate::model::{PassTraffic, PlannedRank, RankEstimator, RoutingPlan};
use crate::estimate::spill::SpillEstimate;
use crate::memory::plan::PassMemory;
use crate::memory::run_bytes;
use crate::messages::routing::{Routing, RoutingMode};
use crate::messages::routing_size::TableMemory;
use crate::planner::routing::{making_bytes, waits, worth_making};
use crate::planner::routing_cost::RoutingStats;
use crate::planner::routing_memory::routing_budget;
use crate::planner::routing_stats::{GroupOf, RoutingSample, sample_bytes, table_bytes};
use crate::program::footprint::ProgramFootprint;
use crate::schedule::tasks::{ColumnLayout, column_groups, mean, reads};

/// How messages get to groups.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoutingEstimate {
    pub(crate) dispatch: Routing,
    /// Number of passes before it starts.
    pub(crate) early_passes: u64,
    /// True if the lists of who needs what are on disk, and bytes to make them.
    pub(crate) lists_on_disk: bool,
    pub(crate) made: PassTraffic,
}

/// Returns the bytes written to build lists, and read back if the memory holds them at the end.
///
/// `lists` and `on_disk` are their bytes in memory and on disk.
pub(crate) fn made(bytes: &TableMemory, [lists, on_disk]: [u64; 2], room: u64) -> PassTraffic {
    let written = if bytes.fits(room) { 0 } else { on_disk };
    let (stays, _) = bytes.resident_bytes(lists, room);
    PassTraffic {
        read: if stays { 0 } else { written },
        written,
        sent: 0,
    }
}

impl RankEstimator<'_> {
    /// Returns how messages can be routed in the given memory.
    pub(crate) fn to_dispatch(
        &self,
        sizes: ProgramFootprint,
        room: &PassMemory,
    ) -> Option<RoutingPlan> {
        let cells = self.columns().iter().map(|column| column.cells).sum();
        let table = |group| {
            let groups = column_groups(self, group).len();
            table_bytes(self.batches(), self.shape.workers, cells, groups)
        };
        let choice = self.question.dispatch;
        let beside = routing_budget(choice, &self.shape, sizes, room, self.free, table)?;
        let groups = column_groups(self, beside.memory.group);
        Some(RoutingPlan {
            table: table(beside.memory.group),
            groups: groups.len(),
            group_of: GroupOf::new(self, &groups),
            beside,
        })
    }

    /// How many groups read a batch, by batch.
    pub(crate) fn reads(&self, room: &PassMemory) -> Vec<f64> {
        match room.window_batches {
            Some(_) => reads(self, &column_groups(self, room.group)),
            None => Vec::new(),
        }
    }
}

impl PlannedRank<'_> {
    /// Returns the number of groups that messages may be routed to.
    pub(crate) fn groups_to_dispatch(&self) -> usize {
        self.to_dispatch.as_ref().map_or(0, |to| to.groups)
    }

    /// Which of them folds what comes from a batch, by batch of this rank.
    pub(crate) fn groups_from(&self, batch: usize) -> Vec<Option<usize>> {
        match &self.to_dispatch {
            Some(to) => to.group_of.from(batch),
            None => vec![None; self.of.own.len()],
        }
    }

    /// Returns the inputs of the routing cost, for a table in memory.
    pub(crate) fn facts(
        &self,
        room: &PassMemory,
        reads: &[f64],
        pieces: &SpillEstimate,
    ) -> RoutingStats {
        let (batches, columns) = (self.of.batches(), self.of.columns());
        let (vertices, own) = (batches.vertices(), self.of.own_vertices());
        let share = |part: f64, of: u64| part / (of as f64).max(1.0);
        let sizes = self.of.sizes;
        RoutingStats {
            active: [own, vertices - own],
            width: sizes.message,
            vertices,
            batches: batches.len(),
            edges: columns.iter().map(|column| column.edges).sum(),
            cells: columns.iter().map(|column| column.data_bytes).sum(),
            reads: mean(batches, reads),
            sample: RoutingSample {
                spread: share(pieces.messages, vertices),
                messages: [true, false].map(|is_own| {
                    let [messages, vertices] = self.sent_by(is_own);
                    share(messages as f64, vertices)
                }),
            },
            lists: 0,
            is_alone: self.of.ranks() == 1,
            waits: waits(sizes.exact, &self.of.own, room.window_batches),
        }
    }

    /// Vertices of a rank whose messages get to this one, when all are active.
    fn senders(&self, rank: usize) -> u64 {
        let senders = self.of.question.senders;
        match self.filters && rank != self.of.rank {
            true => senders.to[rank][self.of.rank],
            false => senders.all[rank],
        }
    }

    /// Returns the messages of this rank or of the others if all vertices are active, and their vertices.
    fn sent_by(&self, is_own: bool) -> [u64; 2] {
        let (own, all) = (self.of.own_vertices(), self.of.batches().vertices());
        let ranks = (0..self.of.ranks()).filter(|rank| (*rank == self.of.rank) == is_own);
        let messages = ranks.map(|rank| self.senders(rank)).sum();
        [messages, if is_own { own } else { all - own }]
    }

    /// Returns the routing of messages once it pays; `None` if it pays in no pass.
    pub(crate) fn dispatching(
        &self,
        to: &RoutingPlan,
        reads: &[f64],
        pieces: &SpillEstimate,
    ) -> Option<RoutingEstimate> {
        let (outline, choice) = (self.of.question.outline, self.of.question.dispatch);
        let passes = self.of.question.passes;
        let facts = self.facts(&to.beside.memory, reads, pieces);
        let (by_cost, gained) = facts.choose();
        let dispatch = choice.asked().unwrap_or(by_cost);
        if dispatch == Routing::default() {
            return None;
        }
        let fanout = outline.files.fanout;
        let making = making_bytes(to.groups, facts.vertices, facts.sample.spread, fanout);
        let early_passes = match choice.asked() {
            Some(_) => 0,
            None => worth_making(making, !to.beside.is_free)
                .div_ceil(gained.max(1))
                .saturating_sub(1),
        };
        if early_passes >= passes {
            return None;
        }
        let lists: f64 = pieces.lists_on_disk.iter().sum();
        let bytes = [pieces.lists, lists].map(|bytes| bytes as u64);
        let room = to.beside.bytes;
        let (lists_on_disk, _) = to.table.resident_bytes(bytes[0], room);
        let made = made(&to.table, bytes, room).and(PassTraffic {
            read: fanout,
            ..PassTraffic::default()
        });
        // The pass that makes the table does not know yet what its lists take.
        let is_known = lists_on_disk && passes - early_passes > 1;
        let facts = RoutingStats {
            lists: if is_known { lists as u64 } else { 0 },
            ..facts
        };
        Some(RoutingEstimate {
            dispatch: choice.asked().unwrap_or(facts.choose().0),
            early_passes,
            lists_on_disk,
            made,
        })
    }

    /// Returns the bytes of fan-out lists that are sampled to estimate what routing saves.
    pub(crate) fn looked_at(&self) -> u64 {
        let question = self.of.question;
        if self.room.window_batches.is_none() || question.dispatch == DispatchChoice::None {
            return 0;
        }
        let looks = match &self.to_dispatch {
            Some(to) if !to.beside.is_free => 2,
            _ => 1,
        };
        let vertices = self.of.batches().vertices();
        looks * sample_bytes(vertices, question.outline.files.fanout)
    }

    /// Returns the bytes that messages move on disk in a pass.
    ///
    /// A batch is written, whole or as message runs. It is read for each other rank if it is this rank's, and by the column
    /// groups that have cells of it; a message run is read once.
    pub(crate) fn messages(
        &self,
        room: &PassMemory,
        reads: &[f64],
        dispatching: &RoutingEstimate,
        pieces: &SpillEstimate,
    ) -> PassTraffic {
        let mut moved = PassTraffic::default();
        if room.window_batches.is_none() {
            return moved;
        }
        let cuts = self.of.question.cuts;
        let dispatch = dispatching.dispatch;
        let orientations = [dispatch.own, dispatch.others];
        let others = self.of.ranks() as u64 - 1;
        for rank in 0..self.of.ranks() {
            let is_own = rank == self.of.rank;
            let needed = self.senders(rank);
            let batches = cuts[rank]..cuts[rank + 1];
            let all = self.of.pieces(batches.clone(), needed);
            let orientation = if is_own {
                orientations[0]
            } else {
                orientations[1]
            };
            if orientation != RoutingMode::Push || is_own && others > 0 {
                moved.written = moved.written.saturating_add(all);
            }
            if is_own {
                moved.read = moved.read.saturating_add(all.saturating_mul(others));
            }
            if orientation != RoutingMode::Push {
                let often: f64 = reads[batches.clone()].iter().sum();
                let often = often / (batches.len() as f64).max(1.0);
                moved.read = moved.read.saturating_add((all as f64 * often) as u64);
            }
        }
        let pushed = self.pushed(dispatch, pieces);
        let is_looked_up = |orientation| orientation == RoutingMode::Push || dispatch.all_is_pulled;
        let lists = orientations.into_iter().zip(pieces.lists_on_disk);
        let lists = lists
            .filter(|(orientation, _)| dispatching.lists_on_disk && is_looked_up(*orientation));
        let lists: f64 = lists.map(|(_, bytes)| bytes).sum();
        moved.and(PassTraffic {
            read: pushed.saturating_add(lists as u64),
            written: pushed,
            sent: 0,
        })
    }

    /// Bytes of the pieces that are written for one column group each.
    pub(crate) fn pushed(&self, dispatch: Routing, pieces: &SpillEstimate) -> u64 {
        let orientations = [dispatch.own, dispatch.others];
        let pushed = orientations.into_iter().zip(pieces.bytes);
        let pushed = pushed.filter(|(orientation, _)| *orientation == RoutingMode::Push);
        let pushed: f64 = pushed.map(|(_, bytes)| bytes).sum();
        let aside = match dispatch.all_is_pulled {
            true => {
                let widest = self.of.batches().widest() as usize;
                let buffer = run_bytes::bytes_max(widest, self.of.sizes.message);
                pieces.aside(AlignedBuffer::footprint(buffer))
            }
            false => 0,
        };
        (pushed as u64).saturating_add(aside)
    }
}
