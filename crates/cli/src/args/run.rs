//! Arguments of `graphmill run`: an algorithm with its options, then the common options.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{ArgMatches, Args, FromArgMatches};
use graphmill::{Entry, OptionSpec};

use super::algorithm::{given_options, option_arg};
use super::checkpoint::RunCheckpointArgs;
use super::machine::MachineArgs;
use super::reading::ReadArgs;
use super::tuning::{ExperimentArgs, TierArgs};

const RUN_EXAMPLES: &str = "\
Examples:
  graphmill run pagerank --help                        the options of one algorithm
  graphmill run pagerank edges.txt.gz -o ranks.parquet --top 10
  graphmill run bfs graph --source 42 -o depths.csv --memory 512M";

/// One subcommand an algorithm, made from the registry: its own options, then the common ones.
#[derive(Debug)]
pub(crate) struct RunArgs {
    pub(crate) algorithm: String,
    /// The algorithm's options that were given, by name.
    pub(crate) options: BTreeMap<String, String>,
    pub(crate) common: CommonRunArgs,
}

/// The subcommand of an algorithm: its own options, then the common ones.
pub(crate) fn algorithm_command(algorithm: &'static Entry) -> clap::Command {
    let options = algorithm.options.iter().map(|option| {
        option_arg(option, option.help)
            .help_heading("This algorithm")
            .required(option.required)
    });
    let own = clap::Command::new(algorithm.name)
        .visible_aliases(algorithm.aliases)
        .args(options);
    let combines = |option: &OptionSpec| option.value_name.contains("pregel-push");
    let no_combiner = !algorithm.options.iter().any(combines);
    // Hidden, not left out, so that an error can name the option it requires.
    CommonRunArgs::augment_args(own)
        .about(algorithm.summary)
        .mut_arg("combiner", |combiner| combiner.hide(no_combiner))
}

impl RunArgs {
    /// The arguments of an algorithm, from the matches of its subcommand.
    pub(crate) fn of(algorithm: &Entry, matches: &ArgMatches) -> Result<RunArgs, clap::Error> {
        Ok(RunArgs {
            algorithm: algorithm.name.to_string(),
            options: given_options(algorithm.options, matches),
            common: CommonRunArgs::from_arg_matches(matches)?,
        })
    }
}

impl Args for RunArgs {
    fn augment_args(command: clap::Command) -> clap::Command {
        let algorithms = graphmill::algorithms().iter().map(algorithm_command);
        command
            .subcommand_required(true)
            .arg_required_else_help(true)
            .disable_help_subcommand(true)
            .subcommand_value_name("ALGORITHM")
            .subcommand_help_heading("Algorithms")
            .subcommands(algorithms)
            .after_help(RUN_EXAMPLES)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for RunArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<RunArgs, clap::Error> {
        let missing = || clap::Error::new(clap::error::ErrorKind::MissingSubcommand);
        let (name, matches) = matches.subcommand().ok_or_else(missing)?;
        let algorithm = graphmill::algorithms()
            .iter()
            .find(|algorithm| algorithm.name == name)
            .ok_or_else(missing)?;
        RunArgs::of(algorithm, matches)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = RunArgs::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Options of every algorithm.
#[derive(Debug, Args)]
pub(crate) struct CommonRunArgs {
    /// A stored graph, or a file of edges; - is standard input
    ///
    /// A file of edges is first imported into a cache beside it. Standard input is written to a temporary file, once.
    #[arg(value_name = "GRAPH|INPUT")]
    pub(crate) input: PathBuf,
    /// Result file: .parquet, .csv, .tsv, .csv.gz or .tsv.gz; - is CSV on stdout
    ///
    /// Its columns are `vertex` and the value. Unreached is null in Parquet; in text it is inf, or an empty field where values are
    /// vertices. Distances too large for --precision count as unreached. With a slash at the end (ranks.parquet/) it is a
    /// directory: each rank writes a part of it with its own vertices.
    #[arg(short, long, value_name = "FILE[/]")]
    pub(crate) output: Option<PathBuf>,
    /// Print the N vertices with the highest values, or the N largest components
    ///
    /// The option does not apply to vertices that name no groups, such as parents.
    #[arg(long, value_name = "N")]
    pub(crate) top: Option<usize>,
    /// Print the summary as one JSON object, with the rows of --top
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the metrics of the run and of each pass, as JSON
    #[arg(long, value_name = "FILE.json")]
    pub(crate) metrics: Option<PathBuf>,
    /// Work as N ranks of one process, as on a cluster
    ///
    /// Each rank has its share of memory and threads.
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        hide_default_value = true,
        value_parser = clap::value_parser!(u16).range(1..)
    )]
    pub(crate) ranks: u16,
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
    #[command(flatten)]
    pub(crate) reading: ReadArgs,
    #[command(flatten)]
    pub(crate) tiers: TierArgs,
    #[command(flatten)]
    pub(crate) recovery: RunCheckpointArgs,
    #[command(flatten)]
    pub(crate) experiments: ExperimentArgs,
}
