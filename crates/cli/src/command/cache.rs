//! `graphmill cache`: the graphs that runs keep beside files of edges.

use std::io::Write;

use graphmill::advanced::CachedGraph;
use graphmill::{CancelToken, Machine};
use serde_json::{json, to_string_pretty};

use crate::args::stored::{CacheArgs, CacheCommand};
use crate::exit_code::DONE;
use crate::notice::complain;
use crate::size;

pub(crate) fn run(args: CacheArgs, stop: &CancelToken) -> anyhow::Result<u8> {
    let (places, clears) = match args.command {
        CacheCommand::List(places) => (places, false),
        CacheCommand::Clear(places) => (places, true),
    };
    let machine = Machine::with_one_thread(stop)?;
    let mut graphs: Vec<CachedGraph> = Vec::new();
    for path in &places.paths {
        graphs.extend(machine.cached_graphs(path)?);
    }
    if clears {
        let mut removed = Vec::new();
        for graph in graphs {
            match machine.remove_cached(&graph)? {
                true => removed.push(graph),
                false => complain(&format!(
                    "{} stays: a run works on it",
                    graph.path.display()
                )),
            }
        }
        graphs = removed;
    }
    if places.json {
        let graphs = graphs.iter().map(|graph| {
            json!({
                "graph": graph.path.display().to_string(),
                "input": graph.input.display().to_string(),
                "bytes": graph.bytes,
            })
        });
        return super::print_json(to_string_pretty(&graphs.collect::<Vec<_>>()));
    }
    let mut out = std::io::stdout().lock();
    for graph in &graphs {
        let bytes = size::text(graph.bytes);
        writeln!(out, "{bytes:>12}  {}", graph.path.display())?;
    }
    let bytes = size::text(graphs.iter().map(|graph| graph.bytes).sum());
    let done = if clears { " removed" } else { "" };
    complain(&format!("{} graphs, {bytes}{done}", graphs.len()));
    Ok(DONE)
}
