//! `graphmill import`: files of edges to a stored graph, and an account of every line on stderr.

use std::fmt::Write;
use std::path::Path;

use graphmill::advanced::{Spool, run_as_rank, run_on_ranks};
use graphmill::{CancelToken, ImportConfig, ImportReport, Machine, MpiJob, ProgressFn, unwatched};
use serde_json::{Value, json, to_string_pretty};

use crate::args::import::ImportArgs;
use crate::exit_code::DONE;
use crate::{progress, size};

use super::options;

pub(crate) fn run(args: ImportArgs, stop: &CancelToken) -> anyhow::Result<u8> {
    let (machine, ranks) = (options::machine(&args.machine), args.ranks.into());
    let spool = Spool::of(&args.input, &machine, Some(&args.output), stop)?;
    let input = spool.inputs();
    let mut config = config(&args);
    if spool.is_used() {
        // Standard input is not there a second time.
        config.keep_every = None;
    }
    let watcher = progress::watcher(args.machine.quiet);
    let import = |machine: &Machine, watcher: &ProgressFn| match &args.metrics {
        Some(path) => machine.import_measured(input, &args.output, &config, path, watcher),
        None => machine.import(input, &args.output, &config, watcher),
    };
    let first = |machine: &Machine| import(machine, &watcher);
    let others = |machine: &Machine| import(machine, &unwatched()).map(drop);
    let report = match MpiJob::of_environment() {
        None => run_on_ranks(&machine, ranks, stop, first, others)?,
        Some(job) => {
            let fabric = options::start(&job, ranks, stop)?;
            options::advise(&job, fabric.as_ref(), &args.machine);
            let share = job.share(machine);
            if fabric.rank() > 0 {
                run_as_rank(fabric, &share, stop, others)?;
                return Ok(DONE);
            }
            run_as_rank(fabric, &share, stop, first)?
        }
    };
    // The bar goes before the account comes.
    drop(watcher);
    let mut text = format!("{}\n", args.output.display());
    print(&report, config.directed, "lines read", &mut text)?;
    super::account(args.machine.quiet, &text);
    match args.json {
        true => super::print_json(to_string_pretty(&summary(&report, &args.output))),
        false => Ok(DONE),
    }
}

/// Returns the options of the import that the arguments ask for.
pub(crate) fn config(args: &ImportArgs) -> ImportConfig {
    ImportConfig {
        keep_every: (args.keeping.checkpoints > 0).then_some(args.keeping.checkpoint_every),
        ..options::storing(&args.storing, options::reading(&args.reading))
    }
}

/// The account of an import as JSON.
pub(crate) fn summary(report: &ImportReport, graph: &Path) -> Value {
    json!({
        "graph": graph.display().to_string(),
        "vertices": report.vertices,
        "arcs": report.arcs,
        "edges": report.edges_kept,
        "lines": report.lines,
        "comments": report.comments,
        "blank": report.blank,
        "skipped": report.skipped,
        "dropped_self_loops": report.dropped_self_loops,
        "dropped_duplicates": report.dropped_duplicates,
        "seconds": report.total().as_secs_f64(),
        "peak_memory": report.peak_memory,
        "temporary_bytes": report.temporary_bytes,
    })
}

/// Prints the report of an import or generation without zero counts; `came` names its edges.
pub(super) fn print(
    report: &ImportReport,
    directed: bool,
    came: &str,
    out: &mut impl Write,
) -> std::fmt::Result {
    let mut line = |what: &str, count: u64, always: bool| match always || count > 0 {
        true => writeln!(out, "  {what:<24}{:>20}", size::grouped(count)),
        false => Ok(()),
    };
    line(came, report.lines, true)?;
    line("- comments, headers", report.comments, false)?;
    line("- empty", report.blank, false)?;
    line("- malformed, skipped", report.skipped, false)?;
    line("- self-loops dropped", report.dropped_self_loops, false)?;
    line("- duplicates dropped", report.dropped_duplicates, false)?;
    line("= edges", report.edges_kept, true)?;
    line("stored arcs", report.arcs, !directed)?;
    if report.vertex_lines_skipped > 0 {
        line("lines of vertices", report.vertex_lines, true)?;
        line("- malformed, skipped", report.vertex_lines_skipped, true)?;
    }
    line("vertices", report.vertices, true)?;
    let seconds = report.total().as_secs_f64();
    let rate = report.arcs as f64 / seconds.max(1e-9) / 1e6;
    writeln!(
        out,
        "  {seconds:.1} s, {rate:.1} M arcs/s, {} of memory at most, {} of temporary files",
        size::text(report.peak_memory),
        size::text(report.temporary_bytes)
    )
}
