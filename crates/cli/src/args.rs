//! The command line: what every subcommand takes, and its help.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::parser::ValueSource;
use clap::{
    ArgAction, ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum,
};
use graphmill::{Every, OptionKind, OptionSpec};

use crate::size;

mod generate;
mod help;
mod plan;
mod validate;

pub(crate) use generate::{Generate, GenerateOutput, GenerateRule};
pub(crate) use help::{command, parse};
pub(crate) use plan::{Disks, ExpectedGraph, Like, Plan, PlanCluster, PlanInput};
pub(crate) use validate::{Rule, Validate};

const EXAMPLES: &str = "\
Examples:
  graphmill run pagerank edges.txt.gz -o ranks.parquet --top 10
  graphmill import edges.txt.gz -o graph --undirected --memory 2G
  graphmill run bfs graph --source 42 -o depths.csv
  graphmill generate kronecker 18 16 --undirected -o graph
  graphmill run sssp --help          the options of one algorithm

Sizes are numbers, such as 512M or 1.5G, with K, M, G or T (powers of 1024, as in `sort -S`) or % of the machine's memory.
Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.";

const RUN_EXAMPLES: &str = "\
Examples:
  graphmill run pagerank --help                        the options of one algorithm
  graphmill run pagerank edges.txt.gz -o ranks.parquet --top 10
  graphmill run bfs graph --source 42 -o depths.csv --memory 512M";

/// Runs graph algorithms on graphs of any size: in memory when they fit, from disk when they don't.
#[derive(Debug, Parser)]
#[command(name = "graphmill", version, after_help = EXAMPLES, max_term_width = 110, hide_possible_values = true, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a stored graph from files of edges
    Import(Import),
    /// Run an algorithm on a stored graph, or on a file of edges
    Run(Run),
    /// Make a graph by rule: Kronecker, uniform, grid, consecutive or scattered
    Generate(Generate),
    /// Say what a stored graph holds
    Info(Info),
    /// Check every byte of a stored graph
    Verify(Verify),
    /// Compare a result with a reference, or judge it by its graph
    Validate(Validate),
    /// Say what an import and a run would take: space, memory, traffic, time
    Plan(Plan),
    /// List the algorithms and their options
    Algorithms(Algorithms),
    /// List or remove the graphs that runs keep beside files of edges
    Cache(Cache),
    /// Make this command run under an MPI: `mpirun -n 8 graphmill run ...`
    Mpi(Mpi),
    /// Print the completions of a shell
    Completions(Completions),
    /// Print the manual page, or write all pages
    Man(Man),
}

/// What a command may take of the machine.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Machine")]
pub(crate) struct Machine {
    /// Memory to stay within: 512M, 2G, 25% [default: half of what there is]
    ///
    /// What there is: the machine's memory, or the cgroup's.
    #[arg(long, value_name = "SIZE", value_parser = size::budget)]
    pub(crate) memory: Option<u64>,
    /// Threads that work, at most 4096 [default: one a processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) threads: Option<u16>,
    /// Folder for temporary files [default: beside the output]
    ///
    /// It is made where it is missing.
    #[arg(long, value_name = "DIR")]
    pub(crate) tmp: Option<PathBuf>,
    /// Reach the disk by io_uring, by threads that read and write, or by what the kernel allows
    #[arg(long, value_name = "auto|uring|threads", value_enum, default_value_t)]
    pub(crate) io: Io,
    /// No progress, notices and summary on stderr, only warnings and errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum Io {
    #[default]
    Auto,
    Uring,
    Threads,
}

/// How files of edges are read.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Reading edges")]
pub(crate) struct Reading {
    /// What the files are; auto goes by their names
    ///
    /// text (SNAP, .el, .wel), csv, ldbc (.v, .e), dimacs (a u v w), raw-u32 or raw-u64 (little-endian pairs), parquet. Of a folder with .e
    /// files, only those and .v files are read.
    #[arg(long, value_name = "auto|text|csv|...", value_enum, default_value_t)]
    pub(crate) format: Format,
    /// What vertex ids are; auto looks
    ///
    /// It looks at the first 64 MiB.
    #[arg(long, value_name = "auto|int|string", value_enum, default_value_t)]
    pub(crate) ids: Ids,
    /// Keep weights, in this precision
    ///
    /// They stand in --weight-column, else in the column named weight, else in the one after the ids.
    #[arg(long, value_name = "none|f32|f64", value_enum, default_value_t)]
    pub(crate) weights: Weights,
    /// Column of the sources, by name or number from 1
    ///
    /// By default a column with a known name such as source, src or from, else the first.
    #[arg(long, value_name = "COLUMN")]
    pub(crate) source_column: Option<String>,
    /// Column of the destinations
    ///
    /// By default a column with a known name such as target, dst or to, else the second.
    #[arg(long, value_name = "COLUMN")]
    pub(crate) target_column: Option<String>,
    /// Column of the weights
    #[arg(long, value_name = "COLUMN")]
    pub(crate) weight_column: Option<String>,
    /// Whether the first line names columns
    #[arg(long, value_name = "auto|yes|no", value_enum, default_value_t)]
    pub(crate) header: Header,
    /// What separates columns: one character, tab or space
    ///
    /// By default what the first lines show.
    #[arg(long, value_name = "CHAR")]
    pub(crate) delimiter: Option<graphmill::Delimiter>,
    /// What quotes mean
    ///
    /// They enclose columns ('"'), or are text (none); with auto they enclose in CSV and TSV.
    #[arg(long, value_name = "auto|none|'\"'", default_value = "auto", value_parser = quote)]
    pub(crate) quote: graphmill::Quote,
    /// Which lines are comments
    ///
    /// Those that start so, wherever they stand; with auto those before the first edge that start with #, % or //.
    #[arg(long, value_name = "auto|none|PREFIX", default_value = "auto", value_parser = comments)]
    pub(crate) comments: graphmill::Comments,
    /// File that names vertices, for those without edges
    ///
    /// They stand in the column named id or the like, else in the first.
    #[arg(long, value_name = "FILE")]
    pub(crate) vertices: Option<PathBuf>,
    /// At a line that is not an edge stop, or skip and count it
    #[arg(long, value_name = "stop|skip", value_enum, default_value_t)]
    pub(crate) on_error: OnError,
    #[command(flatten)]
    pub(crate) edges: Edges,
}

/// What edges become, read or generated.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Edges")]
pub(crate) struct Edges {
    /// Each edge goes both ways
    #[arg(long)]
    pub(crate) undirected: bool,
    /// Which of edges that come more than once are kept
    ///
    /// All; the first of the input; or, with --weights, one with the sum, the least or the greatest of the weights.
    #[arg(long, value_name = "keep|first|...", value_enum, default_value_t)]
    pub(crate) duplicates: Duplicates,
    /// What becomes of edges from a vertex to itself
    #[arg(long, value_name = "keep|drop", value_enum, default_value_t)]
    pub(crate) self_loops: SelfLoops,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum Format {
    #[default]
    Auto,
    Text,
    Csv,
    Ldbc,
    Dimacs,
    RawU32,
    RawU64,
    Parquet,
}

fn quote(text: &str) -> Result<graphmill::Quote, String> {
    use graphmill::Quote;
    match text {
        "auto" => Ok(Quote::Auto),
        "none" => Ok(Quote::None),
        "\"" => Ok(Quote::Encloses),
        _ => Err("auto, none or '\"'".into()),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "what clap asks for")]
fn comments(text: &str) -> Result<graphmill::Comments, String> {
    use graphmill::Comments;
    Ok(match text {
        "auto" => Comments::Auto,
        "none" | "" => Comments::None,
        prefix => Comments::Prefix(prefix.into()),
    })
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum Header {
    #[default]
    Auto,
    Yes,
    No,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum Ids {
    #[default]
    Auto,
    Int,
    String,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum Weights {
    #[default]
    None,
    F32,
    F64,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum Duplicates {
    #[default]
    Keep,
    First,
    Sum,
    Min,
    Max,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum SelfLoops {
    #[default]
    Keep,
    Drop,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum OnError {
    #[default]
    Stop,
    Skip,
}

/// How the graph is stored.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Stored graph")]
pub(crate) struct Storing {
    /// Order of vertices in every batch: by id, or most arcs first
    ///
    /// With most arcs first, programs that go along few edges at a time are faster, and answers are the same but for the rounding of
    /// sums, so that the last digits of pagerank may differ. An import takes up to 1.6 times as long.
    #[arg(long, value_name = "id|degree", value_enum, default_value_t)]
    pub(crate) order: Order,
    /// Store the transposed graph too
    ///
    /// Backward passes on directed graphs are faster, and the graph takes twice the space.
    #[arg(long)]
    pub(crate) reverse: bool,
    /// Vertices of a batch, exactly (in order of degree: at most), at most 2147483648, for experiments [default: by a cost
    /// rule]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) batch_size: Option<u64>,
    /// Give a cell a bitmap of its sources when it has at most N vertices of span for each edge, for experiments [default: 32]
    #[arg(long, value_name = "N")]
    pub(crate) csr_ratio: Option<u32>,
}

const IMPORT_EXAMPLE: &str = "\
Example:
  graphmill import edges/ -o graph --undirected --self-loops drop --memory 512M";

const IMPORT_NOTES: &str = "\
Of each file one line says what is taken: its columns, whether it has a header, what its ids are. What cannot be decided from \
the first lines is an error that names the option. CSV and TSV follow RFC 4180; every line has to have the columns of the first \
ones. Ids are integers only where each is written as the number would be: 007 or 1.0 makes all ids text.

Example:
  graphmill import edges/ -o graph --undirected --self-loops drop --memory 512M";

#[derive(Debug, Args)]
#[command(after_help = IMPORT_EXAMPLE, after_long_help = IMPORT_NOTES)]
pub(crate) struct Import {
    /// Files of edges, or folders of them, plain, gzip or zstd; - is standard input
    #[arg(required = true)]
    pub(crate) input: Vec<PathBuf>,
    /// Folder of the stored graph; it must not exist yet
    #[arg(short, long, value_name = "GRAPH")]
    pub(crate) output: PathBuf,
    /// Print what was imported as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) reading: Reading,
    #[command(flatten)]
    pub(crate) storing: Storing,
    /// Work as N ranks of one process, each with its share of memory and threads, as on a cluster
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        hide_default_value = true,
        value_parser = clap::value_parser!(u16).range(1..)
    )]
    pub(crate) ranks: u16,
    /// Write what the import took, as JSON
    #[arg(long, value_name = "FILE.json")]
    pub(crate) metrics: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) keeping: Keeping,
    #[command(flatten)]
    pub(crate) machine: Machine,
}

/// What a killed import goes on with.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Going on after a kill")]
pub(crate) struct Keeping {
    /// Keep what was done when a step, or a part of the graph, ends N seconds after what was kept before: the same command goes on with
    /// it
    #[arg(long, value_name = "Ns", value_parser = seconds, default_value = "10s")]
    pub(crate) checkpoint_every: Duration,
    /// With 0 nothing is kept, and nothing gone on with
    #[arg(long, value_name = "0|1", default_value = "1", hide_default_value = true, value_parser = clap::value_parser!(u8).range(0..=1))]
    pub(crate) checkpoints: u8,
}

/// A number from 0 to infinity.
fn ratio(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(ratio) if ratio >= 0.0 => Ok(ratio),
        _ => Err("must be a number from 0 to inf".to_string()),
    }
}

/// So many seconds.
fn seconds(text: &str) -> Result<Duration, String> {
    match text.strip_suffix('s').map(str::parse) {
        Some(Ok(seconds)) => Ok(Duration::from_secs(seconds)),
        _ => Err(format!("{text:?} is no number of seconds, as 30s")),
    }
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum Order {
    #[default]
    Id,
    Degree,
}

/// One subcommand an algorithm, made from the registry: its own options, then what every algorithm takes.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) algorithm: String,
    /// The algorithm's options that were given, by name.
    pub(crate) options: BTreeMap<String, String>,
    pub(crate) common: RunCommon,
}

impl Args for Run {
    fn augment_args(command: clap::Command) -> clap::Command {
        let algorithms = graphmill::algorithms().iter().map(|algorithm| {
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
            // Hidden, not left out: who gives it is told what it belongs to.
            RunCommon::augment_args(own)
                .about(algorithm.summary)
                .mut_arg("combiner", |combiner| combiner.hide(no_combiner))
        });
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

impl FromArgMatches for Run {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Run, clap::Error> {
        let missing = || clap::Error::new(clap::error::ErrorKind::MissingSubcommand);
        let (name, matches) = matches.subcommand().ok_or_else(missing)?;
        let algorithm = graphmill::algorithms()
            .iter()
            .find(|algorithm| algorithm.name == name)
            .ok_or_else(missing)?;
        let options = given_options(algorithm.options, matches);
        Ok(Run {
            algorithm: name.to_string(),
            options,
            common: RunCommon::from_arg_matches(matches)?,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Run::from_arg_matches(matches)?;
        Ok(())
    }
}

/// An option of an algorithm on the command line.
fn option_arg(option: &'static OptionSpec, help: &str) -> clap::Arg {
    let help = match option.default {
        Some(default) => format!("{help} [default: {default}]"),
        None => help.to_string(),
    };
    let arg = clap::Arg::new(option.name).long(option.name).help(help);
    match option.kind {
        OptionKind::Flag => arg.action(ArgAction::SetTrue),
        // The id of a vertex may begin with a dash.
        OptionKind::Vertex | OptionKind::Vertices => {
            arg.value_name(option.value_name).allow_hyphen_values(true)
        }
        OptionKind::Value => arg
            .value_name(option.value_name)
            .allow_negative_numbers(true),
    }
}

/// Those of the options that were given, by name.
fn given_options<'s>(
    options: impl IntoIterator<Item = &'s OptionSpec>,
    matches: &ArgMatches,
) -> BTreeMap<String, String> {
    let mut given = BTreeMap::new();
    for option in options {
        if matches.value_source(option.name) != Some(ValueSource::CommandLine) {
            continue;
        }
        let value = match option.kind {
            OptionKind::Flag => Some("true".to_string()),
            _ => matches.get_one::<String>(option.name).cloned(),
        };
        given.extend(value.map(|value| (option.name.to_string(), value)));
    }
    given
}

/// What every algorithm takes.
#[derive(Debug, Args)]
pub(crate) struct RunCommon {
    /// A stored graph, or a file of edges; - is standard input
    ///
    /// A file of edges is first imported into a cache beside it. Standard input is written to a temporary file, once.
    #[arg(value_name = "GRAPH|INPUT")]
    pub(crate) input: PathBuf,
    /// Result file: .parquet, .csv, .tsv, .csv.gz or .tsv.gz; - is CSV on standard output
    ///
    /// Its columns are `vertex` and the value. Unreached is null in Parquet; in text it is inf, or an empty field where values are
    /// vertices. Distances too large for --precision are as unreached. With a slash at the end (ranks.parquet/) it is a folder: each
    /// rank writes a part of it with its own vertices.
    #[arg(short, long, value_name = "FILE[/]")]
    pub(crate) output: Option<PathBuf>,
    /// Print the N vertices with the highest values, or the N largest components
    ///
    /// Not where values are vertices that name no groups, such as parents.
    #[arg(long, value_name = "N")]
    pub(crate) top: Option<usize>,
    /// Print the summary as one JSON object, with the rows of --top
    #[arg(long)]
    pub(crate) json: bool,
    /// Write what the run took, superstep by superstep, as JSON
    #[arg(long, value_name = "FILE.json")]
    pub(crate) metrics: Option<PathBuf>,
    /// Work as N ranks of one process, each with its share of memory and threads, as on a cluster
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        hide_default_value = true,
        value_parser = clap::value_parser!(u16).range(1..)
    )]
    pub(crate) ranks: u16,
    #[command(flatten)]
    pub(crate) machine: Machine,
    #[command(flatten)]
    pub(crate) reading: Reading,
    #[command(flatten)]
    pub(crate) tiers: Tiers,
    #[command(flatten)]
    pub(crate) recovery: Recovery,
    #[command(flatten)]
    pub(crate) experiments: Experiments,
}

/// What a killed run goes on with.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Going on after a kill")]
pub(crate) struct Recovery {
    /// Publish versions of the run in this folder, which is made, and goes when the run has come to its end [default: a folder among the
    /// temporary files, where vertex rows are on disk; the same command goes on with what is there]
    #[arg(long, value_name = "DIR")]
    pub(crate) checkpoint_dir: Option<PathBuf>,
    /// Publish one after every N passes, or when a pass ends N seconds after the one before (10s) [default: 1s where vertex rows are on disk,
    /// else 30s]
    #[arg(long, value_name = "N|Ns", value_parser = every)]
    pub(crate) checkpoint_every: Option<Every>,
    /// Keep the N newest; with 0 none are published [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) checkpoints: Option<u16>,
    /// Go on with the newest version, if there is one
    #[arg(long)]
    pub(crate) resume: bool,
}

/// So many passes, or seconds.
fn every(text: &str) -> Result<Every, String> {
    let mistake =
        || format!("{text:?} is neither a number of passes, as 1, nor of seconds, as 30s");
    let parsed = match text.strip_suffix('s') {
        Some(seconds) => seconds
            .parse()
            .map(|seconds| Every::Time(Duration::from_secs(seconds))),
        None => text.parse().map(Every::Calls),
    };
    match parsed {
        Ok(Every::Calls(0)) | Err(_) => Err(mistake()),
        Ok(every) => Ok(every),
    }
}

/// Choices the engine otherwise makes by cost. The result does not depend on them; sums of a push vertex program are rounded in order
/// of arrival.
#[derive(Debug, Clone, Args)]
#[command(
    next_help_heading = "Experiments (the result does not depend on them, but for the rounding of pregel-push)"
)]
pub(crate) struct Experiments {
    /// Go through edges from source to list (scatter), or from list to source (gather) where the graph allows it
    #[arg(long, value_name = "auto|scatter|gather", value_enum, default_value_t)]
    pub(crate) direction: Direction,
    /// Go only to the places of the active vertices' edges
    #[arg(long, value_name = "auto|never|always", value_enum, default_value_t)]
    pub(crate) seek: Seek,
    /// Cost of one such place on disk, in vertices scanned; a 32nd of that in memory, and where reading is counted apart [default: 1024]
    #[arg(long, value_name = "N")]
    pub(crate) gamma: Option<u64>,
    /// With several ranks, send a rank all messages instead of those it needs where the list of the sources that it needs is as long as R
    /// times the messages; 0: always, inf: never [default: where it needs next to all]
    #[arg(long, value_name = "R", value_parser = ratio)]
    pub(crate) filter_ratio: Option<f64>,
    /// Messages that are on disk: write a piece for each run of columns that needs some of them (push), have each run put aside what it
    /// needs before it folds them (pull), or have it read all of them (none); auto: by cost
    #[arg(long, value_name = "auto|push|pull|none", value_enum, default_value_t)]
    pub(crate) dispatch: Dispatch,
    /// What a vertex weighs against an edge where batches are shared out among ranks [default: twice the ranks less 1]
    #[arg(long, value_name = "N")]
    pub(crate) alpha: Option<u64>,
    /// Combine what several threads send to one vertex, in a vertex program's push version (--method pregel-push). auto: in an edge
    /// pass where many vertices send, else like hybrid; hybrid: in shared mailboxes, by lock and compare-and-exchange; own: in
    /// mailboxes of each thread's own, where these fit in memory
    #[arg(long, value_name = "auto|hybrid|own", value_enum, default_value_t)]
    pub(crate) combiner: Combining,
    /// Run the algorithm so many times over the graph as it is loaded, to measure it
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        hide_default_value = true,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub(crate) trials: u32,
}

/// Which data lies on which tier of memory. The result does not depend on it; sums of a push vertex program are rounded in order of
/// arrival.
#[derive(Debug, Clone, Args)]
#[command(
    next_help_heading = "Tiers of memory (the result does not depend on them, but for the rounding of pregel-push)"
)]
pub(crate) struct Tiers {
    /// Where a kind of data lies, again and again: vertices, messages, index or edges = dram, numa:NODES[:bind|preferred|interleave],
    /// file:PATH (a folder that exists, a new file to be made, a DAX device), model or slow; edges also auto or stream (from disk in
    /// each pass). Before any of these all of it at once: dram, slow, rw-split (index and edges on the slow tier) or cache (nothing
    /// placed) [default: dram, edges=auto]
    #[arg(long, value_name = "KIND=WHERE|PRESET")]
    pub(crate) place: Vec<String>,
    /// The tier that is called slow: numa:NODES, file:PATH (a folder that exists, or a new file to be made) or model; named alone it is
    /// --place rw-split
    #[arg(long, value_name = "WHERE")]
    pub(crate) slow_tier: Option<String>,
    /// Spend the time that bytes on the slow tier would take longer than in DRAM: paper says 2.4 times to read, 6 times to write
    #[arg(long, value_name = "none|paper", value_enum, default_value_t)]
    pub(crate) charge: Charge,
    /// Bytes that a thread gets from DRAM in a second, for --charge paper [default: 5866 million]
    #[arg(long, value_name = "SIZE", value_parser = size::bandwidth)]
    pub(crate) dram_bandwidth: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Charge {
    #[default]
    None,
    Paper,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum Combining {
    #[default]
    Auto,
    Hybrid,
    Own,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum Seek {
    #[default]
    Auto,
    Never,
    Always,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum Dispatch {
    #[default]
    Auto,
    Push,
    Pull,
    None,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum Direction {
    #[default]
    Auto,
    Scatter,
    Gather,
}

#[derive(Debug, Args)]
pub(crate) struct Info {
    /// Folder of a stored graph
    pub(crate) graph: PathBuf,
    /// As one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// Folder of a stored graph
    pub(crate) graph: PathBuf,
    /// Compare degrees, indices, reverse and counts with the edges too, to find what a broken program wrote
    #[arg(long)]
    pub(crate) deep: bool,
    #[command(flatten)]
    pub(crate) machine: Machine,
}

#[derive(Debug, Args)]
pub(crate) struct Cache {
    #[command(subcommand)]
    pub(crate) command: CacheCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// List the graphs that are kept, with the bytes of each
    List(CachePlaces),
    /// Remove the graphs that are kept, but for those that a run works on
    Clear(CachePlaces),
}

#[derive(Debug, Args)]
pub(crate) struct CachePlaces {
    /// Files of edges, or folders with files of edges
    #[arg(value_name = "PATH", default_value = ".")]
    pub(crate) paths: Vec<PathBuf>,
    /// As one JSON array
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_name = "bash|elvish|fish|powershell|zsh", value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Folder that gets a page for each command, instead
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Mpi {
    #[command(subcommand)]
    pub(crate) command: MpiCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MpiCommand {
    /// Compile the plugin by which the command reaches an MPI: once for each MPI, with that MPI's own compiler
    Build(MpiBuild),
}

#[derive(Debug, Args)]
pub(crate) struct MpiBuild {
    /// The C compiler of the MPI
    #[arg(long, value_name = "COMMAND", default_value = "mpicc")]
    pub(crate) cc: String,
    /// The plugin's file; the environment variable GRAPHMILL_MPI names it to a job then [default: where jobs look for it]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Algorithms {
    /// As one JSON array
    #[arg(long)]
    pub(crate) json: bool,
}
