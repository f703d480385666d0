//! How the registry names it, and what it asks of its options.

use graphmill_engine::Engine;
use graphmill_graph::StoredGraph;

use super::BpOptions;
use super::check::{bytes, check_beliefs};
use crate::entry::Entry;
use crate::option::{OptionKind, OptionSpec};
use crate::options::{AlgorithmError, AlgorithmOptions};
use crate::output::{Output, OutputValues};
use crate::recorded::{RecordedResult, ResultChecker, ResultType};

const PRIORS: OptionSpec = OptionSpec {
    name: "priors",
    value_name: "FILE",
    kind: OptionKind::VertexProbabilities,
    required: false,
    default: None,
    help: "The probability of state 1 without its neighbours: a file of values from 0 to 1 (CSV or Parquet with the columns vertex and a value); a vertex without a row has 0.5",
};

const AFFINITY: OptionSpec = OptionSpec::value(
    ["affinity", "A"],
    None,
    "How much neighbours are alike, between 0 and 1: the potential A,1-A,1-A,A; above 0.5 they tend to the same state (give this or --potential)",
);

const POTENTIAL: &str = "potential";

/// Its entry.
pub(crate) const ENTRY: Entry = Entry {
    name: "bp",
    aliases: &["belief-propagation"],
    summary: "Loopy belief propagation (sum-product) on two states: the probability of state 1 of each vertex, from priors and neighbours",
    value: "belief",
    weighted: true,
    edge_vertices: true,
    options: &[
        PRIORS,
        AFFINITY,
        OptionSpec::value(
            [POTENTIAL, "a,b,c,d"],
            None,
            "The potential of an edge, all above 0: a and b for source in state 0 and destination in state 0 and 1, c and d for source in state 1; weights of edges are its exponents",
        ),
        OptionSpec::value(
            ["iterations", "N"],
            Some("100"),
            "Iterations, or how many at the most with --tolerance",
        ),
        OptionSpec::value(
            ["tolerance", "X"],
            None,
            "Stop when all messages together, as probabilities, change by less than this in an iteration",
        ),
    ],
    check_options: |settings| options(settings).map(drop),
    check_direction: |settings, is_directed, _| check_direction(settings, is_directed).map(drop),
    passes_max: |settings| {
        let options = options(settings).ok();
        options.map(|options| 4 * u64::from(options.iterations))
    },
    ..Entry::new(run, |_, _| super::sizes(), checker)
};

fn options(settings: &AlgorithmOptions) -> Result<BpOptions, AlgorithmError> {
    let given = |name: &str| settings.values.get(name);
    let potential = match (given(AFFINITY.name), given(POTENTIAL)) {
        (Some(_), Some(value)) => {
            let wanted = "either --affinity or --potential";
            return Err(AlgorithmError::value(POTENTIAL, value, wanted));
        }
        (None, Some(text)) => {
            let numbers = text.split(',').map(|number| number.trim().parse().ok());
            let numbers: Option<Vec<f64>> = numbers.collect();
            let is_potential = |number: &f64| *number > 0.0 && number.is_finite();
            match numbers.as_deref() {
                Some(&[a, b, c, d]) if [a, b, c, d].iter().all(is_potential) => [[a, b], [c, d]],
                _ => {
                    let wanted = "four finite numbers above 0, with commas between";
                    return Err(AlgorithmError::value(POTENTIAL, text, wanted));
                }
            }
        }
        (Some(_), None) => {
            let wanted = "a number above 0 and below 1";
            let is_share = |share: &f64| *share > 0.0 && *share < 1.0;
            let alike: f64 = settings.number(AFFINITY.name, "", wanted, is_share)?;
            [[alike, 1.0 - alike], [1.0 - alike, alike]]
        }
        (None, None) => {
            return Err(AlgorithmError::Missing {
                name: AFFINITY.name,
                help: AFFINITY.help,
            });
        }
    };
    Ok(BpOptions {
        potential,
        iterations: settings.number("iterations", "100", "a whole number", |_: &u32| true)?,
        tolerance: settings.positive("tolerance", "a finite number above 0")?,
    })
}

/// The options, if they make sense on a graph whose edges have a direction, or have none.
fn check_direction(
    settings: &AlgorithmOptions,
    is_directed: bool,
) -> Result<BpOptions, AlgorithmError> {
    let options = options(settings)?;
    let [[_, b], [c, _]] = options.potential;
    if b != c && !is_directed {
        let wanted = "the same number for b and c; edges of an undirected graph have no source";
        let given = settings.value(POTENTIAL, "");
        return Err(AlgorithmError::value(POTENTIAL, given, wanted));
    }
    Ok(options)
}

/// The options, if they make sense on this graph.
fn options_on(
    graph: &StoredGraph,
    settings: &AlgorithmOptions,
) -> Result<BpOptions, AlgorithmError> {
    let edges = graph.meta().edge_vertices;
    check_direction(settings, edges.is_none_or(|edges| edges.directed))
}

fn run(engine: &mut Engine, settings: &AlgorithmOptions) -> Result<Output, AlgorithmError> {
    let options = options_on(engine.graph(), settings)?;
    let priors = settings.vectors.get(PRIORS.name).copied();
    let beliefs = super::run(engine, priors, &options)?;
    Ok(Output::new("belief", OutputValues::F64(beliefs), false))
}

fn checker(
    graph: &StoredGraph,
    settings: &AlgorithmOptions,
) -> Result<Box<dyn ResultChecker>, AlgorithmError> {
    let options = options_on(graph, settings)?;
    let priors = settings.lists.get(PRIORS.name).cloned();
    let check = move |vertices, arcs: &[(u64, u64, f64)], found: &Vec<f64>| {
        let prior = |v: u64| {
            let prior = priors.as_ref().and_then(|priors| priors.get(v as usize));
            prior.copied().unwrap_or(0.5)
        };
        check_beliefs(vertices, arcs, prior, &options, found)
    };
    Ok(RecordedResult::boxed(
        graph,
        ResultType::Doubles,
        bytes,
        check,
    ))
}
