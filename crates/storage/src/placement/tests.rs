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
    ] {
        assert!(edges_are_slow(edges, slow), "{edges} {slow}");
    }
    for (edges, slow) in [
        ("edges=numa:0-1", "numa:1"),
        ("edges=file:/tmp", "file:/tmp/new"),
        ("edges=dram", "numa:0"),
    ] {
        assert!(!edges_are_slow(edges, slow), "{edges} {slow}");
    }
}
