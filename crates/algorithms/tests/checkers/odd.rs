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
