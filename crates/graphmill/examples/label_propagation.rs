//! Label propagation from some labelled vertices, as a vertex program.
//!
//! In each round a vertex takes the label that most of its neighbours have, the smallest of several (Raghavan et al., Physical Review
//! E 2007). Here some vertices, the seeds, have labels from the start and keep them (Zhu and Ghahramani, CMU-CALD-02-107).
//!
//! Usage: `label_propagation GRAPH SEEDS ROUNDS RESULT`, where SEEDS is a file of ids and labels from 0 to 7

use std::error::Error;
use std::path::Path;

use graphmill::prelude::*;
use graphmill::{CancelToken, Machine, MachineConfig, Session, unwatched};

/// Labels are numbers below this.
const LABELS: usize = 8;
/// A vertex without a label.
const NONE: u32 = u32::MAX;

/// A vertex tells its neighbours its label, and takes the label of most of them.
struct Propagate {
    rounds: u64,
}

impl VertexProgram for Propagate {
    /// The label, and 1 for a seed.
    type Value = [u32; 2];
    /// How many neighbours have each label.
    type Message = [u32; LABELS];
    type Edge = ();
    type Aggregate = ();
    const IDENTITY: [u32; LABELS] = [0; LABELS];
    const ORDER_INDEPENDENT: bool = true;

    fn compute(&self, me: &mut VertexContext<'_, Self>, votes: Option<[u32; LABELS]>) {
        let [label, is_seed] = *me.value;
        if let Some(votes) = votes.filter(|_| is_seed == 0) {
            let most = votes.iter().max().copied().unwrap_or(0);
            let first = votes.iter().position(|count| *count == most);
            *me.value = [first.map_or(label, |first| first as u32), 0];
        }
        if me.superstep() == self.rounds {
            return me.vote_to_halt();
        }
        let mut vote = [0; LABELS];
        if let Some(count) = vote.get_mut(me.value[0] as usize) {
            *count = 1;
            me.broadcast(vote);
        }
    }
    fn combine(&self, votes: &mut [u32; LABELS], more: [u32; LABELS]) {
        for (count, more) in votes.iter_mut().zip(more) {
            *count += more;
        }
    }
}

/// Returns the label of each vertex after some rounds; the greatest number for a vertex without one.
///
/// # Errors
/// The file of seeds does not fit the graph; a label is not below [`LABELS`]; disk or budget failed.
pub(crate) fn labels(
    session: &mut Session,
    seeds: &Path,
    rounds: u64,
) -> Result<VertexArray<u32>, Box<dyn Error + Send + Sync>> {
    let label = session.vertex_array::<u32>("label")?;
    session.process_vertices(label.write(), None, |_, label| *label = NONE)?;
    let seeds = session.read_values(seeds, label)?;
    let is_wrong = |_, label: &u32| *label as usize >= LABELS;
    if !session
        .select_vertices(label.read(), Some(&seeds), is_wrong)?
        .is_empty()
    {
        return Err("a label in the file of seeds is not a number from 0 to 7".into());
    }
    let state = session.vertex_array::<[u32; 2]>("labels and seeds")?;
    session.process_vertices((state.write(), label.read()), None, |_, (state, label)| {
        *state = [*label, u32::from(*label != NONE)]
    })?;
    session.pregel(Propagate { rounds }, state, PregelMode::Pull, None)?;
    session.process_vertices((label.write(), state.read()), None, |_, (label, state)| {
        *label = state[0]
    })?;
    Ok(label)
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [graph, seeds, rounds, result] = &arguments[..] else {
        return Err("usage: label_propagation GRAPH SEEDS ROUNDS RESULT".into());
    };
    let machine = Machine::open(&MachineConfig::default(), CancelToken::new())?;
    let graph = machine.graph(Path::new(graph))?;
    let mut session = machine.session(&graph, Default::default(), &unwatched())?;
    let label = labels(&mut session, Path::new(seeds), rounds.parse()?)?;
    let output = Output {
        column: "label",
        values: OutputValues::U32(label),
        nullable: true,
    };
    session.write(&output, Path::new(result), |_| ())?;
    Ok(())
}
