//! The least fare to each station by day, over edges that carry a record of fields.
//!
//! Usage: `day_trips GRAPH SOURCE RESULT`, with a graph of `graphmill import trips.csv -o GRAPH --edge-data fare:f32,hour:u8`

use std::error::Error;
use std::path::Path;

use graphmill::prelude::*;
use graphmill::{CancelToken, Machine, MachineConfig, Session, unwatched};

edge_record! {
    /// A trip; the graph has the same fields in the same order.
    struct Trip {
        fare: f32,
        hour: u8,
    }
}

/// A station passes on its least fare along the trips of the day.
#[derive(Clone, Copy)]
struct ByDay;

impl MonotoneProgram for ByDay {
    type Label = f64;
    type Edge = Trip;

    fn on_edge(&self, fare: f64, trip: Trip) -> f64 {
        match trip.hour {
            6..22 => fare + f64::from(trip.fare),
            _ => f64::INFINITY,
        }
    }
}

/// Returns the least fare from station `source` to each station; infinity without a way.
///
/// # Errors
/// The graph has no such station, or edges with other fields; disk or budget failed.
pub(crate) fn day_trips(
    session: &mut Session,
    source: &str,
) -> Result<VertexArray<f64>, graphmill::Error> {
    let source = session.index_of(source)?;
    let fares = session.vertex_array::<f64>("fare")?;
    session.process_vertices(fares.write(), None, |v, fare| {
        *fare = if v == source { 0.0 } else { f64::INFINITY };
    })?;
    let mut first = session.empty_set()?;
    first.insert(source)?;
    session.run_to_fixpoint(&ByDay, fares, first, Direction::Forward)?;
    Ok(fares)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [graph, source, result] = &arguments[..] else {
        return Err("usage: day_trips GRAPH SOURCE RESULT".into());
    };
    let machine = Machine::open(&MachineConfig::default(), CancelToken::new())?;
    let graph = machine.graph(Path::new(graph))?;
    let mut session = machine.session(&graph, Default::default(), &unwatched())?;
    let fares = day_trips(&mut session, source)?;
    let output = Output {
        column: "fare",
        values: OutputValues::F64(fares),
        nullable: true,
    };
    session.write(&output, Path::new(result), |_| ())?;
    Ok(())
}
