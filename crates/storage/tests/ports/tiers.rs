//! Memory by kind of data: it is memory wherever it lies, the budget pays for what it should, and files go with the process.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use graphmill_raw::numa::{NodeTable, Nodes};
use graphmill_storage::{DataKind, MemoryBudget, Placement, PlacementError, StorageError, Tiers};

fn tiers(asked: &[&str]) -> Tiers {
    let placement = Placement::parse(asked, None).expect("a placement");
    Tiers::open(&placement, 1).expect("tiers")
}

fn refusal(asked: &str) -> PlacementError {
    match Tiers::open(&Placement::parse(&[asked], None).expect("a placement"), 1) {
        Err(StorageError::Placement(error)) => error,
        other => panic!("{other:?}"),
    }
}

fn names(folder: &Path) -> usize {
    std::fs::read_dir(folder).expect("a folder").count()
}

#[test]
fn tier_memory_is_zeroed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display();
    let places = [
        "dram".to_owned(),
        "model".to_owned(),
        "numa:0".to_owned(),
        "numa:0:preferred".to_owned(),
        "numa:0:interleave".to_owned(),
        format!("file:{path}"),
        format!("file:{path}/new"),
    ];
    for place in places {
        let tiers = tiers(&[&format!("messages={place}")]);
        let budget = MemoryBudget::new(1 << 30);
        for bytes in [0, 1, 5000, (2 << 20) + 1] {
            let mut buffer = tiers
                .buffer(DataKind::Messages, &budget, "test", bytes)
                .unwrap();
            assert_eq!(buffer.len(), bytes);
            assert!(buffer.iter().all(|byte| *byte == 0), "{place}");
            buffer.fill(1);
        }
        assert_eq!(budget.available(), 1 << 30);
        assert_eq!(names(folder.path()), 0, "{place}: no file has a name");
    }
}

#[test]
fn budget_pays_for_memory_not_files() {
    // A build folder is on a disk; only files in memory count.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let asked = [
        &format!("edges=file:{}", folder.path().display()),
        "index=numa:0",
    ];
    let tiers = tiers(&asked);
    let budget = MemoryBudget::new(8192);
    let edges = tiers
        .buffer(DataKind::Edges, &budget, "edges", 1 << 20)
        .unwrap();
    assert_eq!((edges.len(), budget.available()), (1 << 20, 8192));
    let index = tiers
        .buffer(DataKind::Index, &budget, "index", 5000)
        .unwrap();
    assert_eq!((index.len(), budget.available()), (5000, 0));
    let error = tiers.buffer(DataKind::Vertices, &budget, "rows", 1);
    assert!(matches!(error, Err(StorageError::Budget(_))));
    assert_eq!(
        [DataKind::Edges, DataKind::Index].map(|kind| tiers.leased(kind, 10)),
        [0, 10]
    );
}

#[test]
fn budget_pays_for_files_in_memory() {
    let shm = Path::new("/dev/shm");
    if !shm.is_dir() {
        return;
    }
    let tiers = tiers(&["edges=file:/dev/shm"]);
    let budget = MemoryBudget::new(8192);
    let error = tiers.buffer(DataKind::Edges, &budget, "edges", 1 << 20);
    assert!(matches!(error, Err(StorageError::Budget(_))));
}

#[test]
fn memory_file_system_holds_leased_bytes_only() {
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
        return;
    };
    let tiers = tiers(&[&format!("messages=file:{}", folder.path().display())]);
    let budget = MemoryBudget::new(1 << 30);
    let buffers: Vec<_> = (0..10)
        .map(|_| tiers.buffer(DataKind::Messages, &budget, "box", 5000))
        .collect::<Result<_, _>>()
        .expect("boxes");
    let open = std::fs::read_dir("/proc/self/fd").expect("open files");
    let ours = open
        .map(|entry| entry.expect("an open file").path())
        .find(|file| std::fs::read_link(file).is_ok_and(|name| name.starts_with(folder.path())))
        .expect("the file without a name");
    let held = std::fs::metadata(ours).expect("its blocks").blocks() * 512;
    assert_eq!(held, (1 << 30) - budget.available());
    drop(buffers);
}

#[test]
fn tier_unavailable_is_refused_with_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::File::create_new(&file).unwrap();
    let cases = [
        (
            "edges=numa:1000".to_owned(),
            "no memory on node 1000, but on nodes 0",
        ),
        (
            "edges=file:/no/such/folder/file".to_owned(),
            "name a directory that exists",
        ),
        (
            format!("edges=file:{}", file.display()),
            "does not exist yet",
        ),
        ("edges=file:/dev/null".to_owned(), "DAX device"),
        ("edges=file:/proc".to_owned(), "cannot open file:/proc: "),
    ];
    for (asked, says) in cases {
        let error = refusal(&asked).to_string();
        assert!(error.contains(says), "{asked}: {error}");
    }
}

/// Node 0, and others in the table that the machine need not have: only node 0 is asked for memory.
fn on_nodes(asked: &[&str], slow: &str, free: &[(usize, u64)], sharers: usize) -> Tiers {
    let table = NodeTable {
        with_memory: Nodes::of(free.iter().map(|(node, _)| *node)),
        with_processors: Nodes::of([0]),
        free: free.to_vec(),
    };
    let placement = Placement::parse(asked, Some(slow)).expect("a placement");
    Tiers::on(&placement, &table, sharers).expect("tiers")
}

#[test]
fn bound_memory_is_leased_from_its_nodes() {
    let budget = MemoryBudget::new(1 << 30);
    let tiers = on_nodes(&["slow"], "numa:0", &[(0, 5 << 12)], 1);
    assert_eq!(tiers.free_on_nodes(DataKind::Edges), 5 << 12);
    let edges = tiers
        .buffer(DataKind::Edges, &budget, "edges", 8193)
        .unwrap();
    let error = tiers
        .buffer(DataKind::Index, &budget, "index", 3 << 12)
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("for index on node 0: 8192 of 20480 bytes"),
        "{text}"
    );
    assert!(text.contains("name more nodes"), "{text}");
    assert_eq!(
        budget.available(),
        (1 << 30) - (3 << 12),
        "a refused lease is returned"
    );
    drop(edges);
    assert_eq!(tiers.free_on_nodes(DataKind::Messages), 5 << 12);
    assert!(tiers.share_nodes(DataKind::Edges, DataKind::Vertices));
    assert!(tiers.check_nodes(DataKind::Messages, 5 << 12).is_ok());
    let error = tiers
        .check_nodes(DataKind::Messages, 20481)
        .unwrap_err()
        .to_string();
    assert!(error.contains("--place messages=dram"), "{error}");
    // Ranks of one machine take equal parts.
    let tiers = on_nodes(&["slow"], "numa:0", &[(0, 5 << 12)], 2);
    assert_eq!(tiers.free_on_nodes(DataKind::Edges), 10240);
}

#[test]
fn memory_without_a_limit_is_not_leased_from_nodes() {
    let budget = MemoryBudget::new(1 << 20);
    for slow in ["numa:0:preferred", "numa:0:interleave", "model"] {
        let tiers = on_nodes(&["slow"], slow, &[(0, 4096)], 1);
        assert_eq!(tiers.free_on_nodes(DataKind::Edges), u64::MAX, "{slow}");
        assert!(
            tiers
                .buffer(DataKind::Edges, &budget, "edges", 8192)
                .is_ok()
        );
    }
    let unknown = NodeTable {
        with_memory: Nodes::of([0]),
        with_processors: Nodes::of([]),
        free: Vec::new(),
    };
    let placement = Placement::parse(&["slow"], Some("numa:0")).unwrap();
    let tiers = Tiers::on(&placement, &unknown, 1).unwrap();
    assert!(
        tiers
            .buffer(DataKind::Edges, &budget, "edges", 8192)
            .is_ok()
    );
}

#[test]
fn parts_of_a_buffer_lie_in_their_files() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let asked = format!("edges=file:{},{}", path("0"), path("1"));
    let (tiers, budget) = (tiers(&[&asked]), MemoryBudget::new(4096));
    assert_eq!(
        [DataKind::Edges, DataKind::Index].map(|kind| tiers.parts(kind)),
        [2, 1]
    );
    assert_eq!(
        tiers.placement().at(DataKind::Edges).to_string(),
        asked["edges=".len()..]
    );
    let cut = |part| part * (4 << 20);
    let mut edges = tiers
        .buffer_in_parts(DataKind::Edges, &budget, "edges", 7 << 20, cut)
        .unwrap();
    edges.fill(1);
    assert_eq!((edges.len(), budget.available()), (7 << 20, 4096));
    let open = std::fs::read_dir("/proc/self/fd").expect("open files");
    let of_number = |file: &Path| {
        let name = std::fs::read_link(file).ok()?;
        let number: u64 = name
            .to_str()?
            .strip_prefix(folder.path().to_str()?)?
            .get(1..2)?
            .parse()
            .ok()?;
        Some((number, std::fs::metadata(file).ok()?.blocks() * 512))
    };
    let mut held: Vec<_> = open
        .filter_map(|entry| of_number(&entry.ok()?.path()))
        .collect();
    held.sort();
    assert_eq!(held, [(0, 4 << 20), (1, 4 << 20)], "whole huge pages");
    // Without cuts a buffer is in one file.
    assert_eq!(
        tiers
            .buffer(DataKind::Edges, &budget, "edges", 5)
            .unwrap()
            .len(),
        5
    );
}
