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
    pub(crate) memory: PassMemory,
    /// Bytes for the table.
    pub(crate) bytes: u64,
    /// True if there is nothing to compare.
    ///
    /// That is if groups are as large as without the table, or if routing was asked for.
    pub(crate) is_free: bool,
}

/// Returns the pass memory that leaves a routing table out of `free` bytes; `memory` leaves none.
///
/// `table` returns the memory of a table for groups of a size. Returns `None` if no messages are routed.
pub(crate) fn routing_budget(
    choice: DispatchChoice,
    shape: &GraphShape,
    sizes: ProgramFootprint,
    memory: &PassMemory,
    free: u64,
    table: impl Fn(usize) -> TableMemory,
) -> Option<RoutingBudget> {
    if memory.window_batches.is_none() || choice == DispatchChoice::None {
        return None;
    }
    let is_asked = choice != DispatchChoice::Auto;
    let share = if is_asked { SHARE_ASKED } else { SHARE };
    let shares = (0..).map(|halved| (free / share) >> halved);
    let mut shares = shares.take_while(|share| *share > 0);
    let (mut less, mut bytes) = shares.find_map(|share| {
        let memory = shape.plan(sizes, free - share)?;
        Some((memory, share))
    })?;
    let table = table(less.group);
    if bytes < table.least {
        return None;
    }
    if let Some(memory) = shape.plan(sizes, free.saturating_sub(table.most))
        && table.most < bytes
    {
        (less, bytes) = (memory, table.most);
    }
    Some(RoutingBudget {
        memory: less,
        bytes,
        is_free: is_asked || less.group == memory.group,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    use graphmill_graph::{Batches, GraphDims};

    use crate::planner::routing_stats::table_bytes;

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
        GraphShape::of(&measure).with_workers(2)
    }

    fn table(group_strips: usize) -> TableMemory {
        let groups = (BATCHES as usize).div_ceil(group_strips);
        table_bytes(&batches(), 2, BATCHES * BATCHES, groups)
    }

    #[test]
    fn routing_memory_leaves_room_for_passes() {
        let shape = shape();
        let mut found = 0;
        for free in (1..40).map(|units| shape.least(SIZES) + (units << 21)) {
            let memory = shape.plan(SIZES, free).unwrap();
            let beside = |choice| routing_budget(choice, &shape, SIZES, &memory, free, table);
            assert!(beside(DispatchChoice::None).is_none());
            if memory.window_batches.is_none() {
                assert!(beside(DispatchChoice::Push).is_none());
                continue;
            }
            for choice in [DispatchChoice::Auto, DispatchChoice::Push] {
                let Some(beside) = beside(choice) else {
                    continue;
                };
                found += 1;
                let room_bytes = beside.memory.besides + beside.memory.messages;
                assert!(beside.bytes >= table(beside.memory.group).least);
                assert!(room_bytes + beside.bytes <= free, "{choice:?} of {free}");
                assert!(beside.memory.group <= memory.group);
                let is_asked = choice == DispatchChoice::Push;
                assert_eq!(
                    beside.is_free,
                    is_asked || beside.memory.group == memory.group
                );
            }
        }
        assert!(found > 20, "{found}");
    }
}
