//! Tests of the plan of memory.

use graphmill_graph::Batches;

use super::*;

fn shape() -> GraphShape {
    GraphShape {
        rows_fit: false,
        workers: 2,
        parts: 0,
        batches: 65,
        vertices: 65 << 19,
        own: 65 << 19,
        wire: 0,
        widest: 1 << 19,
        entries: 1 << 19,
        strips: 1,
        targets: 65,
        bits: 65 << 16,
        set_of_vertices: 65 * HierarchicalBitmap::bytes(1 << 19),
        messages_leased: true,
        rows_leased: true,
        chunks: None,
        in_buckets: None,
    }
}

#[test]
fn least_memory_is_enough_and_exact() {
    for strips in [1, 3] {
        let shape = GraphShape { strips, ..shape() };
        let least = shape.least(ProgramFootprint::USUAL);
        assert!(shape.plan(ProgramFootprint::USUAL, least).is_some());
        assert!(shape.plan(ProgramFootprint::USUAL, least - 1).is_none());
        for more in 1..2000 {
            assert!(
                shape
                    .plan(ProgramFootprint::USUAL, least + (more << 12))
                    .is_some()
            );
        }
    }
}

#[test]
fn least_memory_of_a_rank_is_of_its_own_vertices() {
    let alone = shape();
    let rank_of_eight = GraphShape {
        batches: 8 * alone.batches,
        vertices: 8 * alone.vertices,
        bits: 8 * alone.bits,
        ..alone
    };
    let [least, of_eight] =
        [alone, rank_of_eight].map(|shape| shape.least(ProgramFootprint::USUAL));
    assert_eq!(least, of_eight);
}

#[test]
fn memory_plan_never_exceeds_free_bytes() {
    for (wire, pulls) in [(0, true), (1 << 20, true), (0, false), (1 << 20, false)] {
        let shape = GraphShape { wire, ..shape() };
        let sizes = ProgramFootprint {
            pulls,
            ..ProgramFootprint::USUAL
        };
        let mut free = shape.least(sizes);
        // How many have their messages on disk, and turn to one other rank at a time, or to more.
        let mut on_disk = [0; PEERS + 1];
        while free < 2 << 30 {
            let room = shape.plan(sizes, free).unwrap();
            let messages = match room.window_batches {
                Some(window_batches) => {
                    on_disk[room.peers] += 1;
                    shape.workers as u64 * shape.window(sizes, window_batches)
                        + room.peers as u64 * shape.passing(sizes)
                }
                None => shape.vertices * 8 + shape.bits,
            };
            assert!(room.besides + messages <= free, "{free}");
            free += free / 31;
        }
        assert!(on_disk[1] > 0 && on_disk[PEERS] > 1, "{on_disk:?}");
    }
}

#[test]
fn passes_of_messages_hold_a_list_of_parts() {
    let small = (0..=1000).map(|batch| 8 * batch).collect();
    let graph = GraphDims {
        batches: Batches::new(small).unwrap(),
        ..GraphDims::nothing()
    };
    // Each vertex may send to another batch, in either phase of an ask.
    let (shape, sizes) = (GraphShape::of(&graph), ProgramFootprint::USUAL);
    let more = shape.least(sizes.sending()) - shape.least(sizes);
    assert_eq!(more, 2 * 8000 * PART_BYTES);
    // On one of four ranks, its own and those that come.
    let of_rank = GraphDims {
        own: Some(0..250),
        ..graph
    };
    assert_eq!(GraphShape::of(&of_rank).parts, (2000 + 8000) * PART_BYTES);
}
