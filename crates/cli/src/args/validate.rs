//! Arguments of `graphmill validate`: a reference and a rule, or a graph, an algorithm and the options of its run.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{ArgMatches, Args, FromArgMatches, ValueEnum};
use graphmill::OptionSpec;

use super::algorithm::{given_options, option_arg};
use super::machine::MachineArgs;
use super::reading::ReadArgs;

const USAGE: &str = "\
graphmill validate [OPTIONS] --rule <exact|epsilon|equivalence> <RESULT> <REFERENCE>
       graphmill validate [OPTIONS] --algorithm <ALGORITHM> <RESULT> <GRAPH>";

const NOTES: &str = "\
RESULT and REFERENCE name each vertex once, in any order: Parquet or CSV as `run` writes them, or text with an id and a value \
separated by white space, as LDBC Graphalytics has it, plain or gzip; or directories of such files. Files of edges \
(source,destination,weight) are compared as sets. Null, an empty field of CSV, inf, infinity and \
9223372036854775807 all mean unreached; the last three also stand for a vertex of that name.

With --algorithm there is no reference: a checker computes the answer from GRAPH by another method. Give the graph and the options of \
the run. The checker uses one thread, and in memory 16 to 48 bytes an arc (116 for bp) and 17 to 81 bytes a vertex. Depths, parents, components, \
distances, sets, edges and counts must be equal. Ranks, products, beliefs and sums of weights may differ by rounding errors.

Examples:
  graphmill validate depths.csv reference.txt --rule exact
  graphmill validate depths.csv graph --algorithm bfs --source 42
  graphmill validate ranks.parquet edges.txt.gz --algorithm pagerank --iterations 50";

/// Arguments of a validation; the options of the run come from the registry.
#[derive(Debug)]
pub(crate) struct ValidateArgs {
    pub(crate) common: CommonValidateArgs,
    /// The algorithm's options that were given, by name.
    pub(crate) options: BTreeMap<String, String>,
}

#[derive(Debug, Args)]
#[command(after_long_help = NOTES, override_usage = USAGE)]
pub(crate) struct CommonValidateArgs {
    /// The result to check
    pub(crate) result: PathBuf,
    /// With --rule: the reference. With --algorithm: the graph of the run
    ///
    /// A graph is a stored graph or a file of edges.
    #[arg(value_name = "REFERENCE|GRAPH")]
    pub(crate) against: PathBuf,
    #[command(flatten)]
    pub(crate) how: JudgeArgs,
    /// Relative difference that --rule epsilon allows [default: 0.0001]
    #[arg(long, value_name = "E", conflicts_with = "algorithm")]
    pub(crate) epsilon: Option<f64>,
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
    #[command(flatten)]
    pub(crate) reading: ReadArgs,
}

/// Either of the two.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct JudgeArgs {
    /// Rule to compare with REFERENCE by
    ///
    /// exact: same values. epsilon: numbers within a share of the reference. equivalence: same groups under any names.
    #[arg(
        long,
        value_name = "exact|epsilon|equivalence",
        value_enum,
        conflicts_with_all = ["ReadArgs", "EdgeArgs"]
    )]
    pub(crate) rule: Option<RuleName>,
    /// Check as a result of this algorithm on GRAPH
    #[arg(long, value_name = "ALGORITHM", value_parser = algorithms())]
    pub(crate) algorithm: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum RuleName {
    Exact,
    Epsilon,
    Equivalence,
}

fn algorithms() -> PossibleValuesParser {
    let values = graphmill::algorithms().iter();
    PossibleValuesParser::new(
        values.map(|entry| clap::builder::PossibleValue::new(entry.name).aliases(entry.aliases)),
    )
}

/// An option of one or more algorithms, as each of them has it.
type Shared = Vec<(&'static str, &'static OptionSpec)>;

/// Every option that some algorithm has, once.
fn options() -> Vec<Shared> {
    let mut options: Vec<Shared> = Vec::new();
    for entry in graphmill::algorithms() {
        for option in entry.options {
            match options.iter_mut().find(|of| of[0].1.name == option.name) {
                Some(shared) => shared.push((entry.name, option)),
                None => options.push(vec![(entry.name, option)]),
            }
        }
    }
    options
}

/// Makes the argument of an option, with the first algorithm's help.
///
/// If algorithms take different values, the help lists the values of each.
fn shared_arg(shared: &Shared) -> clap::Arg {
    let of_each = |say: fn(&(&str, &OptionSpec)) -> String| {
        let all: Vec<String> = shared.iter().map(say).collect();
        all.join(", ")
    };
    let option = shared[0].1;
    let same = |(_, other): &(&str, &OptionSpec)| other.value_name == option.value_name;
    match shared.iter().all(same) {
        true => {
            let owners = of_each(|(algorithm, _)| algorithm.to_string());
            option_arg(option, &format!("{} ({owners})", option.help))
        }
        false => {
            let values = of_each(|(algorithm, of)| format!("{algorithm} {}", of.value_name));
            option_arg(option, option.help)
                .value_name("NAME")
                .help(format!("As in the run: {values}"))
        }
    }
}

impl Args for ValidateArgs {
    fn augment_args(command: clap::Command) -> clap::Command {
        let args = options().into_iter().map(|shared| {
            shared_arg(&shared)
                .help_heading("Options of the run, with --algorithm")
                .requires("algorithm")
                .conflicts_with("rule")
        });
        CommonValidateArgs::augment_args(command).args(args.collect::<Vec<_>>())
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ValidateArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<ValidateArgs, clap::Error> {
        let common = CommonValidateArgs::from_arg_matches(matches)?;
        if common.epsilon.is_some() && !matches!(common.how.rule, Some(RuleName::Epsilon)) {
            return Err(clap::Error::raw(
                clap::error::ErrorKind::ArgumentConflict,
                "the argument '--epsilon <E>' cannot be used with another rule than epsilon\n",
            ));
        }
        Ok(ValidateArgs {
            common,
            options: given_options(options().iter().map(|shared| shared[0].1), matches),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = ValidateArgs::from_arg_matches(matches)?;
        Ok(())
    }
}
