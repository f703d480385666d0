//! Where a run publishes its versions, and which run they are of.
//!
//! Each rank has a folder of its own there, with a file that says what the run is (`run.json`), the pages of its rows and its versions.
//! What is gone on with has to be the same run; when the run has come to its end, all of it goes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use graphmill_engine as engine;
use graphmill_fabric::Fabric;
use graphmill_graph::StoredGraph;
use serde::{Deserialize, Serialize};

use crate::plan::Plan;
use crate::{Error, Machine};

pub use engine::Every;

/// The format of what is published.
const FORMAT: u32 = 1;
const NAME: &str = "run.json";
/// Bytes of what says which run it is, at most.
const NAME_BYTES_MAX: u64 = 1 << 20;

/// Versions of a run, which a killed one goes on with.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoints {
    /// The folder that they are published in; it is made, and goes when the run has come to its end.
    pub folder: PathBuf,
    /// How often.
    pub every: Every,
    /// How many are kept; 0 is 1.
    pub keep: usize,
    /// Go on with the newest, if there is any; else there must be none.
    pub resume: bool,
}

/// What tells one run from another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    format: u32,
    graph: String,
    algorithm: String,
    options: BTreeMap<String, String>,
    ranks: usize,
    trials: u32,
}

impl Identity {
    /// What another run has otherwise, if anything.
    fn other(&self, there: &Identity) -> Option<String> {
        let differs = |what: &str, mine: &str, theirs: &str| {
            (mine != theirs).then(|| format!("{what} {theirs}, not {mine}"))
        };
        let option = |name: &String| {
            let value = |of: &Identity| of.options.get(name).cloned().unwrap_or("as usual".into());
            differs(&format!("--{name}"), &value(self), &value(there))
        };
        let names = self.options.keys().chain(there.options.keys());
        differs(
            "format",
            &self.format.to_string(),
            &there.format.to_string(),
        )
        .or_else(|| differs("algorithm", &self.algorithm, &there.algorithm))
        .or_else(|| differs("graph", &self.graph, &there.graph))
        .or_else(|| names.map(option).find(Option::is_some).flatten())
        .or_else(|| differs("ranks", &self.ranks.to_string(), &there.ranks.to_string()))
        .or_else(|| {
            differs(
                "trials",
                &self.trials.to_string(),
                &there.trials.to_string(),
            )
        })
    }
}

impl Plan {
    /// The versions that this rank publishes, and goes on with; of no other run.
    pub(crate) fn checkpoints(
        &self,
        machine: &Machine,
        graph: &StoredGraph,
    ) -> Result<Option<engine::Checkpoints>, Error> {
        let Some(asked) = &self.config.checkpoints else {
            return Ok(None);
        };
        let disk = &**machine.disk();
        let ranks = machine.fabric().map_or(1, |fabric| fabric.ranks());
        let identity = Identity {
            format: FORMAT,
            graph: format!("{:016x}-{}", graph.graph_id(), graph.meta().checksum()),
            algorithm: self.entry.name.to_string(),
            options: self.config.options.clone(),
            ranks,
            trials: self.config.trials,
        };
        let folder = of_rank(&asked.folder, machine.rank());
        let path = folder.join(NAME);
        let text = serde_json::to_vec_pretty(&identity).map_err(|error| Error::Checkpoints {
            path: path.clone(),
            what: error.to_string(),
        })?;
        if disk.exists(&path)? {
            let there = disk.read_small(&path, NAME_BYTES_MAX)?;
            let there: Identity =
                serde_json::from_slice(&there).map_err(|error| Error::Checkpoints {
                    path: path.clone(),
                    what: format!("it does not say which run it is of ({error})"),
                })?;
            if !asked.resume {
                return Err(Error::Checkpoints {
                    path: asked.folder.clone(),
                    what: format!("there are versions of a run of {} already", there.algorithm),
                });
            }
            if let Some(what) = identity.other(&there) {
                return Err(Error::Checkpoints {
                    path: asked.folder.clone(),
                    what: format!("the run there has {what}"),
                });
            }
        } else {
            disk.create_dir_all(&folder)?;
            disk.write_small(&path, &text)?;
        }
        Ok(Some(engine::Checkpoints {
            folder,
            job: graph.graph_id(),
            every: asked.every,
            keep: asked.keep.max(1),
            resume: asked.resume,
        }))
    }

    /// Removes what says which run versions were of, and the folders, when there are no versions any more.
    pub(crate) fn forget_checkpoints(&self, machine: &Machine) -> Result<(), Error> {
        let Some(asked) = &self.config.checkpoints else {
            return Ok(());
        };
        let disk = &**machine.disk();
        let folder = of_rank(&asked.folder, machine.rank());
        disk.remove_file(&folder.join(NAME))?;
        disk.remove_dir_all(&folder)?;
        // The last rank finds nothing in it; what is not ours stays.
        let _ = disk.remove_dir(&asked.folder);
        Ok(())
    }
}

/// The folder of a rank.
fn of_rank(folder: &Path, rank: usize) -> PathBuf {
    folder.join(format!("rank-{rank:05}"))
}
