//! Reference graphs in unsorted chunks: the answers, and the bytes of columns, in every way of the stream executor.

use std::path::{Path, PathBuf};

use crate::answers::Answers;
use crate::command::Workplace;
use crate::run::{Case, Known, Size};
use crate::sums::graphs;
use crate::ways::{METHODS, Method, exact, find_the_same};
use crate::{GRAPHS, data, is_soaked, pairs};

/// A form of storage: sizes of chunks and of batches, and whether transposed chunks are stored.
type Form = (&'static str, Size, bool);

const FORMS: [Form; 5] = [
    ("4K", Size::Twentieth, false),
    ("64K", Size::Vertices(1024), true),
    ("1M", Size::Chosen, false),
    ("4M", Size::Twentieth, true),
    ("4K", Size::Vertices(64), false),
];

/// Sizes of chunks and of batches that are stored with each other in a soak.
const CHUNKS: [&str; 4] = ["4K", "64K", "1M", "4M"];
const BATCHES: [Size; 4] = [
    Size::Chosen,
    Size::Twentieth,
    Size::Vertices(1024),
    Size::Vertices(64),
];

const RANKS: [&str; 4] = ["1", "2", "4", "8"];
const STEALS: [&str; 3] = ["0", "1", "inf"];
const UPDATES: [&[&str]; 4] = [
    &["--updates", "memory"],
    &["--updates", "disk"],
    &["--updates", "disk", "--window", "1"],
    &["--memory", "LEAST"],
];

/// Arcs of the largest graph that is run in pairwise ways, and of the largest in the usual way.
///
/// A soak runs the first kind in all ways, and all others in pairwise ways.
const PAIRED_ARCS_MAX: u64 = 110_000;
const USUAL_ARCS_MAX: u64 = 250_000;

/// Arcs of the largest graph whose edges become vertices.
const BELIEFS_ARCS_MAX: u64 = 35_000;

/// Batches at most of a soak: a pass of messages reads a part of each batch for each other one.
const BATCHES_MAX: u64 = 500;

/// Checks a graph in one form, a small one in pairwise ways; or in all forms, a small one in all ways.
pub(crate) fn check(data: &Path, (number, name): (usize, &str), known: &Known) {
    let answers = &known.answers;
    if is_soaked(number) {
        return check_all(name, known);
    }
    if answers.arcs > USUAL_ARCS_MAX {
        return;
    }
    let alike = alike(data, answers.directed, USUAL_ARCS_MAX);
    let turn = alike.iter().position(|graph| *graph == name);
    let form = turn.expect("a graph of the list") % FORMS.len();
    let case = case_in(name, known, FORMS[form]);
    if answers.arcs > PAIRED_ARCS_MAX {
        case.all_by_passes(false);
        return case.parents();
    }
    let in_form = alike_in(data, answers.directed, form);
    let turn = in_form.iter().position(|graph| *graph == name);
    let direction = usize::from(answers.directed);
    let rows = rows(&methods()).into_iter();
    let rows = rows.filter(|row| row[..2] == [direction, form]);
    let rows: Vec<_> = rows
        .enumerate()
        .filter(|(number, _)| Some(number % in_form.len()) == turn)
        .map(|(_, row)| row)
        .collect();
    run_rows(&case, &rows);
}

/// Stores a graph in chunks, where an algorithm finds the last result of `columns`.
///
/// `write` writes the edges and the vertices, and returns the options of the import.
pub(crate) fn find_in_chunks(
    (number, answers): (usize, &Answers),
    columns: &Workplace,
    (algorithm, asked): (&'static str, &[&str]),
    write: impl Fn(&Workplace) -> ((PathBuf, PathBuf), Vec<&'static str>),
) {
    if answers.arcs > PAIRED_ARCS_MAX && !is_soaked(number) {
        return;
    }
    let case = format!("graph {number} in chunks: {algorithm}");
    let place = Workplace::new(case.clone());
    let ((edges, vertices), mut options) = write(&place);
    let (chunks, batches, _) = FORMS[number % FORMS.len()];
    // Edges become vertices of their own.
    let edges_of =
        |options: &[&str]| u64::from(options.contains(&"--edge-vertices")) * answers.arcs;
    let vertices_max = answers.vertices + edges_of(&options);
    let least = vertices_max.div_ceil(BATCHES_MAX).next_power_of_two();
    options.extend(["--layout", "stream", "--chunk-size", chunks]);
    let size = size(batches, answers.vertices).map(|size| size.max(least).to_string());
    if let Some(size) = &size {
        options.extend(["--batch-size", size]);
    }
    place.import(&edges, Some(&vertices), &options);
    let method = Method {
        is_rounded: algorithm == "bp",
        ..exact(algorithm, &[])
    };
    let all: Vec<_> = levels(&method).into_iter().map(way).collect();
    // Another for each graph, or some of all kinds, or all.
    let step = match (is_soaked(number), answers.arcs <= PAIRED_ARCS_MAX) {
        (false, _) => all.len(),
        (true, false) => 7,
        (true, true) => 1,
    };
    let ways = all.iter().skip(5 * number % step).step_by(step);
    let ways: Vec<(&Method, &[&str])> = ways.map(|way| (&method, &way[..])).collect();
    let wanted = std::fs::read(columns.result()).expect("a result");
    find_the_same(&place, &case, &ways, asked, Some(wanted));
}

#[test]
fn beliefs_over_chunks_are_those_over_columns() {
    const OPTIONS: &[&str] = &["--affinity", "0.8", "--iterations", "5"];
    let Some(data) = data() else { return };
    for (number, name, answers, graph) in graphs(&data) {
        if answers.arcs > BELIEFS_ARCS_MAX && !is_soaked(number) {
            continue;
        }
        let place = Workplace::new(format!("{name}: bp"));
        let (edges, vertices) = graph.write(place.folder());
        place.import(&edges, Some(&vertices), &["--edge-vertices"]);
        let row = |(rank, id): (usize, &u64)| format!("{id} {}\n", (rank % 9) as f64 / 8.0);
        let priors = graph.ids.iter().enumerate().step_by(3).map(row);
        let file = place.folder().join("priors.txt");
        std::fs::write(&file, priors.collect::<String>()).expect("room");
        let file = file.to_str().expect("UTF-8");
        let asked = [OPTIONS, &["--priors", file]].concat();
        let result = place.run("bp", &asked);
        let check = [&["--algorithm", "bp"], &asked[..]].concat();
        place.validate(&result, &place.graph(), &check);
        find_in_chunks((number, &answers), &place, ("bp", &asked), |chunks| {
            (graph.write(chunks.folder()), vec!["--edge-vertices"])
        });
    }
}

/// Every form in the usual way, and every way of two forms.
fn check_all(name: &str, known: &Known) {
    let reverse = |chunks: &str| ["64K", "4M"].contains(&chunks);
    for (chunks, batches) in CHUNKS.iter().flat_map(|size| BATCHES.map(|of| (*size, of))) {
        let form = (chunks, batches, reverse(chunks));
        let vertices = known.answers.vertices;
        if size(batches, vertices).is_some_and(|size| vertices.div_ceil(size) > BATCHES_MAX) {
            continue;
        }
        let case = case_in(name, known, form);
        case.all_by_passes(false);
        case.parents();
        case.other_ranks(false);
    }
    let direction = usize::from(known.answers.directed);
    for (number, form) in FORMS.iter().enumerate().step_by(3) {
        let case = case_in(name, known, *form);
        if known.answers.arcs > PAIRED_ARCS_MAX {
            let rows = rows(&methods()).into_iter();
            let rows = rows.filter(|row| row[..2] == [direction, number]);
            run_rows(&case, &rows.collect::<Vec<_>>());
            continue;
        }
        let all = (0..methods().len()).flat_map(|method| {
            let way =
                |[ranks, steal, updates]: [usize; 3]| vec![0, 0, method, ranks, steal, updates];
            let levels = levels(&methods()[method].1);
            levels.into_iter().map(way).collect::<Vec<_>>()
        });
        run_rows(&case, &all.collect::<Vec<_>>());
    }
}

/// Names of the graphs with or without directions and of at most `most` arcs, the small ones first.
fn alike(data: &Path, directed: bool, most: u64) -> Vec<&'static str> {
    let arcs = |name: &&'static str| {
        let (arcs, is_directed) = Answers::kind(data, name);
        (directed == is_directed && arcs <= most).then_some((arcs, *name))
    };
    let mut graphs: Vec<_> = GRAPHS.iter().filter_map(arcs).collect();
    graphs.sort_unstable();
    graphs.into_iter().map(|graph| graph.1).collect()
}

/// Names of the graphs in pairwise ways that are stored in this form.
fn alike_in(data: &Path, directed: bool, form: usize) -> Vec<&'static str> {
    let graphs = alike(data, directed, PAIRED_ARCS_MAX);
    let of_form = graphs.into_iter().skip(form).step_by(FORMS.len());
    of_form.collect()
}

/// All methods that do over chunks, whose sums are rounded, with the numbers of their groups.
fn methods() -> Vec<(usize, Method)> {
    let over_chunks = |method: &Method| Method {
        is_rounded: method.algorithm == "pagerank",
        ..*method
    };
    let of_group = |(group, methods): (usize, &'static &'static [Method])| {
        let methods = methods.iter().filter(|method| method.takes_chunks);
        methods.map(move |method| (group, over_chunks(method)))
    };
    METHODS.iter().enumerate().flat_map(of_group).collect()
}

/// A graph stored in this form.
fn case_in<'a>(name: &str, known: &'a Known, form: Form) -> Case<'a> {
    let (chunks, batches, reverse) = form;
    let (size, directed) = (
        size(batches, known.answers.vertices),
        known.answers.directed,
    );
    let case = known.case(format!("{name}, chunks of {chunks}, batch size {size:?}"));
    let mut options = vec!["--layout", "stream", "--chunk-size", chunks];
    options.extend(["--weights", "f64"]);
    match directed {
        false => options.push("--undirected"),
        true if reverse => options.push("--reverse"),
        true => {}
    }
    let size = size.map(|size| size.to_string());
    if let Some(size) = &size {
        options.extend(["--batch-size", size]);
    }
    let (edges, vertices) = known.graph.write_once(!directed, case.place.folder());
    case.place.import(&edges, Some(&vertices), &options);
    case
}

/// The size of batches, which is a power of two.
fn size(batches: Size, vertices: u64) -> Option<u64> {
    let size = batches.of(vertices);
    size.map(u64::next_power_of_two)
}

/// Pairwise rows: direction, form, method, ranks, steal, updates.
fn rows(methods: &[(usize, Method)]) -> Vec<Vec<usize>> {
    let counts = [
        2,
        FORMS.len(),
        methods.len(),
        RANKS.len(),
        STEALS.len(),
        UPDATES.len(),
    ];
    pairs::rows(&counts, |a, b| match (a, b) {
        ((2, method), (3, ranks)) => methods[method].1.is_shared || ranks == 0,
        _ => true,
    })
}

/// Every way that a method can take, as its ranks, steal and updates.
fn levels(method: &Method) -> Vec<[usize; 3]> {
    let ranks = if method.is_shared { RANKS.len() } else { 1 };
    let all = (0..ranks).flat_map(|ranks| {
        (0..STEALS.len())
            .flat_map(move |steal| (0..UPDATES.len()).map(move |updates| [ranks, steal, updates]))
    });
    all.collect()
}

fn way([ranks, steal, updates]: [usize; 3]) -> Vec<&'static str> {
    let way = ["--ranks", RANKS[ranks], "--steal", STEALS[steal]];
    [&way[..], UPDATES[updates]].concat()
}

/// Runs the methods and ways of rows: they find what columns do.
fn run_rows(case: &Case<'_>, rows: &[Vec<usize>]) {
    let methods = methods();
    for (group, of_group) in METHODS.iter().enumerate() {
        let of_these = rows.iter().filter(|row| methods[row[2]].0 == group);
        let ways: Vec<_> = of_these
            .map(|row| (&methods[row[2]].1, way([row[3], row[4], row[5]])))
            .collect();
        let ways: Vec<(&Method, &[&str])> = ways.iter().map(|run| (run.0, &run.1[..])).collect();
        if !ways.is_empty() {
            let found = case.known(&of_group[0]);
            case.find_the_same(of_group, &ways, Some(found));
        }
    }
}
