//! `graphmill generate`: a graph by rule, to a stored graph or a file of edges.

use std::fmt::Write;

use graphmill::generate::{Generated, Generation, GraphRule};
use graphmill::{CancelToken, EdgeKind, ImportConfig, Machine};
use serde_json::{json, to_string_pretty};

use crate::args::generate::{GenerateArgs, GenerateOutputArgs, GenerateRule};
use crate::exit_code::DONE;
use crate::{progress, size};

use super::options;

pub(crate) fn run(args: GenerateArgs, stop: &CancelToken) -> anyhow::Result<u8> {
    let (rule, output) = rule(args.rule);
    let weights = match output.weighted {
        true => EdgeKind::F32,
        false => output.weights,
    };
    let edges = ImportConfig {
        weights,
        ..Default::default()
    };
    let config = options::storing(&output.storing, options::edges(&output.edges, edges));
    let graph = Generated::new(rule, output.seed, weights).map_err(graphmill::Error::from)?;
    let machine = Machine::open(&options::machine(&output.machine), stop.clone())?;
    let watcher = progress::watcher(output.machine.quiet);
    let generation = machine.generate(&graph, &output.output, &config, &watcher)?;
    // The bar goes before the account comes.
    drop(watcher);
    let mut out = format!("{}\n", output.output.display());
    let summary = match generation {
        Generation::Graph(report) => {
            super::import::print(&report, config.directed, "edges drawn", &mut out)?;
            super::import::summary(&report, &output.output)
        }
        Generation::File { edges, bytes } => {
            let (count, length) = (size::grouped(edges), size::text(bytes));
            writeln!(out, "  {count} edges, {length}")?;
            let file = output.output.display().to_string();
            json!({"file": file, "edges": edges, "bytes": bytes})
        }
    };
    super::account(output.machine.quiet, &out);
    match output.json {
        true => super::print_json(to_string_pretty(&summary)),
        false => Ok(DONE),
    }
}

/// Returns the rule, and where its graph goes.
fn rule(rule: GenerateRule) -> (GraphRule, GenerateOutputArgs) {
    match rule {
        GenerateRule::Kronecker {
            scale,
            degree,
            labels,
            output,
        } => {
            let rule = GraphRule::Kronecker {
                scale,
                degree,
                labels,
            };
            (rule, output)
        }
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
        GenerateRule::Consecutive {
            vertices,
            degree,
            output,
        } => (GraphRule::Consecutive { vertices, degree }, output),
        GenerateRule::Scattered {
            vertices,
            degree,
            gap,
            output,
        } => {
            let rule = GraphRule::Scattered {
                vertices,
                degree,
                gap,
            };
            (rule, output)
        }
    }
}
