//! The passes of the ten algorithms of the paper.

/// Equal passes of an algorithm: how many edges send an update, as a share, and the number of passes.
pub(super) type PassShare = (f64, f64);

/// An algorithm as the model sees it.
#[derive(Debug)]
pub(super) struct AlgorithmWork {
    pub(super) name: &'static str,
    /// Edges carry weights.
    pub(super) weighted: bool,
    pub(super) passes: &'static [PassShare],
    /// Seconds of X-Stream and Chaos on one machine (Table 1).
    pub(super) table_1: (f64, f64),
}

/// Shares marked "counted" are counts of arcs of active vertices, pass by pass.
///
/// The graph is that of `generate kronecker 18 16 --weights f32`.
pub(super) const ALGORITHMS: [AlgorithmWork; 10] = [
    AlgorithmWork {
        name: "BFS",
        weighted: false,
        // Counted, levels of a search along the arcs.
        passes: &[
            (0.0, 3.0),
            (0.0016, 1.0),
            (0.406, 1.0),
            (0.572, 1.0),
            (0.0117, 1.0),
        ],
        table_1: (497.0, 594.0),
    },
    AlgorithmWork {
        name: "WCC",
        weighted: false,
        // Counted, least labels on the undirected graph until none changes.
        passes: &[
            (1.0, 1.0),
            (0.984, 1.0),
            (0.997, 1.0),
            (0.565, 1.0),
            (0.00508, 1.0),
            (0.0, 1.0),
        ],
        table_1: (729.0, 995.0),
    },
    AlgorithmWork {
        name: "MCST",
        weighted: true,
        // Counted, arcs between different trees in each round of Boruvka; each round takes a pass more to name the trees.
        passes: &[
            (1.0, 1.0),
            (0.958, 1.0),
            (0.901, 1.0),
            (0.0727, 1.0),
            (0.0, 4.0),
        ],
        table_1: (1239.0, 2129.0),
    },
    AlgorithmWork {
        name: "MIS",
        weighted: false,
        // Counted, the lexicographically first set: two passes a round.
        passes: &[
            (1.0, 1.0),
            (0.0162, 1.0),
            (0.15, 1.0),
            (0.0444, 1.0),
            (0.0339, 1.0),
            (0.0186, 1.0),
            (0.00567, 1.0),
            (0.0, 7.0),
        ],
        table_1: (983.0, 944.0),
    },
    AlgorithmWork {
        name: "SSSP",
        weighted: true,
        // Counted, rounds of Bellman and Ford along the arcs, integer weights.
        passes: &[
            (0.0, 3.0),
            (0.0016, 1.0),
            (0.406, 1.0),
            (0.96, 1.0),
            (0.88, 1.0),
            (0.712, 1.0),
            (0.535, 1.0),
            (0.34, 1.0),
            (0.158, 1.0),
            (0.0498, 1.0),
            (0.011, 1.0),
            (0.0017, 1.0),
        ],
        table_1: (2688.0, 3243.0),
    },
    AlgorithmWork {
        name: "PR",
        weighted: false,
        // Five iterations, and the degrees.
        passes: &[(1.0, 6.0)],
        table_1: (884.0, 1358.0),
    },
    AlgorithmWork {
        name: "SCC",
        weighted: false,
        // Colours forward (as components) and back (as a search), then the same for the vertices that are left: half of
        // the vertices of that graph are in no cycle and send few edges (43 K of 4.2 M, counted).
        passes: &[
            (1.0, 1.0),
            (0.984, 1.0),
            (0.997, 1.0),
            (0.565, 1.0),
            (0.005, 1.0),
            (0.406, 1.0),
            (0.572, 1.0),
            (0.0117, 1.0),
            (0.0, 9.0),
        ],
        table_1: (1689.0, 1962.0),
    },
    AlgorithmWork {
        name: "Cond",
        weighted: false,
        // The published code sends no updates.
        passes: &[(0.0, 1.0)],
        table_1: (123.0, 273.0),
    },
    AlgorithmWork {
        name: "SpMV",
        weighted: true,
        passes: &[(1.0, 1.0)],
        table_1: (206.0, 508.0),
    },
    AlgorithmWork {
        name: "BP",
        weighted: false,
        // Five iterations; by the published code the first finds an empty stream.
        passes: &[(0.0, 1.0), (1.0, 4.0)],
        table_1: (601.0, 610.0),
    },
];

/// Returns the algorithm of a name.
pub(super) fn algorithm(name: &str) -> &'static AlgorithmWork {
    let of_name = |work: &&AlgorithmWork| work.name == name;
    ALGORITHMS.iter().find(of_name).unwrap_or(&ALGORITHMS[0])
}
