//! Connected components of an undirected graph by hash-min, as a vertex program (Capelli et al., iPregel).
//!
//! Usage: `hash_min GRAPH RESULT`

use std::error::Error;
use std::path::Path;

use graphmill::prelude::*;
use graphmill::{CancelToken, Machine, MachineConfig, Session, unwatched};

/// A vertex passes on the smallest label that reaches it.
struct HashMin;

impl VertexProgram for HashMin {
    type Value = u64;
    type Message = u64;
    type Edge = ();
    type Aggregate = ();
    const IDENTITY: u64 = u64::MAX;
    const ORDER_INDEPENDENT: bool = true;

    fn compute(&self, me: &mut VertexContext<'_, Self>, smallest: Option<u64>) {
        let label = match me.superstep() {
            0 => Some(*me.value),
            _ => smallest.filter(|label| *label < *me.value),
        };
        if let Some(label) = label {
            *me.value = label;
            me.broadcast(label);
        }
        me.vote_to_halt();
    }
    fn combine(&self, smallest: &mut u64, label: u64) {
        *smallest = (*smallest).min(label);
    }
}

/// Returns the component of each vertex: the ordinal of the smallest id in it.
///
/// # Errors
/// The graph is directed; disk or budget failed.
pub(crate) fn components(
    session: &mut Session,
) -> Result<VertexArray<u64>, Box<dyn Error + Send + Sync>> {
    if !session.graph().symmetric() {
        return Err("the graph is directed; import it with --undirected".into());
    }
    let component = session.vertex_array::<u64>("component")?;
    // A vertex starts with the ordinal of its own id, whatever the order of the graph's vertices.
    session.process_vertices(
        (component.write(), IdOrdinal),
        None,
        |_, (label, ordinal)| *label = ordinal,
    )?;
    session.pregel(HashMin, component, PregelMode::Pull, None)?;
    Ok(component)
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [graph, result] = &arguments[..] else {
        return Err("usage: hash_min GRAPH RESULT".into());
    };
    let machine = Machine::open(&MachineConfig::default(), CancelToken::new())?;
    let graph = machine.graph(Path::new(graph))?;
    let mut session = machine.session(&graph, Default::default(), &unwatched())?;
    let component = components(&mut session)?;
    let output = Output {
        column: "component",
        values: OutputValues::Ordinal64(component),
        nullable: false,
    };
    session.write(&output, Path::new(result), |_| ())?;
    Ok(())
}
