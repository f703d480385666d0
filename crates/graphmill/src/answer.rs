//! A run that keeps the rows of its result: they can be read any number of times.

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::thread;

use graphmill_algorithms::OutputValues;
use graphmill_engine::job;
use graphmill_graph::VertexId;
use graphmill_storage::{CancelToken, StorageError};

use crate::checkpoint_dir::CheckpointDir;
use crate::error::Error;
use crate::error_kind::ErrorKind;
use crate::launch::{Membership, start_on_ranks};
use crate::machine::resources::Machine;
use crate::plan::Plan;
use crate::progress::{Progress, ProgressFn, rows_written, unwatched};
use crate::rank_process::RankProcess;
use crate::result::block::{Block, IdColumn, Values};
use crate::result::format::is_folder;
use crate::run::{Run, Solved};
use crate::spool::{Spool, is_stdin};
use crate::summary::Summary;
use crate::vertex_ids;

/// A finished run that keeps its rows: in its memory, or in its temporary files.
///
/// Dropping it deletes these, and the checkpoints in a directory that the plan names.
pub struct Answer {
    plan: Plan,
    // In order of rank; of a job of processes this one alone. They go before the edges from standard input that they may refer to.
    ranks: Vec<AnswerRank>,
    /// The job of processes that its rank is one of.
    process: Option<RankProcess>,
    run: Run,
    watcher: ProgressFn,
    /// True if a rank may wait for an answer that never comes.
    is_broken: bool,
    _spool: Option<Spool>,
}

/// What a rank keeps.
struct AnswerRank {
    solved: Solved,
    machine: Machine,
    checkpoints: Option<CheckpointDir>,
    membership: Option<Membership>,
}

impl AnswerRank {
    /// Ends the job if this rank failed: the others may be in the midst of a batch.
    fn end_job_on_error<T>(&self, done: Result<T, Error>) -> Result<T, Error> {
        done.inspect_err(|error| {
            if let Some(membership) = &self.membership {
                membership.fail(error);
            }
        })
    }
}

impl Plan {
    /// Does what the plan says, and keeps the rows of the result.
    ///
    /// `stop` ends this work, and later work on the rows.
    ///
    /// # Errors
    /// As for [`Plan::run`].
    pub fn answer(self, stop: &CancelToken, watcher: &ProgressFn) -> Result<Answer, Error> {
        let inputs = std::slice::from_ref(&self.config.input);
        let spool = Spool::of(inputs, &self.machine(), self.output_file(), stop)?;
        let plan = self.on_spool(&spool);
        let work = |machine: &Machine| plan.keep_rows(machine, watcher);
        let started = start_on_ranks(&plan.machine(), plan.config.ranks, stop, work)?;
        let ranks = started
            .into_iter()
            .map(|(rank, membership)| AnswerRank { membership, ..rank });
        Answer::new(plan, ranks.collect(), None, watcher, Some(spool))
    }

    /// The same as a rank of a job of processes.
    ///
    /// All ranks make the same calls on their answers. Each rank gets all rows.
    ///
    /// # Errors
    /// As for [`Plan::answer`]; another rank is lost.
    pub fn answer_as(
        self,
        process: &RankProcess,
        stop: &CancelToken,
        watcher: &ProgressFn,
    ) -> Result<Answer, Error> {
        if is_stdin(&self.config.input) {
            return Err(Error::StdinOfRanks);
        }
        let keep = |machine: &Machine| self.keep_rows(machine, watcher);
        let rank = process.run(&self.machine(), stop, keep)?;
        Answer::new(self, vec![rank], Some(process.clone()), watcher, None)
    }

    /// Runs the plan as a rank, and keeps its rows.
    fn keep_rows(&self, machine: &Machine, watcher: &ProgressFn) -> Result<AnswerRank, Error> {
        let watcher = match machine.rank() {
            0 => watcher.clone(),
            _ => unwatched(),
        };
        let mut checkpoints = None;
        self.begin(machine)?;
        let solved = self.solve(machine, true, &watcher, &mut checkpoints);
        let mut solved = solved.map_err(|error| match &checkpoints {
            Some(checkpoints) => checkpoints.left(error, &watcher),
            None => error,
        })?;
        // Another run of the same plan, at the same time, would miss their directory.
        if let Some(unnamed) = checkpoints.take_if(|dir| !dir.is_named) {
            unnamed.end(machine, &mut solved.session, &watcher)?;
        }
        Ok(AnswerRank {
            solved,
            machine: machine.clone(),
            checkpoints,
            membership: None,
        })
    }
}

impl Answer {
    fn new(
        plan: Plan,
        ranks: Vec<AnswerRank>,
        process: Option<RankProcess>,
        watcher: &ProgressFn,
        spool: Option<Spool>,
    ) -> Result<Answer, Error> {
        let run = ranks.first().map(|first| first.solved.run.clone());
        Ok(Answer {
            run: run.ok_or(Error::Stopped)?,
            ranks,
            process,
            plan,
            watcher: watcher.clone(),
            is_broken: false,
            _spool: spool,
        })
    }

    /// What the run took; without a summary and highest values.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Calls `each` with the rows whose ids are at these places in ascending order, a block at a time.
    ///
    /// All places are those below [`Run::vertices`]. A result of numbers has one row, at any place.
    ///
    /// # Errors
    /// The disk fails, the budget has no room for a batch and a block, or work was to stop.
    pub fn each_block(
        &mut self,
        places: Range<u64>,
        each: impl FnMut(&Block),
    ) -> Result<(), Error> {
        self.read(|_, solved| {
            let Solved {
                session, output, ..
            } = solved;
            session.each_served_block(output, Some(places), each)
        })
    }

    /// The row of a vertex; `None` if the graph has no such vertex.
    ///
    /// # Errors
    /// As for [`Answer::each_block`].
    pub fn row_of(&mut self, id: impl Into<VertexId>) -> Result<Option<Block>, Error> {
        let id = id.into();
        self.read(|_, solved| {
            let Solved {
                session, output, ..
            } = solved;
            let mut reader = session.ids()?;
            let rank = vertex_ids::rank_of(&session.graph, &mut reader, id)?;
            drop(reader);
            let mut row = None;
            if let Some(rank) = rank {
                session.each_served_block(output, Some(rank..rank + 1), |block| {
                    row = Some(block.clone());
                })?;
            }
            Ok(row)
        })
    }

    /// Computes the result in a few numbers, and its `count` highest values or largest groups.
    ///
    /// # Errors
    /// As for [`Answer::each_block`].
    pub fn summary(&mut self, count: usize) -> Result<Summary, Error> {
        self.read(|plan, solved| {
            let Solved {
                session,
                output,
                sizes,
                ..
            } = solved;
            let (summary, _highest) = plan.summarize(session, output, sizes.as_ref(), count)?;
            Ok(summary)
        })
    }

    /// Writes the rows to a file, whose name gives the format; returns its bytes.
    ///
    /// With a slash at the end the path is a directory: each rank writes a file with the rows of its own vertices.
    ///
    /// # Errors
    /// As for [`Answer::each_block`]; the name does not say the format; the file cannot be written. The path is then as it was.
    pub fn write(&mut self, path: &Path) -> Result<u64, Error> {
        let note = rows_written(&self.watcher, self.run.vertices);
        if is_folder(path) {
            let part = |rank: &mut AnswerRank, note: &mut dyn FnMut(u64)| {
                let Solved {
                    session, output, ..
                } = &mut rank.solved;
                session.machine.check_writing(path)?;
                session.write_parts(output, path, note)
            };
            let others = |rank: &mut AnswerRank| part(rank, &mut |_| ()).map(drop);
            let mut note = note;
            return self.on_all_ranks(|_, first| part(first, &mut note), others);
        }
        let write = |_: &Plan, solved: &mut Solved| {
            let Solved {
                session, output, ..
            } = solved;
            session.machine.check_folder(path)?;
            session.machine.check_writing(path)?;
            session.write_served(output, path, note)
        };
        if self.process.is_none() {
            return self.read(write);
        }
        let written = self.read_on(0..1, write)?;
        let mine = written.unwrap_or_default().to_le_bytes();
        self.on_all_ranks(
            |_, first| {
                let found = first.machine.gather(&mine)?;
                let bytes = found.first().and_then(|bytes| bytes.first_chunk());
                Ok(bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes)))
            },
            |_| Ok(()),
        )
    }

    /// A block without rows: its columns have the types of all blocks.
    pub fn empty_block(&self) -> Option<Block> {
        let Solved {
            session, output, ..
        } = &self.ranks.first()?.solved;
        let kind = session.graph.id_kind();
        let values = match output.values {
            OutputValues::F32(_) => Values::F32(Vec::new()),
            OutputValues::F64(_) => Values::F64(Vec::new()),
            OutputValues::U32(_) => Values::U32(Vec::new()),
            OutputValues::U64(_) => Values::U64(Vec::new()),
            OutputValues::Edges(_) => Values::Edges {
                destinations: IdColumn::of(kind),
                weights: Vec::new(),
            },
            OutputValues::Numbers(row) => Values::Numbers(row),
            OutputValues::Vertex32(_)
            | OutputValues::Vertex64(_)
            | OutputValues::Ordinal32(_)
            | OutputValues::Ordinal64(_) => Values::Vertex(IdColumn::of(kind)),
        };
        Some(Block {
            id_type: session.graph.id_type(),
            ids: IdColumn::of(kind),
            values,
            reached: output.nullable.then(Vec::new),
        })
    }

    /// What the run took, as the JSON of `--metrics`.
    pub fn metrics(&self) -> serde_json::Value {
        // Numbers and words are always JSON.
        serde_json::to_value(self.plan.report(&self.run)).unwrap_or_default()
    }

    /// Calls `read` as each of some ranks of a job of processes in turn, while others send their rows.
    ///
    /// Returns what it gave as this rank.
    fn read_on<T>(
        &mut self,
        readers: Range<usize>,
        read: impl FnOnce(&Plan, &mut Solved) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        let mut read = Some(read);
        let turns = |plan: &Plan, own: &mut AnswerRank| {
            let mut found = None;
            for reader in readers {
                if reader == own.machine.rank() {
                    found = read
                        .take()
                        .map(|read| read(plan, &mut own.solved))
                        .transpose()?;
                    job::stop_serving(&own.solved.session)?;
                } else {
                    job::serve(&own.solved.session, reader)?;
                }
            }
            Ok(found)
        };
        self.on_all_ranks(turns, |_| Ok(()))
    }

    /// Calls `read` as rank 0, while the other ranks send their rows.
    ///
    /// In a job of processes each rank reads in turn.
    fn read<T>(
        &mut self,
        read: impl FnOnce(&Plan, &mut Solved) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if let Some(process) = &self.process {
            let found = self.read_on(0..process.ranks(), read)?;
            return found.ok_or(Error::AnswerBroken);
        }
        let read = |plan: &Plan, first: &mut AnswerRank| {
            let done = match read(plan, &mut first.solved) {
                // No rank waits for rows: a later read may succeed.
                Err(error) if is_of_rank(&error) => Err(error),
                done => Ok(done?),
            };
            job::stop_serving(&first.solved.session)?;
            Ok(done)
        };
        self.on_all_ranks(read, |other| Ok(job::serve(&other.solved.session, 0)?))?
    }

    /// Calls `first` as rank 0 and `others` as each other rank, at the same time.
    fn on_all_ranks<T>(
        &mut self,
        first: impl FnOnce(&Plan, &mut AnswerRank) -> Result<T, Error>,
        others: impl Fn(&mut AnswerRank) -> Result<(), Error> + Sync,
    ) -> Result<T, Error> {
        let (plan, others) = (&self.plan, &others);
        let (rank_0, other_ranks) = match self.ranks.split_first_mut() {
            Some(ranks) if !self.is_broken => ranks,
            _ => return Err(Error::AnswerBroken),
        };
        if other_ranks.is_empty() {
            let done = first(plan, rank_0);
            if let (Some(process), Err(error)) = (&self.process, &done) {
                process.fail(&error.to_others());
                self.is_broken = true;
            }
            return done;
        }
        let done = thread::scope(|scope| {
            let mut failed = None;
            for rank in other_ranks {
                let work = move || {
                    let done = others(rank);
                    rank.end_job_on_error(done)
                };
                if let Err(source) = thread::Builder::new().spawn_scoped(scope, work) {
                    failed = Some(StorageError::Thread { source }.into());
                    break;
                }
            }
            let done = match failed {
                Some(error) => Err(error),
                None => first(plan, rank_0),
            };
            rank_0.end_job_on_error(done)
        });
        self.is_broken = done.is_err();
        done
    }

    /// Deletes the checkpoints of the run on all ranks.
    fn end_checkpoints(&mut self) {
        let watcher = &self.watcher;
        let end = |rank: &mut AnswerRank, watcher: &ProgressFn| {
            let Some(checkpoints) = &rank.checkpoints else {
                return;
            };
            let ended = checkpoints.end(&rank.machine, &mut rank.solved.session, watcher);
            if let Err(error) = ended {
                watcher(&Progress::Warning(&error.to_string()));
            }
        };
        thread::scope(|scope| {
            let Some((first, others)) = self.ranks.split_first_mut() else {
                return;
            };
            for other in others {
                scope.spawn(|| end(other, &unwatched()));
            }
            end(first, watcher);
        });
    }
}

/// True if an error is of this rank alone, such as a file that it cannot write.
fn is_of_rank(error: &Error) -> bool {
    use ErrorKind::{Disk, Memory, Usage};
    matches!(error.kind(), Disk | Memory | Usage)
}

impl Drop for Answer {
    fn drop(&mut self) {
        if !self.is_broken {
            self.end_checkpoints();
        }
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer")
            .field("run", &self.run)
            .finish_non_exhaustive()
    }
}
