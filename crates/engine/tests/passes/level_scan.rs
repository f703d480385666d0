//! Searches over cells on disk: after a scan for a level, the next one is found from the lists of pending vertices.

use graphmill_engine::{EdgeResidency, Mode as PassMode};
use graphmill_storage::{IoChoice, open_disk};

use crate::misuse::{PanickingLabels, hide_planted_panics, settle_from};
use crate::search_ranks::{Levels, settled};
use crate::{Memory, Mode, Plain, random, run};

/// A graph of many edges whose second level, from vertex 7, is all of the first 2,000 vertices.
fn hubs() -> Plain {
    // The source has edges to all of 2,000 vertices. These lead to ten hubs, of more edges than a scan keeps, and their leaves.
    let from_source = (0..2000).map(|v| (7, v, 1.0));
    let to_hubs = (0..10).map(|hub| (100 * hub, 2000 + hub, 1.0));
    let leaves = (0..1000).map(|leaf| (2000 + leaf % 10, 2010 + leaf, 1.0));
    let edges = from_source.chain(random(1, 2000, 600_000));
    let edges = edges.chain(to_hubs).chain(leaves);
    Plain::undirected("hubs behind the first level", 3010, edges)
}

/// Passes are scans for a level.
const SCANNED: Mode = Mode {
    memory: Memory::Bytes(12 << 20),
    ..Mode::USUAL
};

#[test]
fn level_after_a_scan_reaches_neighbours_of_vertices_without_lists() {
    let disk = open_disk(IoChoice::Auto).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    hubs().store(&disk, &path, 256, 1 << 20, false);
    let levels = |mode| {
        run(&path, mode, |engine| {
            settled(engine, &Levels, [0, u32::MAX])
        })
    };
    let on_disk = Mode {
        edges: EdgeResidency::Disk,
        ..Mode::USUAL
    };
    let (wanted, _) = levels(on_disk);
    let (found, modes) = levels(SCANNED);
    assert_eq!(modes[1..3], [PassMode::Gather, PassMode::Pull], "{modes:?}");
    assert!(found == wanted);
}

#[test]
fn panic_of_on_edge_in_a_scan_names_its_vertex() {
    hide_planted_panics();
    let disk = open_disk(IoChoice::Auto).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    hubs().store(&disk, &path, 256, 1 << 20, false);
    let told = run(&path, SCANNED, |engine| {
        let done = settle_from(engine, 7, PanickingLabels::<true, 1>);
        Ok(done.map_err(|error| error.to_string()))
    });
    let expected = "the program panicked at vertex 0 (id 0): no luck in OnEdge";
    assert_eq!(told, Err(expected.into()));
}
