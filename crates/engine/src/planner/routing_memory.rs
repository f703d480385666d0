//! Memory for a routing table, taken from accumulators and messages.

use crate::config::DispatchChoice;
use crate::memory::plan::{GraphShape, PassMemory};
use crate::messages::routing_size::TableMemory;
use crate::program::footprint::ProgramFootprint;

/// The table may take 1/8 of the free budget.
///
/// It may take 1/2 if routing was asked for, which makes it worth more.
const SHARE: u64 = 8;
const SHARE_ASKED: u64 = 2;

/// Pass memory that leaves some for a routing table.
pub(crate) struct RoutingBudget {
    pub(crate) room: PassMemory,
    /// Bytes for the graph.
    pub(crate) bytes: u64,
    /// True if there is nothing to compare.
    ///
    /// That is if groups are as large as without the table, or if routing was asked for.
    pub(crate) is_free: bool,
}

/// Returns the pass memory that leaves a routing table out of `free` bytes; `room` leaves none.
///
/// `graph` returns the memory of a table for groups of a size. Returns `None` if no messages are routed.
pub(crate) fn routing_budget(
    choice: DispatchChoice,
    shape: &GraphShape,
    sizes: ProgramFootprint,
    room: &PassMemory,
    free: u64,
    graph: impl Fn(usize) -> TableMemory,
) -> Option<RoutingBudget> {
    if room.window_batches.is_none() || choice == DispatchChoice::None {
        return None;
    }
    let is_asked = choice != DispatchChoice::Auto;
    let share = if is_asked { SHARE_ASKED } else { SHARE };
    let shares = (0..).map(|halved| (free / share) >> halved);
    let mut shares = shares.take_while(|share| *share > 0);
    let (mut less, mut bytes) = shares.find_map(|share| {
        let room = shape.plan(sizes, free - share)?;
        Some((room, share))
    })?;
    let graph = graph(less.group);
    if bytes < graph.least {
        return None;
    }
    if let Some(room) = shape.plan(sizes, free.saturating_sub(graph.most))
        && graph.most < bytes
    {
        (less, bytes) = (room, graph.most);
    }
    Some(RoutingBudget {
        room: less,
        bytes,
        is_free: is_asked || less.group == room.group,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    use graphmill_graph::{Batches, GraphDims};

    use crate::planner::routing_stats::graph_bytes;

    const BATCHES: u64 = 64;
    const SIZES: ProgramFootprint = ProgramFootprint::USUAL;

    fn batches() -> Batches {
        Batches::new((0..=BATCHES).map(|batch| batch << 17).collect()).unwrap()
    }

    fn shape() -> GraphShape {
        let measure = GraphDims {
            batches: batches(),
            cells: BATCHES * BATCHES,
            strips: BATCHES as usize,
            ..GraphDims::nothing()
        };
        GraphShape::of(&measure, 2)
    }

    fn graph(group: usize) -> TableMemory {
        let runs = (BATCHES as usize).div_ceil(group);
        graph_bytes(&batches(), 2, BATCHES * BATCHES, runs)
    }

    #[test]
    fn routing_memory_leaves_room_for_passes() {
        let shape = shape();
        let mut found = 0;
        for free in (1..40).map(|units| shape.least(SIZES) + (units << 21)) {
            let room = shape.plan(SIZES, free).unwrap();
            let beside = |choice| routing_budget(choice, &shape, SIZES, &room, free, graph);
            assert!(beside(DispatchChoice::None).is_none());
            if room.window_batches.is_none() {
                assert!(beside(DispatchChoice::Push).is_none());
                continue;
            }
            for choice in [DispatchChoice::Auto, DispatchChoice::Push] {
                let Some(beside) = beside(choice) else {
                    continue;
                };
                found += 1;
                let room_bytes = beside.room.besides + beside.room.messages;
                assert!(beside.bytes >= graph(beside.room.group).least);
                assert!(room_bytes + beside.bytes <= free, "{choice:?} of {free}");
                assert!(beside.room.group <= room.group);
                let is_asked = choice == DispatchChoice::Push;
                assert_eq!(beside.is_free, is_asked || beside.room.group == room.group);
            }
        }
        assert!(found > 20, "{found}");
    }
}
