//! A graph with an engine over it: where algorithms of the registry run, and programs of one's own.

use std::fmt;
use std::ops::{Deref, DerefMut, Range};
use std::path::Path;
use std::sync::Arc;

use graphmill_algorithms::Output;
use graphmill_engine::{
    CheckpointPolicy, EdgeResidency, Engine, EngineConfig, EngineOptions, Mode, ProgramFootprint,
    job,
};
use graphmill_fabric::Fabric;
use graphmill_graph::StoredGraph;
use graphmill_storage::{DataKind, Lease, Tier, WorkDir, is_in_memory};

use crate::error::Error;
use crate::machine::resources::Machine;
use crate::progress::{Progress, ProgressFn};
use crate::result::block::Block;
use crate::result::dataset::PartWriter;
use crate::result::format::ResultFormat;
use crate::result::rows::{ResultRows, bytes_wanted};
use crate::result::write;
use crate::summary;
use crate::summary::Summary;

/// An open graph and the engine over it, to which it dereferences.
///
/// Its temporary files are deleted when it is dropped.
pub struct Session {
    // In this order: the engine closes its files before their directory goes.
    engine: Engine,
    graph: Arc<StoredGraph>,
    machine: Machine,
    _scratch: WorkDir,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("graph", &self.graph)
            .finish_non_exhaustive()
    }
}

impl Deref for Session {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}

impl DerefMut for Session {
    fn deref_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }
}

impl Machine {
    /// Opens an engine over `graph`.
    ///
    /// Its temporary files are beside the graph unless the machine has a directory for them.
    ///
    /// # Errors
    /// They cannot be made, or the budget is too small for one batch.
    pub fn session(
        &self,
        graph: &Arc<StoredGraph>,
        options: EngineOptions,
        watcher: &ProgressFn,
    ) -> Result<Session, Error> {
        self.session_beside(
            graph.path(),
            graph,
            (options, ProgramFootprint::USUAL, None),
            None,
            watcher,
        )
    }

    pub(crate) fn session_beside(
        &self,
        output: &Path,
        graph: &Arc<StoredGraph>,
        (options, sizes, checkpoints): (EngineOptions, ProgramFootprint, Option<CheckpointPolicy>),
        passes_max: Option<u64>,
        watcher: &ProgressFn,
    ) -> Result<Session, Error> {
        let scratch = self.scratch(&self.tmp(output))?;
        if is_in_memory(scratch.path()) {
            watcher(&Progress::Warning(&format!(
                "temporary files lie in {}, which is memory (tmpfs) that --memory does not count; name a directory on a disk (--tmp)",
                self.tmp(output).display()
            )));
        }
        let watcher = Arc::clone(watcher);
        let edges = match (options.edges, self.tiers().placement().at(DataKind::Edges)) {
            (EdgeResidency::Auto, Tier::Stream) => EdgeResidency::Disk,
            (told, Tier::Auto | Tier::Stream) => told,
            (EdgeResidency::Auto, _) => EdgeResidency::Memory,
            (told, _) => told,
        };
        let config = EngineConfig {
            budget: self.budget().clone(),
            tiers: self.tiers().clone(),
            disk: Arc::clone(self.disk()),
            workers: Arc::clone(self.workers()),
            clock: Arc::clone(self.clock()),
            stop: self.stop().clone(),
            scratch: scratch.path().to_path_buf(),
            fabric: (self.fabric()).map(|fabric| Arc::clone(fabric) as Arc<dyn Fabric>),
            options: EngineOptions { edges, ..options },
            sizes,
            charge: self.charge,
            on_pass: Some(Arc::new(move |number, pass| {
                if pass.mode != Mode::Vertices {
                    let most = passes_max;
                    watcher(&Progress::Superstep { number, most, pass });
                }
            })),
            checkpoints,
        };
        Ok(Session {
            engine: Engine::new(Arc::clone(graph), config)?,
            graph: Arc::clone(graph),
            machine: self.clone(),
            _scratch: scratch,
        })
    }
}

impl Session {
    /// Hands out the rows of a result, a block at a time in ascending order of ids.
    ///
    /// # Errors
    /// The disk fails, the budget has no room for a batch and a block, or work was to stop.
    pub fn each_block(
        &mut self,
        output: &Output,
        mut each: impl FnMut(&Block),
    ) -> Result<(), Error> {
        let all = 0..self.graph.batches().len();
        self.with_rows(output, all, |machine, rows| {
            write::each_block(machine, rows, &mut each)
        })
    }

    /// Passes the rows of the vertices of some batches to `work`.
    ///
    /// It keeps a run in memory that was asked to stop while its result went out.
    fn with_rows<T>(
        &mut self,
        output: &Output,
        batches: Range<usize>,
        work: impl FnOnce(&Machine, &mut ResultRows<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.make_room();
        let budget = self.machine.budget();
        let done = ResultRows::new(&self.engine, output, &self.graph, budget, batches)
            .and_then(|mut rows| work(&self.machine, &mut rows));
        if done.as_ref().is_err_and(Error::is_stopped) {
            job::keep_ended(&mut self.engine)?;
        }
        done
    }

    /// Writes a result to `path`, whose name gives the format, and returns the bytes of the file.
    ///
    /// Passes the number of rows written since the last call to `note`.
    ///
    /// # Errors
    /// As for [`Session::each_block`]; the name does not say the format. `path` is then as it was.
    pub fn write(
        &mut self,
        output: &Output,
        path: &Path,
        mut note: impl FnMut(u64),
    ) -> Result<u64, Error> {
        let (format, all) = (ResultFormat::of(path)?, 0..self.graph.batches().len());
        self.with_rows(output, all, |machine, rows| {
            write::write(machine, path, format, rows, &mut note)
        })
    }

    /// Writes a result to the directory `path`, whose name ends with a slash.
    ///
    /// Each rank writes a part with the rows of its own vertices, and passes their number to `note`. Returns the
    /// bytes of all parts. All ranks call it.
    ///
    /// # Errors
    /// As for [`Session::write`]; there is something else at `path`, or a rank is lost.
    pub(crate) fn write_parts(
        &mut self,
        output: &Output,
        path: &Path,
        mut note: impl FnMut(u64),
    ) -> Result<u64, Error> {
        let mut parts = PartWriter::create(&self.machine, path)?;
        let (part, own) = (parts.part(), job::local_batches(&self.engine));
        let written = self.with_rows(output, own, |machine, rows| {
            write::write(machine, &part, parts.format, rows, &mut note)
        });
        written
            .and_then(|bytes| parts.commit(bytes))
            .inspect_err(|error| parts.give_up(error))
    }

    /// Computes the summary of a result, and returns the leases for its long ids.
    ///
    /// `sizes` are the sizes of the groups that it names, `count` the number of rows to keep.
    pub(crate) fn summarize(
        &mut self,
        output: &Output,
        sizes: Option<&Output>,
        count: usize,
    ) -> Result<(Summary, Vec<Lease>), Error> {
        self.make_room();
        let of = (output, sizes);
        summary::summarize(&self.machine, &self.engine, &self.graph, of, count)
    }

    /// Frees memory for the rows of a result, if passes use it for cells.
    fn make_room(&mut self) {
        let wanted = bytes_wanted(&self.graph.measure());
        if self.machine.budget().available() < wanted {
            job::release(&mut self.engine);
        }
    }
}
