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

const fn work(
    name: &'static str,
    weighted: bool,
    table_1: (f64, f64),
    passes: &'static [PassShare],
) -> AlgorithmWork {
    AlgorithmWork {
        name,
        weighted,
        passes,
        table_1,
    }
}

/// Shares marked "counted" are counts of arcs of active vertices, pass by pass.
///
/// The graph is that of `generate kronecker 18 16 --weights f32`; a script followed each algorithm's definition.
/// Passes whose share is below 0.001 count as 0.
#[rustfmt::skip]
pub(super) const ALGORITHMS: [AlgorithmWork; 10] = [
    // Counted, levels of a search along the arcs.
    work("BFS", false, (497.0, 594.0), &[(0.0, 3.0), (0.0016, 1.0), (0.406, 1.0), (0.572, 1.0), (0.0117, 1.0)]),
    // Counted, least labels on the undirected graph until none changes.
    work("WCC", false, (729.0, 995.0), &[(1.0, 1.0), (0.984, 1.0), (0.997, 1.0), (0.565, 1.0), (0.005, 1.0), (0.0, 1.0)]),
    // Counted, arcs between different trees in each round of Boruvka. A second pass a round names the trees.
    work("MCST", true, (1239.0, 2129.0), &[(1.0, 1.0), (0.958, 1.0), (0.901, 1.0), (0.0727, 1.0), (0.0, 4.0)]),
    // Counted, the set that is first by ids, two passes a round.
    work("MIS", false, (983.0, 944.0), &[
        (1.0, 1.0), (0.0162, 1.0), (0.15, 1.0), (0.0444, 1.0), (0.0339, 1.0), (0.0186, 1.0), (0.0057, 1.0), (0.0034, 1.0), (0.0, 6.0),
    ]),
    // Counted, rounds of Bellman and Ford along the arcs with integer weights.
    work("SSSP", true, (2688.0, 3243.0), &[
        (0.0, 3.0), (0.0016, 1.0), (0.406, 1.0), (0.96, 1.0), (0.88, 1.0), (0.712, 1.0), (0.535, 1.0), (0.34, 1.0), (0.158, 1.0),
        (0.0498, 1.0), (0.011, 1.0), (0.0017, 1.0),
    ]),
    // Five iterations, and the degrees.
    work("PR", false, (884.0, 1358.0), &[(1.0, 6.0)]),
    // Reasoned: colours forward as WCC and back as BFS, and nine passes for the few vertices that are left.
    work("SCC", false, (1689.0, 1962.0), &[
        (1.0, 1.0), (0.984, 1.0), (0.997, 1.0), (0.565, 1.0), (0.005, 1.0), (0.406, 1.0), (0.572, 1.0), (0.0117, 1.0), (0.0, 9.0),
    ]),
    // By definition; the published code sends no updates.
    work("Cond", false, (123.0, 273.0), &[(0.0, 1.0)]),
    work("SpMV", true, (206.0, 508.0), &[(1.0, 1.0)]),
    // Five iterations. In the published code the first finds no updates.
    work("BP", false, (601.0, 610.0), &[(0.0, 1.0), (1.0, 4.0)]),
];

/// Returns the algorithm of a name.
pub(super) fn algorithm(name: &str) -> &'static AlgorithmWork {
    let of_name = |work: &&AlgorithmWork| work.name == name;
    ALGORITHMS.iter().find(of_name).unwrap_or(&ALGORITHMS[0])
}
