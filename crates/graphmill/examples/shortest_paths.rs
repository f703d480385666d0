//! Single-source shortest paths as a vertex program (Capelli et al., iPregel; Malewicz et al., SIGMOD 2010).
//!
//! Usage: `shortest_paths GRAPH SOURCE RESULT`

use std::error::Error;
use std::path::Path;

use graphmill::prelude::*;
use graphmill::{CancelToken, Machine, MachineConfig, Session, unwatched};

/// A vertex that comes closer to the source tells its neighbours.
struct ShortestPaths {
    source: u64,
}

impl VertexProgram for ShortestPaths {
    type Value = f64;
    type Message = f64;
    /// The length of an arc: its weight, or 1.
    type Edge = f64;
    type Aggregate = ();
    const IDENTITY: f64 = f64::INFINITY;
    const ORDER_INDEPENDENT: bool = true;

    fn compute(&self, me: &mut VertexContext<'_, Self>, nearest: Option<f64>) {
        if me.superstep() == 0 {
            *me.value = f64::INFINITY;
        }
        let is_source = me.superstep() == 0 && me.index() == self.source;
        let distance = if is_source { Some(0.0) } else { nearest };
        if let Some(distance) = distance.filter(|distance| *distance < *me.value) {
            *me.value = distance;
            me.broadcast(distance);
        }
        me.vote_to_halt();
    }
    fn combine(&self, nearest: &mut f64, distance: f64) {
        *nearest = nearest.min(distance);
    }
    fn on_edge(&self, distance: f64, length: f64) -> f64 {
        distance + length
    }
}

/// Returns the distance of each vertex from the vertex with the id `source`; infinity without a path.
///
/// # Errors
/// The graph has no such vertex; disk or budget failed.
pub(crate) fn shortest_paths(
    session: &mut Session,
    source: &str,
) -> Result<VertexArray<f64>, graphmill::Error> {
    let source = session.index_of(source)?;
    let distance = session.vertex_array::<f64>("distance")?;
    session.pregel(ShortestPaths { source }, distance, PregelMode::Pull, None)?;
    Ok(distance)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [graph, source, result] = &arguments[..] else {
        return Err("usage: shortest_paths GRAPH SOURCE RESULT".into());
    };
    let machine = Machine::open(&MachineConfig::default(), CancelToken::new())?;
    let graph = machine.graph(Path::new(graph))?;
    let mut session = machine.session(&graph, Default::default(), &unwatched())?;
    let distance = shortest_paths(&mut session, source)?;
    let output = Output {
        column: "distance",
        values: OutputValues::F64(distance),
        nullable: true,
    };
    session.write(&output, Path::new(result), |_| ())?;
    Ok(())
}
