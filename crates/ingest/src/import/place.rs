//! Where an import works: temporary files, the graph so far, and what is kept of both when it does not come to its end.

use std::path::Path;
use std::sync::Arc;

use graphmill_graph::FormatError;
use graphmill_storage::{Clock, Disk, Scratch};

use super::log::{JOB_FILE, Log};
use super::staging::Staging;
use super::{ImportOptions, Machine};
use crate::crew::Crew;
use crate::edge::EdgeSource;
use crate::error::IngestError;

pub(super) struct Place<'a> {
    // In this order: the folder that says whose they are goes last.
    pub(super) staging: Staging<'a>,
    pub(super) temporary: Scratch,
    /// What was done, where it is kept.
    pub(super) log: Option<Log<'a>>,
}

impl<'a> Place<'a> {
    /// Of an import that makes its graph in `parent`: that of a job, with what was kept of it, if no other process works there; else a
    /// new one.
    pub(super) fn open(
        machine: Machine<'a>,
        crew: Crew<'a>,
        parent: &Path,
        job: Option<Job>,
        options: &ImportOptions,
    ) -> Result<Self, IngestError> {
        let folder = options.temporary.as_deref().unwrap_or(parent);
        let ports = (machine.disk, machine.clock);
        let named = match &job {
            Some(job) => {
                Log::remove_dead(machine, folder, job);
                crew.gather(Vec::new())?;
                job.folder(ports, folder, &crew)?
            }
            None => None,
        };
        let kept = job.as_ref().filter(|_| named.is_some());
        let staging = Staging::create(ports, parent, crew, kept)?;
        if job.is_some() && !staging.is_of_job() {
            let apart = if named.is_some() { parent } else { folder };
            machine.progress.keeps_nothing(apart);
        }
        let job = job.filter(|_| staging.is_of_job());
        let temporary = match named.filter(|_| staging.is_of_job()) {
            Some(named) => named,
            None => Scratch::create(machine.disk, folder, "temporary")?,
        };
        if options.turns_round() && staging.makers().iter().any(|maker| *maker != 0) {
            return Err(IngestError::NotShared {
                folder: parent.to_path_buf(),
                option: "--reverse",
            });
        }
        let mut log = None;
        if let (Some(job), Some(every)) = (job, options.keep_every) {
            let folders = (temporary.path(), staging.path());
            let job = job.text(staging.makers());
            let (opened, is_new) = Log::open(machine, folders, job, every)?;
            // In this order: records without their files are none, and what has neither goes with any import, should this one be killed.
            if is_new {
                staging.clear()?;
            }
            crew.gather(Vec::new())?;
            if is_new {
                opened.supersede()?;
            }
            // Who says that it has begun finds nothing of another import there.
            crew.gather(Vec::new())?;
            if is_new {
                opened.begin();
            }
            log = Some(opened);
        }
        Ok(Place {
            staging,
            temporary,
            log,
        })
    }

    /// Has all of it go when the import ends, unless there is something to go on with; whether there is. `made` is what came of it: nobody
    /// goes on with what turned out to be damaged.
    pub(super) fn settle(&self, made: &Result<(), IngestError>) -> bool {
        let Some(log) = &self.log else {
            return false;
        };
        let is_of_what_was_kept = match made {
            Err(IngestError::Damaged { .. }) => true,
            Err(IngestError::Graph(error)) => !matches!(
                error,
                FormatError::Storage(_) | FormatError::Budget(_) | FormatError::Memory(_)
            ),
            _ => false,
        };
        // Where no record was written, what was to say that there are some goes.
        if is_of_what_was_kept || !log.has_any() {
            // What cannot be removed is met again.
            let _ = log.forget();
        }
        let has_any = log.has_any();
        self.temporary.stay(has_any);
        self.staging.stay(has_any || log.have_others());
        has_any
    }

    /// Gives the graph its name; all else goes. `taken` says what is wrong where something has that name already.
    pub(super) fn end(
        self,
        output: &Path,
        taken: impl FnOnce() -> Result<Option<IngestError>, IngestError>,
    ) -> Result<(), IngestError> {
        if let Some(log) = &self.log {
            log.end();
        }
        self.staging.rename(output, taken)?;
        self.temporary.stay(false);
        if let Some(log) = &self.log {
            // Where it is killed before or meanwhile, what is left goes with the next import. The graph is there, whatever becomes of this.
            let _ = log.forget();
        }
        Ok(())
    }
}

/// An import whose work can be kept.
pub(super) struct Job {
    /// Says which output it has, and where its temporary files are.
    output: u32,
    rank: usize,
    ranks: usize,
    text: String,
}

impl Job {
    /// The import of the part of the input that a rank of the crew reads, if what it does can be kept.
    pub(super) fn new(
        options: &ImportOptions,
        crew: &Crew<'_>,
        source: &dyn EdgeSource,
        vertices: Option<&dyn EdgeSource>,
    ) -> Option<Job> {
        options.keep_every?;
        let sources = [Some(source), vertices].into_iter().flatten();
        let identities: Vec<String> = sources.map(EdgeSource::identity).collect::<Option<_>>()?;
        let output = std::path::absolute(&options.output).ok()?;
        let temporary = options.temporary.as_deref().unwrap_or(Path::new(""));
        let temporary = std::path::absolute(temporary).unwrap_or_default();
        let (rank, ranks) = (crew.rank(), crew.count());
        let program = env!("CARGO_PKG_VERSION");
        Some(Job {
            output: crc32fast::hash(format!("{output:?} {temporary:?}").as_bytes()),
            rank,
            ranks,
            text: format!(
                "graphmill {program}: {} of {output:?}, rank {rank} of {ranks}: {identities:?}",
                options.of_graph()
            ),
        })
    }

    /// What tells it from other imports, where these ranks have made the folders in which ranks write.
    pub(super) fn text(&self, makers: &[usize]) -> String {
        format!("{} {makers:?}", self.text)
    }

    /// Where that is the name of the folder of temporary files of some import, how the names of the folders of its graph begin.
    pub(super) fn graphs_of(name: &str) -> Option<String> {
        let (output, _) = name.strip_prefix(".graphmill-import-")?.split_once('-')?;
        Some(format!(".graphmill-graph-{output}-"))
    }

    /// Whether that is the name of a folder, of temporary files or of a graph, that a rank beyond its own made: for the same output, by more ranks.
    pub(super) fn is_beyond(&self, name: &str) -> bool {
        let number = ["import", "graph"].iter().find_map(|what| {
            let own = format!(".graphmill-{what}-{:08x}-", self.output);
            name.strip_prefix(&own)?.parse::<usize>().ok()
        });
        number.is_some_and(|rank| rank >= self.ranks)
    }

    /// Its folder of temporary files, at all ranks or at none: where another process works in one, nothing is kept.
    pub(super) fn folder(
        &self,
        ports: (&Arc<dyn Disk>, &dyn Clock),
        folder: &Path,
        crew: &Crew<'_>,
    ) -> Result<Option<Scratch>, IngestError> {
        let name = format!("import-{:08x}-{:05}", self.output, self.rank);
        let named = Scratch::named(ports, folder, &name)?;
        let have_all = crew.all(named.is_some())?;
        let named = named.filter(|_| have_all);
        Ok(named.map(|named| named.with_last(JOB_FILE)))
    }

    /// The folder of its graph which the rank `maker` makes, as for [`Scratch::named`].
    pub(super) fn staging(
        &self,
        ports: (&Arc<dyn Disk>, &dyn Clock),
        folder: &Path,
        maker: usize,
    ) -> Result<Option<Scratch>, IngestError> {
        let name = format!("graph-{:08x}-{maker:05}", self.output);
        Ok(Scratch::named(ports, folder, &name)?)
    }
}
