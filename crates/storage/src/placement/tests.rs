use super::*;

fn parse(asked: &[&str], slow: Option<&str>) -> Result<[String; 4], String> {
    let placement = Placement::parse(asked, slow).map_err(|error| error.to_string())?;
    Ok(DataKind::ALL.map(|kind| placement.at(kind).to_string()))
}

#[test]
fn placement_maps_presets_to_tiers() {
    let cases: &[(&[&str], Option<&str>, [&str; 4])] = &[
        (&[], None, ["dram", "dram", "dram", "auto"]),
        (&["dram"], None, ["dram"; 4]),
        (&["cache"], None, ["dram"; 4]),
        (&["slow"], Some("model"), ["model"; 4]),
        (
            &["rw-split"],
            Some("model"),
            ["dram", "dram", "model", "model"],
        ),
        (
            &[],
            Some("numa:1"),
            ["dram", "dram", "numa:1:bind", "numa:1:bind"],
        ),
        (
            &[
                "edges=stream",
                "vertices=numa:0-1:interleave",
                "index=numa:0,1:preferred",
            ],
            None,
            [
                "numa:0-1:interleave",
                "dram",
                "numa:0-1:preferred",
                "stream",
            ],
        ),
        // The later ones count.
        (
            &["slow", "edges=stream", "messages=file:/a:b", "edges=dram"],
            Some("model"),
            ["model", "file:/a:b", "model", "dram"],
        ),
        (
            &["vertices=slow"],
            Some("model"),
            ["model", "dram", "model", "model"],
        ),
    ];
    for (asked, slow, placed) in cases {
        assert_eq!(parse(asked, *slow).unwrap(), *placed, "{asked:?}");
    }
}

#[test]
fn placement_invalid_is_refused_with_a_hint() {
    let cases: &[(&[&str], Option<&str>, &str)] = &[
        (&["edge=dram"], None, "vertices, messages, index or edges"),
        (
            &["vertices=dram", "slow"],
            Some("model"),
            "--place slow replaces all earlier placements: give it first",
        ),
        (&["cache"], Some("model"), "--slow-tier model conflicts"),
        (&["dram"], Some("numa:1"), "no kind of data lies there"),
        (
            &["edges=stream", "index=dram"],
            Some("file:/a"),
            "leave one out",
        ),
        (&["fast"], None, "dram, slow, rw-split, cache"),
        (
            &["edges=disk"],
            None,
            "numa:NODES[:bind|preferred|interleave]",
        ),
        (&["edges=numa:x"], None, "numa:NODES"),
        (&["edges=numa:0:near"], None, "bind|preferred|interleave"),
        (&["edges=file:"], None, "file:PATH"),
        (&["edges=file:/a,,/b"], None, "file:PATH"),
        (&["edges=dram:1"], None, "numa:NODES"),
        (&["vertices=stream"], None, "only edges can be stream"),
        (&["messages=auto"], None, "only edges can be auto"),
        (&["slow"], None, "--slow-tier"),
        (&["index=slow"], None, "--slow-tier"),
        (&[], Some("dram"), "--slow-tier dram: give numa:NODES"),
        (&[], Some("stream"), "give numa:NODES"),
    ];
    for (asked, slow, says) in cases {
        let error = parse(asked, *slow).unwrap_err();
        assert!(error.contains(says), "{asked:?}: {error}");
    }
}

#[test]
fn slow_is_the_tier_named_slow() {
    let of = |asked: &[&str], slow| {
        let placement = Placement::parse(asked, slow).unwrap();
        DataKind::ALL.map(|kind| placement.is_slow(kind))
    };
    assert_eq!(of(&[], Some("numa:0")), [false, false, true, true]);
    assert_eq!(of(&["edges=numa:0"], None), [false; 4]);
    assert_eq!(of(&["edges=model"], None), [false, false, false, true]);
    // Something always lies on the slow tier, or it is refused.
    let edges_are_slow = |edges: &str, slow| of(&["dram", "index=slow", edges], Some(slow))[3];
    for (edges, slow) in [
        ("edges=numa:0:preferred", "numa:0"),
        ("edges=numa:2", "numa:2-3:interleave"),
        ("edges=file:/tmp/", "file:/tmp"),
        ("edges=file:/usr/../tmp/new", "file:/tmp"),
        ("edges=file:src", "file:./src/../src"),
        ("edges=file:/tmp/a,/usr/../tmp/b", "file:/var,/tmp"),
    ] {
        assert!(edges_are_slow(edges, slow), "{edges} {slow}");
    }
    for (edges, slow) in [
        ("edges=numa:0-1", "numa:1"),
        ("edges=file:/tmp", "file:/tmp/new"),
        ("edges=file:/tmp/a,/var", "file:/tmp"),
        ("edges=dram", "numa:0"),
    ] {
        assert!(!edges_are_slow(edges, slow), "{edges} {slow}");
    }
}

#[test]
fn rw_split_binds_vertices_to_nodes_of_dram() {
    use graphmill_raw::numa::{NodeTable, Nodes};
    let table = |processors: &[usize]| NodeTable {
        with_memory: Nodes::of([0, 1, 2]),
        with_processors: Nodes::of(processors.iter().copied()),
        free: Vec::new(),
    };
    let resolved = |asked: &[&str], slow, processors: &[usize]| {
        let placement = Placement::parse(asked, Some(slow)).unwrap();
        let places = DataKind::ALL.map(|kind| placement.resolve(kind, &table(processors)));
        places.map(|place| place.to_string())
    };
    let (dram, slow) = ("numa:0-1:bind", "numa:2:bind");
    // Node 3 has processors and no memory.
    assert_eq!(
        resolved(&[], "numa:2", &[0, 1, 3]),
        [dram, dram, slow, slow]
    );
    assert_eq!(
        resolved(&["rw-split", "messages=dram"], "numa:2", &[0, 1]),
        [dram, "dram", slow, slow]
    );
    // Processors near the slow tier too, or no others: nothing is bound.
    assert_eq!(resolved(&[], "numa:0-2", &[0, 1])[0], "dram");
    assert_eq!(resolved(&["rw-split"], "model", &[0, 1])[0], "dram");
    assert_eq!(
        resolved(&["dram", "edges=slow"], "numa:2", &[0, 1])[0],
        "dram"
    );
}

#[test]
fn overlapping_nodes_have_a_budget_for_each_union() {
    use graphmill_raw::numa::{NodeTable, Nodes};
    let table = NodeTable {
        with_memory: Nodes::of([0, 1, 2]),
        with_processors: Nodes::of([0]),
        free: vec![(0, 10), (1, 20), (2, 40)],
    };
    let places = ["numa:0", "numa:0-1", "numa:2", "dram"].map(|name| Tier::named(name).unwrap());
    let budgets = crate::tiers::node_budgets(&places, &table, 1);
    let mut found: Vec<(String, u64)> = budgets
        .iter()
        .map(|(nodes, budget)| (nodes.to_string(), budget.total()))
        .collect();
    found.sort();
    let expected = [("0", 10), ("0,2", 50), ("0-1", 30), ("0-2", 70), ("2", 40)];
    assert_eq!(
        found,
        expected.map(|(nodes, bytes)| (nodes.to_owned(), bytes))
    );
}
