//! The identity of an import: it names the directories, and distinguishes the import from others.

use std::path::Path;
use std::sync::Arc;

use graphmill_storage::{Clock, Disk, WorkDir};

use crate::comm::ImportCommunicator;
use crate::error::IngestError;
use crate::options::ImportOptions;
use crate::source::EdgeSource;

/// The file of the job record. It is deleted last, since it names the owner of a directory.
pub(crate) const JOB_FILE: &str = "job.step";

/// An import whose work can be kept.
pub(crate) struct JobIdentity {
    /// The checksum of the output's path and of the directory for temporary files.
    output: u32,
    rank: usize,
    ranks: usize,
    text: String,
}

impl JobIdentity {
    /// Returns the identity of this rank's part of an import; `None` if it can have no checkpoint.
    pub(crate) fn new(
        options: &ImportOptions,
        comm: &ImportCommunicator<'_>,
        source: &dyn EdgeSource,
        vertices: Option<&dyn EdgeSource>,
    ) -> Option<JobIdentity> {
        options.keep_every?;
        let sources = [Some(source), vertices].into_iter().flatten();
        let identities: Vec<String> = sources.map(EdgeSource::identity).collect::<Option<_>>()?;
        let output = std::path::absolute(&options.output).ok()?;
        let temporary = options.temporary.as_deref().unwrap_or(Path::new(""));
        let temporary = std::path::absolute(temporary).unwrap_or_default();
        let (rank, ranks) = (comm.rank(), comm.count());
        let program = env!("CARGO_PKG_VERSION");
        Some(JobIdentity {
            output: crc32fast::hash(format!("{output:?} {temporary:?}").as_bytes()),
            rank,
            ranks,
            text: format!(
                "graphmill {program}: {} of {output:?}, rank {rank} of {ranks}: {identities:?}",
                options.of_graph()
            ),
        })
    }

    /// Returns the text that distinguishes the import, given the ranks that made the ranks' directories.
    pub(crate) fn text(&self, makers: &[usize]) -> String {
        format!("{} {makers:?}", self.text)
    }

    /// Returns the prefix of an import's graph directories if `name` is its directory of temporary files.
    pub(crate) fn graphs_of(name: &str) -> Option<String> {
        let (output, _) = name.strip_prefix(".graphmill-import-")?.split_once('-')?;
        Some(format!(".graphmill-graph-{output}-"))
    }

    /// True if `name` is a directory of a rank that this job does not have.
    ///
    /// An import to the same output by more ranks made it, for temporary files or for a graph.
    pub(crate) fn is_beyond(&self, name: &str) -> bool {
        let number = ["import", "graph"].iter().find_map(|what| {
            let own = format!(".graphmill-{what}-{:08x}-", self.output);
            name.strip_prefix(&own)?.parse::<usize>().ok()
        });
        number.is_some_and(|rank| rank >= self.ranks)
    }

    /// Opens the job's directory of temporary files, on all ranks or on none.
    ///
    /// `None` if another process works in one of them: the import then writes no checkpoint.
    pub(crate) fn folder(
        &self,
        ports: (&Arc<dyn Disk>, &dyn Clock),
        folder: &Path,
        comm: &ImportCommunicator<'_>,
    ) -> Result<Option<WorkDir>, IngestError> {
        let name = format!("import-{:08x}-{:05}", self.output, self.rank);
        let named = WorkDir::named(ports, folder, &name)?;
        let have_all = comm.all_true(named.is_some())?;
        let named = named.filter(|_| have_all);
        Ok(named.map(|named| named.removed_last(JOB_FILE)))
    }

    /// The directory of its graph which the rank `maker` makes, as for [`WorkDir::named`].
    pub(crate) fn staging(
        &self,
        ports: (&Arc<dyn Disk>, &dyn Clock),
        folder: &Path,
        maker: usize,
    ) -> Result<Option<WorkDir>, IngestError> {
        let name = format!("graph-{:08x}-{maker:05}", self.output);
        Ok(WorkDir::named(ports, folder, &name)?)
    }
}
