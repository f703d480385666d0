//! Reference graphs by the bucket executor: the answers, and the bytes of columns, for any ranks, threads, batches and links.

use std::collections::BTreeMap;
use std::path::Path;

use graphmill::advanced::CombineChoice;
use graphmill_raw::SplitMix64;
use graphmill_sim::SimulatedBuckets;

use crate::answers::Answers;
use crate::run::{Known, Size};
use crate::ways::{Method, exact};
use crate::{GRAPHS, has_too_many_batches, is_soaked, pairs};

/// Methods, whose group is one algorithm.
const METHODS: [Method; 6] = [
    exact("wcc", &["--method", "labels"]),
    exact("cdlp", &[]),
    exact("bfs", &["--parents"]),
    exact("sssp", &[]),
    Method {
        is_rounded: true,
        ..exact("pagerank", &[])
    },
    exact("pagerank", &["--precision", "fixed"]),
];

const SIZES: [Size; 3] = [Size::Chosen, Size::Vertices(64), Size::Vertices(1)];
const RANKS: [usize; 5] = [1, 2, 3, 4, 8];
/// Of each rank.
const THREADS: [usize; 3] = [1, 2, 5];
const LINKS: [&[&str]; 4] = [
    &["--link", "local"],
    &["--link", "udp"],
    &["--link", "udp", "--plain-datagrams"],
    SIMULATED,
];

/// The command has no such link: [`simulated`] runs the ranks.
pub(crate) const SIMULATED: &[&str] = &["--link", "sim"];
const COMBINE: [&str; 2] = ["never", "always"];

/// Batches at most in pairwise ways.
const PAIRED_BATCHES_MAX: u64 = 1_500;

/// Checks a graph in pairwise ways, or in every way by a method and a batch size that are drawn.
pub(crate) fn check(name: &str) {
    let Some(data) = crate::data() else { return };
    let number = GRAPHS.iter().position(|graph| *graph == name);
    let number = number.expect("a graph of the list");
    let rows = match is_soaked(number) {
        true => all(number),
        false => rows(&data),
    };
    let mut of_sizes = BTreeMap::<usize, Vec<Vec<usize>>>::new();
    for row in rows.into_iter().filter(|row| row[0] == number) {
        of_sizes.entry(row[1]).or_default().push(row);
    }
    let known = Known::load(&data, name);
    for (size, rows) in of_sizes {
        let size = SIZES[size].of(known.answers.vertices);
        if size.is_some_and(|size| has_too_many_batches(name, known.answers.vertices, size)) {
            continue;
        }
        let case = known.case(format!("{name} in buckets, batch size {size:?}"));
        case.import(size, "id", true);
        for (number, method) in METHODS.iter().enumerate() {
            let of_method = rows.iter().filter(|row| row[2] == number);
            let ways: Vec<Vec<String>> = of_method.map(|row| way(row)).collect();
            if ways.is_empty() {
                continue;
            }
            // Columns have the same fixed sums.
            let wanted = match method.options {
                ["--precision", _] => None,
                _ => Some(case.known(method)),
            };
            let words: Vec<Vec<&str>> = (ways.iter())
                .map(|way| way.iter().map(String::as_str).collect())
                .collect();
            let mut ways: Vec<(&Method, &[&str])> =
                words.iter().map(|way| (method, &way[..])).collect();
            if wanted.is_none() {
                ways.insert(0, (method, &[]));
            }
            case.find_the_same(std::slice::from_ref(method), &ways, wanted);
        }
    }
}

/// Pairwise rows of all graphs: graph, size, method, ranks, threads, link, combining.
fn rows(data: &Path) -> Vec<Vec<usize>> {
    let vertices = |graph: usize| Answers::vertices(data, GRAPHS[graph]);
    let vertices: Vec<u64> = (0..GRAPHS.len()).map(vertices).collect();
    pairs::rows(&counts(GRAPHS.len()), |a, b| match (a, b) {
        ((0, graph), (1, size)) => match SIZES[size].of(vertices[graph]) {
            Some(size) => vertices[graph].div_ceil(size) <= PAIRED_BATCHES_MAX,
            None => true,
        },
        _ => true,
    })
}

/// Every way of one graph.
fn all(graph: usize) -> Vec<Vec<usize>> {
    let random = &mut SplitMix64::new(graph as u64);
    let [_, sizes, methods, ways @ ..] = counts(1);
    let mut draw = |count: usize| random.below(count as u64) as usize;
    (0..ways.iter().product())
        .map(|number| {
            let mut row = vec![graph, draw(sizes), draw(methods)];
            let mut left: usize = number;
            for count in ways {
                row.push(left % count);
                left /= count;
            }
            row
        })
        .collect()
}

fn counts(graphs: usize) -> [usize; 7] {
    [
        graphs,
        SIZES.len(),
        METHODS.len(),
        RANKS.len(),
        THREADS.len(),
        LINKS.len(),
        COMBINE.len(),
    ]
}

fn way(row: &[usize]) -> Vec<String> {
    let (ranks, threads) = (RANKS[row[3]], THREADS[row[4]]);
    let (ranks, threads) = (ranks.to_string(), (ranks * threads).to_string());
    let way = ["--executor", "bucket", "--ranks", &ranks];
    let more = ["--threads", &threads, "--combine", COMBINE[row[6]]];
    let all = [&way[..], &more[..], LINKS[row[5]]].concat();
    all.into_iter().map(str::to_owned).collect()
}

/// Runs an algorithm on simulated ranks whose datagrams get lost, doubled, late and changed.
///
/// Takes the options of the command; returns the bytes of the result.
pub(crate) fn simulated(graph: &Path, algorithm: &str, options: &[&str]) -> Vec<u8> {
    let mut words = options
        .iter()
        .map(|word| word.trim_start_matches("--"))
        .peekable();
    let mut of_run = BTreeMap::from([("ranks", "1"), ("threads", "1"), ("combine", "")]);
    let mut of_algorithm = Vec::new();
    while let Some(name) = words.next() {
        let value = match name {
            "parents" => "true",
            _ => words.next().expect("options have values"),
        };
        match name {
            "executor" | "link" => {}
            _ if of_run.contains_key(name) => drop(of_run.insert(name, value)),
            _ => of_algorithm.push((name, value)),
        }
    }
    let number = |name: &str| of_run[name].parse::<usize>().expect("a number");
    let (ranks, threads) = (number("ranks"), number("threads"));
    let buckets = SimulatedBuckets {
        ranks,
        threads: threads / ranks,
        combine: match of_run["combine"] {
            "never" => CombineChoice::Never,
            _ => CombineChoice::Always,
        },
        seed: (ranks * 10 + threads) as u64,
    };
    let result = buckets.run(graph, algorithm, &of_algorithm);
    result.unwrap_or_else(|error| panic!("{algorithm} {options:?}: {error}"))
}
