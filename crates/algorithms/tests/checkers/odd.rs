//! Hand-made graphs with the odd shapes of real ones.

/// A name, the vertices, the arcs.
pub(crate) type Graph = (&'static str, u64, Vec<(u64, u64)>);

/// Every odd graph that has a vertex 0.
pub(crate) fn graphs() -> Vec<Graph> {
    vec![
        ("one vertex", 1, vec![]),
        ("one vertex with a self-loop", 1, vec![(0, 0)]),
        ("isolated vertices only", 5, vec![]),
        (
            "duplicates and self-loops",
            4,
            vec![
                (0, 1),
                (0, 1),
                (1, 1),
                (1, 2),
                (0, 0),
                (2, 3),
                (1, 2),
                (3, 0),
            ],
        ),
        (
            "two components and an isolated vertex",
            6,
            vec![(0, 1), (1, 0), (3, 4), (4, 3)],
        ),
        ("a long path", 3000, (0..2999).map(|v| (v, v + 1)).collect()),
        (
            "a long path, backwards",
            3000,
            (0..2999).map(|v| (v + 1, v)).collect(),
        ),
        (
            "a cycle",
            100,
            (0..100).map(|v| (v, (v + 1) % 100)).collect(),
        ),
        ("a star out", 50, (1..50).map(|v| (0, v)).collect()),
        ("a star in", 50, (1..50).map(|v| (v, 0)).collect()),
        (
            "two ways of one length",
            6,
            vec![(0, 4), (0, 2), (4, 5), (2, 5), (5, 1), (1, 3)],
        ),
        (
            "arcs that go up only",
            40,
            (0..40)
                .flat_map(|u| (u + 1..40).map(move |v| (u, v)))
                .collect(),
        ),
    ]
}

/// Graphs with strong components of many sizes, and arcs between them.
pub(crate) fn tangled() -> Vec<Graph> {
    let mut graphs = vec![
        (
            "chained cycles of two",
            60,
            (0..30)
                .flat_map(|i| {
                    [
                        (2 * i, 2 * i + 1),
                        (2 * i + 1, 2 * i),
                        (2 * i + 1, 2 * i + 2),
                    ]
                })
                .filter(|arc| arc.1 < 60)
                .collect(),
        ),
        (
            "cycles within a cycle, and a tail",
            20,
            vec![
                (5, 9),
                (9, 5),
                (9, 2),
                (2, 7),
                (7, 9),
                (7, 7),
                (2, 11),
                (11, 12),
                (12, 11),
                (12, 12),
                (13, 11),
                (13, 13),
            ],
        ),
    ];
    for (name, step) in [("sparse", 3), ("dense", 7)] {
        let mut number = 1_u64;
        let mut draw = || {
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (number >> 33) % 70
        };
        let arcs = (0..step * 25).map(|_| (draw(), draw())).collect();
        graphs.push((name, 70, arcs));
    }
    graphs
}
