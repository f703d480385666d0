//! The k-core of an undirected graph, as a vertex program that runs in any memory.
//!
//! The k-core is the largest part of a graph in which each vertex has k neighbours or more (Seidman, Social Networks 1983). A vertex
//! with fewer neighbours leaves, which takes a neighbour from others, until no vertex has to leave.
//!
//! The program counts arcs: parallel edges and loops count as further neighbours. Import with `--duplicates first --self-loops drop` to
//! leave them out.
//!
//! Usage: `k_core GRAPH K RESULT [MEMORY in MiB]`

use std::error::Error;
use std::path::Path;

use graphmill::prelude::*;
use graphmill::{
    CancelToken, CheckpointConfig, Machine, MachineConfig, ProgramName, Session, unwatched,
};

/// Removes vertices with fewer than `k` neighbours.
struct KCore {
    k: u64,
}

impl VertexProgram for KCore {
    /// Its neighbours that are left; 0 for a vertex that has left.
    type Value = u64;
    /// How many neighbours left in the superstep before.
    type Message = u64;
    type Edge = ();
    type Aggregate = ();
    const IDENTITY: u64 = 0;
    const ORDER_INDEPENDENT: bool = true;

    fn compute(&self, me: &mut VertexContext<'_, Self>, left: Option<u64>) {
        if me.superstep() == 0 {
            *me.value = me.out_degree();
        }
        let is_in = me.superstep() == 0 || *me.value > 0;
        *me.value = me.value.saturating_sub(left.unwrap_or(0));
        if is_in && *me.value < self.k {
            *me.value = 0;
            me.broadcast(1);
        }
        me.vote_to_halt();
    }
    fn combine(&self, left: &mut u64, more: u64) {
        *left += more;
    }
}

/// Returns the neighbours of each vertex in the k-core, and the size of the core.
///
/// A vertex outside the core has 0.
///
/// # Errors
/// The graph is directed; disk or budget failed.
pub(crate) fn k_core(
    session: &mut Session,
    k: u64,
) -> Result<(VertexArray<u64>, u64), Box<dyn Error + Send + Sync>> {
    if !session.graph().symmetric() {
        return Err("the graph is directed; import it with --undirected".into());
    }
    let neighbours = session.vertex_array::<u64>("neighbours in the core")?;
    session.pregel(KCore { k: k.max(1) }, neighbours, PregelMode::Pull, None)?;
    let core = session.select_vertices(neighbours.read(), None, |_, count| *count > 0)?;
    Ok((neighbours, core.len()))
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [graph, k, result, memory @ ..] = &arguments[..] else {
        return Err("usage: k_core GRAPH K RESULT [MEMORY in MiB]".into());
    };
    let memory: Option<u64> = memory.first().map(|text| text.parse()).transpose()?;
    let config = MachineConfig {
        memory: memory.map(|mebibytes| mebibytes << 20),
        ..MachineConfig::default()
    };
    let machine = Machine::open(&config, CancelToken::new())?;
    let graph = machine.graph(Path::new(graph))?;

    // A run that is killed resumes, if it has rows on disk.
    let program = ProgramName::new("k-core 1").option("k", k);
    let kept = CheckpointConfig::default();
    let options = Default::default();
    let mut session =
        machine.checkpointed_session(&graph, options, &program, &kept, &unwatched())?;

    let (neighbours, size) = k_core(&mut session, k.parse()?)?;
    let output = Output {
        column: "neighbours",
        values: OutputValues::U64(neighbours),
        nullable: false,
    };
    session.write(&output, Path::new(result), |_| ())?;
    let passes = &session.metrics().passes;
    let read: u64 = passes.iter().map(|pass| pass.bytes_read).sum();
    println!(
        "{size} of {} vertices are in the {k}-core; {} passes read {} MiB; at most {} MiB of memory",
        graph.vertices(),
        passes.len(),
        read >> 20,
        machine.budget().peak() >> 20,
    );
    Ok(session.finish()?)
}
