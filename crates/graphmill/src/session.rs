//! A graph with an engine over it: where algorithms of the registry run, and programs of one's own.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::Arc;

use graphmill_algorithms::ResultShape;
use graphmill_engine::{
    CheckpointPolicy, EdgeResidency, Engine, EngineConfig, EngineError, EngineOptions, Mode,
    ProgramFootprint, job,
};
use graphmill_fabric::Fabric;
use graphmill_graph::StoredGraph;
use graphmill_storage::{DataKind, Tier, WorkDir, is_in_memory};

use crate::checkpoint_dir::CheckpointDir;
use crate::config::CheckpointConfig;
use crate::error::Error;
use crate::machine::resources::Machine;
use crate::progress::{Progress, ProgressFn};
use crate::run_identity::{ProgramName, RunIdentity};
use crate::summary::result_bytes;

/// An open graph and the engine over it, to which it dereferences.
///
/// Its temporary files are deleted when it is dropped.
pub struct Session {
    // In this order: the engine closes its files before their directories go.
    pub(crate) engine: Engine,
    pub(crate) graph: Arc<StoredGraph>,
    pub(crate) machine: Machine,
    /// The checkpoints of a program of one's own.
    checkpoints: Option<CheckpointDir>,
    watcher: ProgressFn,
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
    /// On several ranks every rank must make the same calls in the same order; calls that differ are an error.
    ///
    /// Its temporary files are beside the graph unless the machine has a directory for them.
    ///
    /// # Errors
    /// They cannot be made, or the budget is too small for one batch or for the rows of a result.
    pub fn session(
        &self,
        graph: &Arc<StoredGraph>,
        options: EngineOptions,
        watcher: &ProgressFn,
    ) -> Result<Session, Error> {
        self.program_session(graph, options, None, watcher)
    }

    /// Opens an engine that writes checkpoints, or resumes from them.
    ///
    /// If the process is killed, the next run of the same program resumes, and its results have the same bytes.
    /// The program calls [`Session::finish`] at its end. It runs again from its start, and the calls that it made before the checkpoint
    /// return what they returned then, without work. So it may decide only by what calls return (see `docs/guide/own-algorithm.md`).
    /// On several ranks every rank must make the same calls, as for [`Machine::session`].
    ///
    /// # Errors
    /// As for [`Machine::session`]; a named directory holds checkpoints of another run, or of this one without `resume`.
    pub fn checkpointed_session(
        &self,
        graph: &Arc<StoredGraph>,
        options: EngineOptions,
        program: &ProgramName,
        checkpoints: &CheckpointConfig,
        watcher: &ProgressFn,
    ) -> Result<Session, Error> {
        let identity = RunIdentity::of_program(program, graph, self, &options);
        let tmp = self.tmp(graph.path());
        let dir = CheckpointDir::open(self, graph, identity, checkpoints, &tmp, watcher)?;
        let policy = dir.as_ref().map(|dir| dir.asked.clone());
        let mut session = self.program_session(graph, options, policy, watcher)?;
        if let Some(dir) = &dir {
            dir.report_resumed(job::resumed(&session), watcher);
        }
        session.checkpoints = dir;
        Ok(session)
    }

    /// Opens a session for a program of one's own, whose last passes leave memory for the rows of a result.
    fn program_session(
        &self,
        graph: &Arc<StoredGraph>,
        options: EngineOptions,
        checkpoints: Option<CheckpointPolicy>,
        watcher: &ProgressFn,
    ) -> Result<Session, Error> {
        let (dims, budget) = (graph.measure(), self.budget());
        let shape = match options.edge_result {
            true => ResultShape::Forest,
            false => ResultShape::Vertices,
        };
        let result = result_bytes(&dims, shape, true, 0);
        let sizes = ProgramFootprint::USUAL.with_result(result);
        let least =
            budget.total() - budget.available() + job::min_memory(&dims, self.tiers(), sizes);
        let asked = (options, sizes, checkpoints);
        let session = self.session_beside(graph.path(), graph, asked, None, watcher)?;
        if budget.available() < result {
            let (what, budget) = ("a program with a result", budget.total());
            return Err(EngineError::TooSmall {
                what,
                least,
                budget,
            }
            .into());
        }
        job::compare_calls(&session);
        Ok(session)
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
        let on_pass = Arc::clone(watcher);
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
                    on_pass(&Progress::Superstep { number, most, pass });
                }
            })),
            checkpoints,
        };
        Ok(Session {
            engine: Engine::new(Arc::clone(graph), config)?,
            graph: Arc::clone(graph),
            machine: self.clone(),
            checkpoints: None,
            watcher: Arc::clone(watcher),
            _scratch: scratch,
        })
    }
}

impl Session {
    /// Ends the passes of a program: its rows and the members of its sets may be read from now on.
    ///
    /// A session with checkpoints needs it before [`Engine::read_batch`] and
    /// [`ActiveSet::for_each`](graphmill_engine::ActiveSet::for_each). No pass may follow there. [`Session::write`] may come before and after.
    ///
    /// # Errors
    /// The program makes fewer calls than the run that it resumes; a checkpoint cannot be written; the user asked to stop.
    pub fn end_passes(&mut self) -> Result<(), Error> {
        Ok(job::end_calls(&mut self.engine, "end_passes")?)
    }

    /// Ends the session of a program that has done its work, and deletes its checkpoints.
    ///
    /// All ranks call it. A session that is dropped instead leaves its checkpoints, and the next run resumes from them.
    ///
    /// # Errors
    /// As for [`Session::end_passes`]; the checkpoints cannot be deleted.
    pub fn finish(mut self) -> Result<(), Error> {
        self.end_passes()?;
        match &self.checkpoints {
            Some(dir) => dir.end(&self.machine, &mut self.engine, &self.watcher),
            None => Ok(()),
        }
    }
}
