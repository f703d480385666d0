//! Arguments of `graphmill import`.

use std::path::PathBuf;

use clap::Args;

use super::checkpoint::ImportCheckpointArgs;
use super::machine::MachineArgs;
use super::reading::ReadArgs;
use super::storing::StoreArgs;

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
pub(crate) struct ImportArgs {
    /// Files of edges or directories of them, plain, gzip or zstd; - is stdin
    #[arg(required = true)]
    pub(crate) input: Vec<PathBuf>,
    /// Directory of the stored graph; it must not exist yet
    #[arg(short, long, value_name = "GRAPH")]
    pub(crate) output: PathBuf,
    /// Print the summary as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) reading: ReadArgs,
    #[command(flatten)]
    pub(crate) storing: StoreArgs,
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
    /// Write the metrics of the import, as JSON
    #[arg(long, value_name = "FILE.json")]
    pub(crate) metrics: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) keeping: ImportCheckpointArgs,
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
}
