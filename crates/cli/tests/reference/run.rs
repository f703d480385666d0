//! One reference graph through `import` and `run`, with several batch sizes and in both orders, against its known answers and the checkers:
//! all of it with everything, or so that each two meet.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use graphmill_algorithms::mis::Priority;
use graphmill_algorithms::{bfs, cdlp, mis, pagerank, scc, sssp, wcc};

use crate::answers::{Answers, Components};
use crate::command::{Workplace, assert_close, assert_same, complete, parsed};
use crate::graphs::Graph;
use crate::ways::{METHODS, Method, WAYS, all_ways, assert_agree, find_the_same, goes};
use crate::{GRAPHS, chunks, has_too_many_batches, is_soaked, pairs};

/// A size of batches.
#[derive(Clone, Copy)]
pub(crate) enum Size {
    /// The command's own choice.
    Chosen,
    Vertices(u64),
    /// Many cells, of a graph of any size.
    Twentieth,
}

impl Size {
    pub(crate) fn of(self, vertices: u64) -> Option<u64> {
        match self {
            Size::Chosen => None,
            Size::Vertices(size) => Some(size),
            Size::Twentieth => Some(vertices.div_ceil(20)),
        }
    }
}

/// The small ones give the engine many batches even on a small graph.
const SIZES: [Size; 6] = [
    Size::Chosen,
    Size::Twentieth,
    Size::Vertices(1024),
    Size::Vertices(64),
    Size::Vertices(7),
    Size::Vertices(1),
];

/// Number of sizes that are quick in every way on graphs of at most `PAIRED_BATCHES_MAX` batches.
const PAIRED_SIZES: usize = 4;
const PAIRED_BATCHES_MAX: u64 = 100;

/// Orders in which vertices are stored.
const ORDERS: [&str; 2] = ["id", "degree"];

pub(crate) fn check(name: &str) {
    let Some(data) = crate::data() else { return };
    let number = GRAPHS.iter().position(|graph| *graph == name);
    let number = number.expect("a graph of the list");
    let known = Known::load(&data, name);
    match is_soaked(number) {
        true => check_all(&data, name, &known),
        false => check_pairs(&data, (number, name), &known),
    }
    chunks::check(&data, (number, name), &known);
}

/// Checks the usual batches against all known answers, and pairwise runs.
///
/// In pairwise runs each two of graph, batch size, order, method and way meet.
fn check_pairs(data: &Path, (number, name): (usize, &str), known: &Known) {
    let order = ORDERS[number % 2];
    let case = known.case(format!("{name}, order of {order}"));
    case.import(None, order, false);
    case.all(true);
    case.parents();
    case.other_ranks(false);

    // Smaller batches in the usual way: two sizes of four with each graph, and each size in both orders.
    for (turn, size) in SIZES[2..].iter().enumerate() {
        let (size, order) = (size.of(known.answers.vertices), ORDERS[(number / 2) % 2]);
        let case = known.case(format!("{name}, batch size {size:?}, order of {order}"));
        let is_slow = |size| has_too_many_batches(&case.name, known.answers.vertices, size);
        if turn % 2 == number % 2 && !size.is_some_and(is_slow) {
            case.import(size, order, false);
            case.all(false);
        }
    }

    let mut cases = BTreeMap::<_, Vec<_>>::new();
    for row in rows(data) {
        if let [graph, order, size, method, way] = row[..]
            && graph == number
        {
            cases.entry((order, size)).or_default().push((method, way));
        }
    }
    for ((order, size), runs) in cases {
        let (size, order) = (SIZES[size].of(known.answers.vertices), ORDERS[order]);
        let case = known.case(format!("{name}, batch size {size:?}, order of {order}"));
        case.import(size, order, true);
        let mut before = 0;
        for methods in METHODS {
            let of_these =
                |run: &&(usize, usize)| (before..before + methods.len()).contains(&run.0);
            let chosen = runs.iter().filter(of_these);
            let ways: Vec<(&Method, &[&str])> = chosen
                .map(|(method, way)| (&methods[method - before], WAYS[*way]))
                .collect();
            before += methods.len();
            if !ways.is_empty() {
                let found = case.known(&methods[0]);
                case.find_the_same(methods, &ways, Some(found));
            }
        }
    }
}

/// Of all graphs: graph, order, size, method, way.
fn rows(data: &Path) -> Vec<Vec<usize>> {
    let vertices: Vec<u64> = GRAPHS
        .iter()
        .map(|name| Answers::vertices(data, name))
        .collect();
    let methods: Vec<&Method> = METHODS.iter().copied().flatten().collect();
    let counts = [
        GRAPHS.len(),
        ORDERS.len(),
        PAIRED_SIZES,
        methods.len(),
        WAYS.len(),
    ];
    pairs::rows(&counts, |a, b| match (a, b) {
        ((0, graph), (2, size)) => match SIZES[size].of(vertices[graph]) {
            Some(size) => vertices[graph].div_ceil(size) <= PAIRED_BATCHES_MAX,
            None => true,
        },
        ((3, method), (4, way)) => goes(methods[method], WAYS[way]),
        _ => true,
    })
}

/// The full product.
fn check_all(data: &Path, name: &str, known: &Known) {
    let vertices = known.answers.vertices;
    let sizes = SIZES.iter().filter(|size| !matches!(size, Size::Twentieth));
    for (size, order) in sizes.flat_map(|size| ORDERS.map(|order| (size.of(vertices), order))) {
        let case = known.case(format!("{name}, batch size {size:?}, order of {order}"));
        if size.is_some_and(|size| has_too_many_batches(&case.name, vertices, size)) {
            continue;
        }
        case.import(size, order, false);
        case.all(size.is_none());
        if matches!(size, None | Some(64)) {
            case.parents();
            case.other_ranks(size.is_none() && order == "id");
        }
    }
    for order in ORDERS {
        let case = known.case(format!("{name} by every way, order of {order}"));
        // Many cells in one order, and as the command would have it in the other.
        let size = if order == "id" {
            Size::Twentieth
        } else {
            Size::Chosen
        };
        case.import(size.of(vertices), order, true);
        case.all(false);
        for methods in METHODS {
            case.find_the_same(methods, &all_ways(methods), None);
        }
    }
    if let Some(file) = Graph::own_file(data, name) {
        let case = known.case(format!("{name}, its own file"));
        let (_, vertices) = known.graph.write(case.place.folder());
        case.place
            .import(&file, Some(&vertices), &["--duplicates", "first"]);
        case.components(true);
        case.depths(true);
        case.ranks(true);
    }
}

/// A graph and its known answers.
pub(crate) struct Known {
    pub(crate) graph: Graph,
    pub(crate) answers: Answers,
    /// The arcs that the checkers take.
    arcs: Vec<(u64, u64)>,
    weighted: Vec<(u64, u64, f64)>,
    /// What the first case found, by algorithm and options.
    found: RefCell<BTreeMap<String, Vec<u8>>>,
}

impl Known {
    pub(crate) fn load(data: &Path, name: &str) -> Known {
        let answers = Answers::load(data, name);
        let graph = Graph::load(data, name, answers.vertices, answers.directed)
            .expect("a format that is read here");
        let weighted = graph.arcs();
        let arcs = weighted.iter().map(|arc| (arc.0, arc.1)).collect();
        Known {
            graph,
            answers,
            arcs,
            weighted,
            found: RefCell::default(),
        }
    }

    pub(crate) fn case(&self, name: String) -> Case<'_> {
        let Known {
            graph,
            answers,
            arcs,
            weighted,
            found,
        } = self;
        Case {
            place: Workplace::new(name.clone()),
            name,
            graph,
            answers,
            arcs,
            weighted,
            found,
        }
    }
}

/// One way to import a graph. Thorough checks add the checkers, which are slower than the command.
pub(crate) struct Case<'a> {
    pub(crate) name: String,
    pub(crate) place: Workplace,
    graph: &'a Graph,
    answers: &'a Answers,
    arcs: &'a [(u64, u64)],
    weighted: &'a [(u64, u64, f64)],
    found: &'a RefCell<BTreeMap<String, Vec<u8>>>,
}

impl Case<'_> {
    /// Imports the graph; with `both_ways` round stored, passes have the choice.
    pub(crate) fn import(&self, size: Option<u64>, order: &str, both_ways: bool) {
        let mut options = vec!["--weights", "f64", "--duplicates", "min", "--order", order];
        match self.answers.directed {
            false => options.push("--undirected"),
            true if both_ways => options.push("--reverse"),
            true => {}
        }
        let size = size.map(|size| size.to_string());
        if let Some(size) = &size {
            options.extend(["--batch-size", size]);
        }
        let (edges, vertices) = self.graph.write(self.place.folder());
        self.place.import(&edges, Some(&vertices), &options);
    }

    fn all(&self, thorough: bool) {
        self.all_by_passes(thorough);
        self.communities(thorough);
    }

    /// All that do without sorted columns.
    pub(crate) fn all_by_passes(&self, thorough: bool) {
        self.components(thorough);
        self.strong_components(thorough);
        self.set(Priority::Id, thorough);
        self.depths(thorough);
        self.distances(thorough);
        self.ranks(thorough);
    }

    /// Runs an algorithm, and compares with what another case of the graph found.
    fn run(&self, algorithm: &str, options: &[&str]) -> PathBuf {
        let result = self.place.run(algorithm, options);
        let found = std::fs::read(&result).expect("a result");
        let run = format!("{algorithm} {}", options.join(" "));
        let mut known = self.found.borrow_mut();
        let what = format!("{}: {run}, and as stored before", self.name);
        match known.get(&run) {
            Some(wanted) => assert_agree(&what, algorithm == "pagerank", &found, wanted),
            None => drop(known.insert(run, found)),
        }
        result
    }

    /// Returns what a method finds in the usual way, checked against the known answers.
    pub(crate) fn known(&self, method: &Method) -> Vec<u8> {
        match (method.algorithm, method.options) {
            ("wcc", _) => self.components(false),
            ("scc", _) => self.strong_components(false),
            ("mis", []) => self.set(Priority::Hash(0), true),
            ("mis", _) => self.set(Priority::Id, false),
            ("cdlp", _) => self.communities(false),
            ("bfs", []) => self.depths(false),
            ("bfs", _) => self.parents(),
            ("sssp", _) => self.distances(false),
            _ => self.ranks(false),
        }
        std::fs::read(self.place.result()).expect("a result")
    }

    fn components(&self, thorough: bool) {
        let labels = self.labels("wcc", &self.answers.components);
        if thorough || self.answers.components.labels.is_none() {
            let verdict = wcc::check::check_components(self.answers.vertices, self.arcs, &labels);
            assert_eq!(verdict, Ok(()), "{}: wcc", self.name);
        }
    }

    fn strong_components(&self, thorough: bool) {
        let known = self.answers.strong.as_ref();
        let known = known.unwrap_or(&self.answers.components);
        let labels = self.labels("scc", known);
        if thorough || known.labels.is_none() {
            let verdict = scc::check::check_strong(self.answers.vertices, self.arcs, &labels);
            assert_eq!(verdict, Ok(()), "{}: scc", self.name);
        }
    }

    /// Runs an algorithm that labels vertices by components, and compares with the known ones.
    fn labels(&self, algorithm: &str, known: &Components) -> Vec<u64> {
        let what = format!("{}: {algorithm}", self.name);
        let labels: Vec<u64> = complete(self.values(&self.run(algorithm, &[])));
        let labels: Vec<u64> = labels.into_iter().map(|label| self.rank(label)).collect();
        let mut sizes = vec![0; labels.len()];
        labels.iter().for_each(|label| sizes[*label as usize] += 1);
        assert_eq!(
            sizes.iter().filter(|size| **size > 0).count() as u64,
            known.count,
            "{what}: components"
        );
        assert_eq!(
            sizes.iter().max(),
            Some(&known.largest),
            "{what}: the largest component"
        );
        if let Some(expected) = &known.labels {
            assert_same(&what, &labels, expected);
        }
        labels
    }

    /// The size is known of the greedy set in order of ids; the checker decides on the vertices.
    fn set(&self, priority: Priority, thorough: bool) {
        let what = format!("{}: mis, {priority:?}", self.name);
        let options = match priority {
            Priority::Id => &["--priority", "id"][..],
            Priority::Hash(_) => &[],
        };
        let selected: Vec<u64> = complete(self.values(&self.run("mis", options)));
        if priority == Priority::Id {
            let size: u64 = selected.iter().sum();
            assert_eq!(size, self.answers.independent, "{what}");
        }
        if thorough {
            let vertices = self.answers.vertices;
            let verdict = mis::check::check_set(vertices, self.arcs, priority, &selected);
            assert_eq!(verdict, Ok(()), "{what}");
        }
    }

    fn communities(&self, thorough: bool) {
        let (what, known) = (format!("{}: cdlp", self.name), &self.answers.communities);
        let labels: Vec<u64> = complete(self.values(&self.run("cdlp", &[])));
        let labels: Vec<u64> = labels.into_iter().map(|label| self.rank(label)).collect();
        let mut distinct = labels.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len() as u64, known.count, "{what}: communities");
        if let Some(expected) = &known.labels {
            assert_same(&what, &labels, expected);
        }
        if thorough || known.labels.is_none() {
            let symmetric = !self.answers.directed;
            let vertices = self.answers.vertices;
            let verdict = cdlp::check::check_labels(vertices, self.arcs, symmetric, 10, &labels);
            assert_eq!(verdict, Ok(()), "{what}");
        }
    }

    fn depths(&self, thorough: bool) {
        let (what, known) = (format!("{}: bfs", self.name), &self.answers.depths);
        let depths: Vec<Option<u64>> =
            parsed(self.values(&self.run("bfs", &["--source", &self.source()])));
        assert_eq!(
            depths.iter().flatten().count() as u64,
            known.reached,
            "{what}: reached"
        );
        assert_eq!(
            depths.iter().flatten().max(),
            Some(&known.greatest),
            "{what}: greatest depth"
        );
        if let Some(expected) = &known.depths {
            assert_same(&what, &depths, expected);
        }
        if thorough || known.depths.is_none() {
            let verdict = bfs::check::check_depths(
                self.answers.vertices,
                self.arcs,
                self.answers.source,
                &depths,
            );
            assert_eq!(verdict, Ok(()), "{what}");
        }
    }

    fn distances(&self, thorough: bool) {
        let (what, known) = (format!("{}: sssp", self.name), &self.answers.distances);
        let distances: Vec<Option<f64>> =
            parsed(self.values(&self.run("sssp", &["--source", &self.source()])));
        // Weights are integers, so the sums are exact.
        assert_eq!(
            distances.iter().flatten().sum::<f64>(),
            known.sum,
            "{what}: sum of all distances"
        );
        assert_eq!(
            distances.iter().flatten().fold(0.0, |a: f64, b| a.max(*b)),
            known.greatest,
            "{what}: greatest"
        );
        if let Some(expected) = &known.distances {
            assert_same(&what, &distances, expected);
        }
        if thorough || known.distances.is_none() {
            let (vertices, source) = (self.answers.vertices, self.answers.source);
            let verdict = sssp::check::check_distances(vertices, self.weighted, source, &distances);
            assert_eq!(verdict, Ok(()), "{what}");
        }
    }

    fn ranks(&self, thorough: bool) {
        let (what, known) = (format!("{}: pagerank", self.name), &self.answers.ranks);
        let iterate = |count: &str| {
            complete::<f64>(
                self.values(&self.run("pagerank", &["--iterations", count, "--damping", "0.85"])),
            )
        };
        let ranks = iterate("20");
        let (greatest, rank) = known.top_after_20;
        assert_close(
            &format!("{what}: the greatest after 20"),
            &[ranks[greatest as usize]],
            &[rank],
            1e-9,
        );
        if let Some(expected) = &known.after_20 {
            assert_close(&format!("{what} after 20"), &ranks, expected, 1e-9);
        }
        if thorough {
            let plain = pagerank::check::Equation::default();
            let verdict = pagerank::check::check_iterations(
                self.answers.vertices,
                self.arcs,
                plain,
                20,
                &ranks,
                1e-9,
            );
            assert_eq!(verdict, Ok(()), "{what} after 20");

            // 0.85 to the power of 200 is below 1e-14: converged within 64 bits.
            let ranks = iterate("200");
            let (best, expected): (Vec<f64>, Vec<f64>) = known
                .top
                .iter()
                .map(|top| (ranks[top.0 as usize], top.1))
                .unzip();
            assert_close(
                &format!("{what}: the ten greatest, converged"),
                &best,
                &expected,
                1e-9,
            );
            if let Some((expected, precision)) = &known.converged {
                assert_close(&format!("{what}, converged"), &ranks, expected, *precision);
            }
        }
    }

    pub(crate) fn find_the_same(
        &self,
        methods: &[Method],
        ways: &[(&Method, &[&str])],
        wanted: Option<Vec<u8>>,
    ) {
        let source = self.source();
        let asked = match methods[0].algorithm {
            "bfs" | "sssp" => vec!["--source", &source],
            "pagerank" => vec!["--iterations", "20"],
            _ => Vec::new(),
        };
        find_the_same(&self.place, &self.name, ways, &asked, wanted);
    }

    /// No answers are known for these, so the checker decides alone.
    pub(crate) fn parents(&self) {
        let parents: Vec<Option<u64>> =
            parsed(self.values(&self.run("bfs", &["--source", &self.source(), "--parents"])));
        let parents: Vec<_> = parents
            .into_iter()
            .map(|parent| parent.map(|id| self.rank(id)))
            .collect();
        let verdict = bfs::check::check_parents(
            self.answers.vertices,
            self.arcs,
            self.answers.source,
            &parents,
        );
        assert_eq!(verdict, Ok(()), "{}: parents", self.name);
    }

    /// Dropped mass, jumps to a few vertices, 32 bits, by all methods or the usual: the checker decides.
    pub(crate) fn other_ranks(&self, by_every_method: bool) {
        let sources = [self.answers.source, 0, self.answers.vertices / 2];
        let list = sources
            .map(|vertex| self.graph.ids[vertex as usize].to_string())
            .join(",");
        let plain = pagerank::check::Equation {
            damping: 0.7,
            dangling: pagerank::Dangling::Redistribute,
            sources: &[],
            ..Default::default()
        };
        let dropped = pagerank::check::Equation {
            dangling: pagerank::Dangling::Drop,
            ..plain
        };
        for (options, equation, share) in [
            (&["--dangling", "drop"][..], dropped, 1e-9),
            (
                &["--sources", &list][..],
                pagerank::check::Equation {
                    sources: &sources,
                    ..plain
                },
                1e-9,
            ),
            (
                &["--sources", &list, "--dangling", "drop"][..],
                pagerank::check::Equation {
                    sources: &sources,
                    ..dropped
                },
                1e-9,
            ),
            (&["--precision", "f32"][..], plain, 1e-3),
        ] {
            let methods = METHODS.iter().copied().flatten();
            let methods = methods.filter(|method| method.algorithm == "pagerank");
            let count = if by_every_method { usize::MAX } else { 1 };
            for method in methods.take(count) {
                let usual = &["--damping", "0.7", "--iterations", "7"][..];
                let options = [usual, options, method.options].concat();
                let ranks: Vec<f64> = complete(self.values(&self.place.run("pagerank", &options)));
                let verdict = pagerank::check::check_iterations(
                    self.answers.vertices,
                    self.arcs,
                    equation,
                    7,
                    &ranks,
                    share,
                );
                assert_eq!(verdict, Ok(()), "{}: pagerank {options:?}", self.name);
            }
        }
    }

    fn rank(&self, id: u64) -> u64 {
        self.graph
            .ids
            .binary_search(&id)
            .expect("a vertex of the graph") as u64
    }

    fn values(&self, result: &Path) -> Vec<Option<String>> {
        self.place.values(result, &self.graph.ids)
    }

    fn source(&self) -> String {
        self.graph.ids[self.answers.source as usize].to_string()
    }
}
