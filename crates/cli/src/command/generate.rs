//! `graphmill generate`: a graph by rule, to a stored graph or a file of edges.

use std::io::Write;
use std::process::ExitCode;

use graphmill::{EdgeKind, Generated, Generation, GraphRule, ImportConfig, Machine, Stop};

use crate::args::{Generate, GenerateRule};
use crate::{progress, size};

use super::options;

pub(crate) fn run(args: Generate, stop: &Stop) -> anyhow::Result<ExitCode> {
    let (rule, output) = match args.rule {
        GenerateRule::Kronecker {
            scale,
            degree,
            output,
        } => (GraphRule::Kronecker { scale, degree }, output),
        GenerateRule::Uniform {
            vertices,
            edges,
            output,
        } => (GraphRule::Uniform { vertices, edges }, output),
        GenerateRule::Grid {
            rows,
            columns,
            output,
        } => (GraphRule::Grid { rows, columns }, output),
    };
    let reading = ImportConfig {
        weights: if output.weighted {
            EdgeKind::F32
        } else {
            EdgeKind::None
        },
        directed: !output.undirected,
        ..ImportConfig::default()
    };
    let config = options::storing(&output.storing, reading);
    let graph =
        Generated::new(rule, output.seed, output.weighted).map_err(graphmill::Error::from)?;
    let machine = Machine::open(&options::machine(&output.machine), stop.clone())?;
    let watcher = progress::watcher(output.machine.quiet);
    let generation = machine.generate(&graph, &output.output, &config, &watcher)?;
    // The bar goes before the account comes.
    drop(watcher);
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", output.output.display())?;
    match generation {
        Generation::Graph(report) => super::import::print(&report, config.directed, &mut out)?,
        Generation::File { edges, bytes } => {
            writeln!(
                out,
                "  {} edges, {}",
                size::grouped(edges),
                size::text(bytes)
            )?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
