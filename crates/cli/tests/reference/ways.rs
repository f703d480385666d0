//! Every way to the same answer: methods, directions, where edges and other data lie.

/// An algorithm by one of its methods.
pub(crate) struct Method {
    pub(crate) algorithm: &'static str,
    pub(crate) options: &'static [&'static str],
    /// Its values depend on the order in which messages arrive, as their sums do.
    pub(crate) is_rounded: bool,
    /// It does with edges on disk, and in the least memory that a run says is enough.
    pub(crate) streams: bool,
}

const fn exact(algorithm: &'static str, options: &'static [&'static str]) -> Method {
    Method {
        algorithm,
        options,
        is_rounded: false,
        streams: true,
    }
}

const fn pushed(options: &'static [&'static str]) -> Method {
    Method {
        is_rounded: true,
        ..exact("pagerank", options)
    }
}

/// The first of each algorithm is what it does by itself. What is not named alone here is its default.
pub(crate) const METHODS: &[&[Method]] = &[
    &[
        exact("wcc", &[]),
        exact("wcc", &["--method", "union-find"]),
        exact("wcc", &["--method", "labels"]),
        Method {
            streams: false,
            ..exact("wcc", &["--method", "afforest"])
        },
    ],
    &[exact("bfs", &[])],
    &[exact("bfs", &["--parents"])],
    &[
        exact("sssp", &[]),
        exact("sssp", &["--method", "bellman-ford"]),
        exact("sssp", &["--delta", "3"]),
    ],
    &[
        exact("pagerank", &["--iterations", "20"]),
        exact(
            "pagerank",
            &["--iterations", "20", "--method", "pregel-pull"],
        ),
        pushed(&["--iterations", "20", "--method", "pregel-push"]),
        pushed(&[
            "--iterations",
            "20",
            "--method",
            "pregel-push",
            "--combiner",
            "hybrid",
        ]),
        pushed(&[
            "--iterations",
            "20",
            "--method",
            "pregel-push",
            "--combiner",
            "own",
        ]),
    ],
];

/// How passes are done, and where data lies. `FOLDER` stands for one on a disk, `LEAST` for the memory that a run asks for that was
/// given too little.
pub(crate) const WAYS: &[&[&str]] = &[
    &[],
    &["--direction", "scatter"],
    &["--direction", "gather"],
    &["--seek", "always", "--threads", "1"],
    &["--seek", "never", "--threads", "3"],
    &["--place", "edges=dram", "--direction", "scatter"],
    &["--place", "edges=dram", "--direction", "gather"],
    &["--place", "edges=stream", "--direction", "scatter"],
    &["--place", "edges=stream", "--direction", "gather"],
    &["--place", "slow", "--slow-tier", "numa:0"],
    &["--place", "slow", "--slow-tier", "file:FOLDER"],
    &["--place", "rw-split", "--slow-tier", "model"],
    &["--place", "cache"],
    &["--memory", "LEAST"],
];
