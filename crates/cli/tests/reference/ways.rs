//! Every way to the same answer: methods, directions, where edges and other data lie.

use crate::buckets::{SIMULATED, simulated};
use crate::command::{Workplace, assert_close};

/// An algorithm by one of its methods.
#[derive(Clone, Copy)]
pub(crate) struct Method {
    pub(crate) algorithm: &'static str,
    pub(crate) options: &'static [&'static str],
    /// Its values depend on the order in which messages arrive, as their sums do.
    pub(crate) is_rounded: bool,
    /// It does with edges on disk, and in the least memory that a run says is enough.
    pub(crate) streams: bool,
    /// Several ranks can share it.
    pub(crate) is_shared: bool,
    /// It does without sorted columns.
    pub(crate) takes_chunks: bool,
}

pub(crate) const fn exact(algorithm: &'static str, options: &'static [&'static str]) -> Method {
    Method {
        algorithm,
        options,
        is_rounded: false,
        streams: true,
        is_shared: true,
        takes_chunks: true,
    }
}

const fn pushed(options: &'static [&'static str]) -> Method {
    Method {
        is_rounded: true,
        ..exact("pagerank", options)
    }
}

/// The first of each algorithm is its default. Options that are not named alone here are defaults.
pub(crate) const METHODS: &[&[Method]] = &[
    &[
        exact("wcc", &[]),
        exact("wcc", &["--method", "union-find"]),
        exact("wcc", &["--method", "labels"]),
        Method {
            streams: false,
            takes_chunks: false,
            ..exact("wcc", &["--method", "afforest"])
        },
    ],
    &[exact("scc", &[])],
    &[exact("mis", &["--priority", "id"])],
    &[exact("mis", &[])],
    &[Method {
        takes_chunks: false,
        ..exact("cdlp", &[])
    }],
    &[exact("bfs", &[])],
    &[exact("bfs", &["--parents"])],
    &[
        exact("sssp", &[]),
        exact("sssp", &["--method", "bellman-ford"]),
        exact("sssp", &["--delta", "3"]),
    ],
    &[
        exact("pagerank", &[]),
        exact("pagerank", &["--method", "pregel-pull"]),
        pushed(&["--method", "pregel-push"]),
        Method {
            is_shared: false,
            ..pushed(&["--method", "pregel-push", "--combiner", "hybrid"])
        },
    ],
];

/// The kinds of passes, and where data lies.
///
/// `FOLDER` stands for one on a disk, `LEAST` for the memory that a run with too little asks for.
pub(crate) const WAYS: &[&[&str]] = &[
    &[],
    &["--direction", "scatter"],
    &["--direction", "gather"],
    &["--sparse", "always", "--threads", "1"],
    &["--sparse", "never", "--threads", "3"],
    &["--place", "edges=dram", "--direction", "scatter"],
    &["--place", "edges=dram", "--direction", "gather"],
    &["--place", "edges=stream", "--direction", "scatter"],
    &["--place", "edges=stream", "--direction", "gather"],
    &["--place", "slow", "--slow-tier", "numa:0"],
    &["--place", "slow", "--slow-tier", "file:FOLDER"],
    &["--place", "rw-split", "--slow-tier", "model"],
    &["--place", "cache"],
    &["--ranks", "2"],
    &["--ranks", "2", "--place", "edges=dram"],
    &["--ranks", "3", "--direction", "gather"],
    &["--ranks", "4", "--sparse", "always"],
    &["--ranks", "8", "--sparse", "never", "--filter-ratio", "inf"],
    LEAST,
];

/// The end of a way in the memory that a run with too little asks for.
const LEAST: &[&str] = &["--memory", "LEAST"];

/// Whether a method can go this way.
pub(crate) fn goes(method: &Method, way: &[&str]) -> bool {
    let is_tight = way.contains(&"edges=stream") || way.contains(&"LEAST");
    (method.streams || !is_tight) && (method.is_shared || !way.contains(&"--ranks"))
}

/// All of `methods` in every way that they can go; the first is the usual method in the usual way.
pub(crate) fn all_ways(methods: &[Method]) -> Vec<(&Method, &'static [&'static str])> {
    let ways = |method| WAYS.iter().map(move |way| (method, *way));
    let all = methods.iter().flat_map(ways);
    all.filter(|(method, way)| goes(method, way)).collect()
}

/// The bytes that some methods and ways must find, or that the first finds.
///
/// They are compared where they do not depend on the order of arrival.
pub(crate) fn find_the_same(
    place: &Workplace,
    case: &str,
    ways: &[(&Method, &[&str])],
    asked: &[&str],
    mut wanted: Option<Vec<u8>>,
) {
    let folder = place.folder().join("memory");
    std::fs::create_dir_all(&folder).expect("a folder");
    for (method, way) in ways {
        let mut options = [asked, method.options].concat();
        let least = match way.strip_suffix(LEAST) {
            Some(way) => place.least(method.algorithm, &[&options[..], way].concat()),
            None => String::new(),
        };
        let filled = |option: &&str| {
            let option = option.replace("FOLDER", &folder.display().to_string());
            option.replace("LEAST", &least)
        };
        let filled: Vec<String> = way.iter().map(filled).collect();
        options.extend(filled.iter().map(String::as_str));
        let what = format!("{case}: {} {options:?}", method.algorithm);
        let found = match way.ends_with(SIMULATED) {
            true => simulated(&place.graph(), method.algorithm, &options),
            false => std::fs::read(place.run(method.algorithm, &options)).expect("a result"),
        };
        let wanted = wanted.get_or_insert_with(|| found.clone());
        assert_agree(&what, method.is_rounded, &found, wanted);
    }
}

/// Panics unless two results have the same bytes, or values within 1e-9 if sums are rounded.
pub(crate) fn assert_agree(what: &str, is_rounded: bool, found: &[u8], wanted: &[u8]) {
    if is_rounded {
        let numbers = |bytes: &[u8]| -> Vec<f64> {
            let text = String::from_utf8_lossy(bytes);
            let rows = text.lines().skip(1).filter_map(|row| row.split_once(','));
            rows.map(|row| row.1.parse().expect("a number")).collect()
        };
        assert_close(what, &numbers(found), &numbers(wanted), 1e-9);
    } else {
        assert!(found == wanted, "{what}");
    }
}
