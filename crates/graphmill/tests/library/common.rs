//! Graphs, and sessions over them on some ranks.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use graphmill::advanced::run_on_ranks;
use graphmill::prelude::*;
use graphmill::{
    CancelToken, Error, ImportConfig, Machine, MachineConfig, ResultScalar, Session, unwatched,
};

/// Memory of a test, unless it is about memory.
pub(crate) const MEMORY: u64 = 256 << 20;

pub(crate) fn config(memory: u64, threads: usize) -> MachineConfig {
    MachineConfig {
        memory: Some(memory),
        threads: Some(threads),
        ..MachineConfig::default()
    }
}

pub(crate) fn machine() -> Machine {
    Machine::open(&config(MEMORY, 2), CancelToken::new()).expect("a machine")
}

/// Imports edges, a line each, in small batches.
pub(crate) fn import(folder: &Path, edges: &str, options: ImportConfig) -> PathBuf {
    let (file, graph) = (folder.join("edges.txt"), folder.join("graph"));
    std::fs::write(&file, edges).expect("room for edges");
    let options = ImportConfig {
        batch_size: options.batch_size.or(Some(64)),
        ..options
    };
    let done = machine().import(&[file], &graph, &options, &unwatched());
    done.expect("a graph");
    graph
}

/// Does the same work in the sessions of some ranks, and returns what rank 0 has.
pub(crate) fn on_ranks<T>(
    graph: &Path,
    ranks: usize,
    work: impl Fn(Session) -> Result<T, Error> + Sync,
) -> Result<T, Error> {
    let rank = |machine: &Machine| {
        let graph = machine.graph(graph)?;
        work(machine.session(&graph, Default::default(), &unwatched())?)
    };
    let (config, stop) = (config(MEMORY, 2 * ranks), CancelToken::new());
    run_on_ranks(&config, ranks, &stop, rank, |machine| {
        rank(machine).map(drop)
    })
}

/// The id and the value of every vertex, at rank 0.
pub(crate) fn values<T: ResultScalar>(
    session: &mut Session,
    array: VertexArray<T>,
) -> Result<Vec<(String, T)>, Error> {
    let mut all = Vec::new();
    session.each_value(array, |id, value| all.push((id.to_string(), value)))?;
    Ok(all)
}

/// The ids of the members of a set on all ranks, one rank after the other.
pub(crate) fn members(
    session: &mut Session,
    set: &ActiveSet,
    into: &Mutex<Vec<String>>,
) -> Result<(), Error> {
    let mut own = Vec::new();
    set.for_each(|v| own.push(v))?;
    for v in own {
        let id = session.id_of(v)?.to_string();
        into.lock().expect("no panic").push(id);
    }
    Ok(())
}
