//! How the registry names it, and what it asks of its options.

use std::sync::Arc;

use graphmill_engine::{Engine, PregelMode, ProgramFootprint};
use graphmill_graph::{GraphDims, StoredGraph};

use super::check::{Ending, bytes, check_run};
use super::options::{Dangling, Options, PageRankMethod};
use super::rounding::Rounding;
use super::vectors::{Shares, Vectors};
use super::walk::Equation;
use crate::check::Weigh;
use crate::entry::Entry;
use crate::option::{OptionKind, OptionSpec};
use crate::options::{AlgorithmError, AlgorithmOptions, PRECISION};
use crate::output::{Output, OutputValues};
use crate::recorded::{FromArc, RecordedResult, ResultChecker, ResultType};

/// An option that is a vector of shares.
const fn vector(
    name: &'static str,
    value_name: &'static str,
    default: Option<&'static str>,
    help: &'static str,
) -> OptionSpec {
    OptionSpec {
        kind: OptionKind::VertexValues,
        ..OptionSpec::value([name, value_name], default, help)
    }
}

const PERSONALIZATION: OptionSpec = vector(
    "personalization",
    "FILE|ones",
    None,
    "Personalised: a jump leads to a vertex in proportion to its value in a file (CSV or Parquet with the columns vertex and a value; a vertex without a row has 0)",
);
const DANGLING_VECTOR: OptionSpec = vector(
    "dangling-vector",
    "FILE|ones",
    None,
    "Where the rank of vertices without outgoing arcs goes, as for --personalization; by default where jumps lead",
);
const START: OptionSpec = vector(
    "start",
    "FILE|ones",
    None,
    "The first ranks, in proportion to the values of a file, or all equal (ones); by default the chances of a jump",
);

/// Its entry.
pub(crate) const ENTRY: Entry = Entry {
    name: "pagerank",
    aliases: &["pr", "page-rank"],
    summary: "How important each vertex is: the share of time that a random walk spends there",
    value: "pagerank",
    options: &[
        OptionSpec::value(
            ["iterations", "N"],
            Some("20"),
            "Iterations, or how many at the most with --tolerance",
        ),
        OptionSpec::value(
            ["damping", "D"],
            Some("0.85"),
            "The chance to follow an arc rather than to jump",
        ),
        OptionSpec::value(
            ["tolerance", "X"],
            None,
            "Stop when all ranks together change by less than this in an iteration",
        ),
        OptionSpec::value(
            ["dangling", "redistribute|drop"],
            Some("redistribute"),
            "What becomes of the rank of vertices without outgoing arcs",
        ),
        OptionSpec {
            name: "sources",
            value_name: "ID,...",
            kind: OptionKind::Vertices,
            required: false,
            default: None,
            help: "Personalised: jumps lead to these vertices only; within an id, put a backslash before a comma or backslash",
        },
        PERSONALIZATION,
        DANGLING_VECTOR,
        START,
        OptionSpec::flag(
            "weighted",
            "Split the score of a vertex over its arcs in proportion to their weights (0 or more), not equally; where they add up to 0 it has no arcs",
        ),
        OptionSpec::value(
            [PRECISION.name, "f64|f32|fixed"],
            Some("f64"),
            "The floating-point type of the result and of all sums; fixed: f64, but sums are exact in units of 2^-63, so that no order changes them",
        ),
        OptionSpec::value(
            ["method", "passes|pregel-pull|pregel-push"],
            Some("passes"),
            "Passes over all edges; or a vertex program whose vertices fetch messages (pull), or put them into mailboxes (push: sums are rounded in order of arrival, so the last digits may differ from run to run)",
        ),
    ],
    check_options: |settings| options(settings).and(precision(settings)).map(drop),
    passes_max: |settings| {
        let options = options(settings).ok();
        // The supersteps of a vertex program are as many passes as its vertices make of them.
        let options = options.filter(|options| options.method == PageRankMethod::Passes);
        // Weights are added up in one more.
        options.map(|options| u64::from(options.iterations) + u64::from(options.weighted))
    },
    ..Entry::new(run, sizes, checker)
};

fn options(settings: &AlgorithmOptions) -> Result<Options, AlgorithmError> {
    let bad = |name, value, wanted| Err(AlgorithmError::value(name, value, wanted));
    let tolerance = settings.positive("tolerance", "a finite number above 0")?;
    let dangling = match settings.value("dangling", "redistribute") {
        "redistribute" => Dangling::Redistribute,
        "drop" => Dangling::Drop,
        other => return bad("dangling", other, "redistribute or drop"),
    };
    let sources = settings.vertices.get("sources").cloned();
    let mut sources = sources.unwrap_or_default();
    sources.sort_unstable();
    sources.dedup();
    let vectors = [PERSONALIZATION, DANGLING_VECTOR].map(|option| {
        let value = settings.values.get(option.name)?;
        (value != "ones").then_some(option.name)
    });
    let is_by_vectors = vectors.iter().any(Option::is_some);
    if is_by_vectors && !sources.is_empty() {
        let wanted = "no --sources with it";
        return bad("personalization or --dangling-vector", "FILE", wanted);
    }
    let method = match settings.value("method", "passes") {
        "passes" => PageRankMethod::Passes,
        other if is_by_vectors || settings.values.contains_key(START.name) => {
            return bad("method", other, "passes with vectors");
        }
        "pregel-pull" => PageRankMethod::Pregel(PregelMode::Pull),
        "pregel-push" => PageRankMethod::Pregel(PregelMode::Push),
        other => return bad("method", other, "passes, pregel-pull or pregel-push"),
    };
    let is_share = |damping: &f64| (0.0..=1.0).contains(damping);
    Ok(Options {
        method,
        damping: settings.number("damping", "0.85", "a number from 0 to 1", is_share)?,
        iterations: settings.number("iterations", "20", "a whole number", |_: &u32| true)?,
        tolerance,
        dangling,
        sources,
        vectors: Vectors {
            starts_equal: settings.value(START.name, "") == "ones",
            ..Vectors::default()
        },
        weighted: settings.flag("weighted"),
    })
}

/// The shares of an option; `None` if it is not a file.
fn shares_of(
    engine: &mut Engine,
    settings: &AlgorithmOptions,
    option: &OptionSpec,
) -> Result<Option<Shares>, AlgorithmError> {
    let Some(values) = settings.vectors.get(option.name) else {
        return Ok(None);
    };
    let shares = super::shares(engine, *values)?;
    let value = settings.value(option.name, "");
    let wanted = "a file with values of 0 or more, not all of them 0";
    let shares = shares.ok_or_else(|| AlgorithmError::value(option.name, value, wanted))?;
    Ok(Some(shares))
}

/// What scores and their sums are kept in.
#[derive(Clone, Copy, PartialEq)]
enum Precision {
    F64,
    F32,
    Fixed,
}

fn precision(settings: &AlgorithmOptions) -> Result<Precision, AlgorithmError> {
    match settings.value(PRECISION.name, "f64") {
        "f64" => Ok(Precision::F64),
        "f32" => Ok(Precision::F32),
        "fixed" if !settings.flag("weighted") => Ok(Precision::Fixed),
        other => {
            let wanted = match other {
                "fixed" => "f64 or f32 with --weighted",
                _ => "f64 or f32, or fixed",
            };
            Err(AlgorithmError::value(PRECISION.name, other, wanted))
        }
    }
}

fn run(engine: &mut Engine, settings: &AlgorithmOptions) -> Result<Output, AlgorithmError> {
    let mut options = options(settings)?;
    options.vectors.jumps = shares_of(engine, settings, &PERSONALIZATION)?;
    options.vectors.returns = shares_of(engine, settings, &DANGLING_VECTOR)?;
    options.vectors.start = shares_of(engine, settings, &START)?;
    let values = match precision(settings)? {
        Precision::F32 => OutputValues::F32(super::run(engine, &options)?),
        Precision::F64 => OutputValues::F64(super::run(engine, &options)?),
        Precision::Fixed => OutputValues::F64(super::run_fixed(engine, &options)?),
    };
    Ok(Output::new("pagerank", values, false))
}

fn sizes(_: &GraphDims, settings: &AlgorithmOptions) -> ProgramFootprint {
    let method = options(settings).map_or(PageRankMethod::Passes, |options| options.method);
    let weighted = settings.flag("weighted");
    let is_file = |option: &&OptionSpec| {
        let value = settings.values.get(option.name);
        value.is_some_and(|value| value != "ones")
    };
    let [jumps, returns, start] = [PERSONALIZATION, DANGLING_VECTOR, START];
    let files = [&jumps, &returns, &start]
        .into_iter()
        .filter(is_file)
        .count();
    // Returns without jumps have ones beside them.
    let ones = usize::from(is_file(&&returns) && !is_file(&&jumps));
    let vectors = files + ones;
    match precision(settings) {
        Ok(Precision::F32) => super::sizes::<f32>(method, weighted, false, vectors),
        of => {
            let is_fixed = matches!(of, Ok(Precision::Fixed));
            super::sizes::<f64>(method, weighted, is_fixed, vectors)
        }
    }
}

fn checker(
    graph: &StoredGraph,
    settings: &AlgorithmOptions,
) -> Result<Box<dyn ResultChecker>, AlgorithmError> {
    let options = options(settings)?;
    let (takes, rounding) = match precision(settings)? {
        Precision::F32 => (ResultType::Singles, Rounding::F32),
        Precision::F64 => (ResultType::Doubles, Rounding::F64),
        Precision::Fixed => (ResultType::Doubles, Rounding::FIXED),
    };
    let list = |option: &OptionSpec| settings.lists.get(option.name).cloned();
    let mut lists = [PERSONALIZATION, DANGLING_VECTOR, START].map(|option| list(&option));
    if options.vectors.starts_equal {
        lists[2] = Some(vec![1.0; graph.named_vertices() as usize].into());
    }
    Ok(match options.weighted {
        true => case::<(u64, u64, f64)>(graph, takes, options, lists, rounding),
        false => case::<(u64, u64)>(graph, takes, options, lists, rounding),
    })
}

/// A result before the checker, with arcs of one kind.
fn case<A: Weigh + FromArc + 'static>(
    graph: &StoredGraph,
    takes: ResultType,
    options: Options,
    lists: [Option<Arc<[f64]>>; 3],
    rounding: Rounding,
) -> Box<dyn ResultChecker> {
    let checker = move |vertices, arcs: &[A], ranks: &Vec<f64>| {
        let equation = Equation {
            damping: options.damping,
            dangling: options.dangling,
            sources: &options.sources,
            jumps: lists[0].as_deref(),
            returns: lists[1].as_deref(),
            start: lists[2].as_deref(),
        };
        let ending = Ending {
            iterations: options.iterations,
            tolerance: options.tolerance,
        };
        check_run(vertices, arcs, equation, ending, ranks, rounding)
    };
    RecordedResult::boxed(graph, takes, bytes, checker)
}
