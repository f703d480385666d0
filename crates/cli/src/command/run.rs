//! `graphmill run`: an algorithm on a stored graph or on edges; rows and JSON on stdout, a short account on stderr, the result in a
//! file.

use std::fmt::Write;
use std::path::Path;

use graphmill::advanced::{BucketOptions, TierModel};
use graphmill::{
    CancelToken, CheckpointConfig, CheckpointInterval, Config, EngineOptions, MachineConfig,
    MpiJob, Plan, ProgressFn, Run, TopRow,
};
use serde_json::{json, to_string_pretty};

use crate::args;
use crate::args::checkpoint::RunCheckpointArgs;
use crate::args::tuning::{ExperimentArgs, TierArgs};
use crate::exit_code::DONE;
use crate::{progress, size};

use super::options;

pub(crate) fn run(args: args::run::RunArgs, stop: &CancelToken) -> anyhow::Result<u8> {
    let output = args.common.output.as_deref();
    if output.is_some_and(graphmill::advanced::is_stdout) {
        let printed = [
            ("--top", args.common.top.is_some()),
            ("--json", args.common.json),
        ];
        if let Some((option, _)) = printed.into_iter().find(|(_, is_given)| *is_given) {
            return Err(graphmill::Error::BothOnStdout { option }.into());
        }
    }
    let config = config(&args)?;
    let common = args.common;
    let watcher = progress::watcher(common.machine.quiet);
    let run = match MpiJob::of_environment() {
        None => Some(Plan::new(config)?.run(stop, &watcher)?),
        Some(job) => run_as_rank(&job, config, &common.machine, stop, &watcher)?,
    };
    let Some(run) = run else {
        return Ok(DONE);
    };
    // The bar goes before the account comes.
    drop(watcher);

    let text = account(&run, common.output.as_deref());
    super::account(common.machine.quiet, &text);
    match (common.json, &run.top[..]) {
        (true, _) => super::print_json(to_string_pretty(&json!({
            "algorithm": run.algorithm,
            "vertices": run.vertices,
            "arcs": run.arcs,
            "read": run.read,
            "passes": run.metrics.passes(),
            "seconds": run.seconds,
            "peak_memory": run.peak_memory,
            "result": common.output.map(|path| path.display().to_string()),
            "result_bytes": run.result_bytes,
            "summary": run.summary.json(),
        }))),
        (false, []) => Ok(DONE),
        (false, rows) => super::print(table(run.summary.columns, rows).as_bytes()),
    }
}

/// Returns the configuration of the run that the arguments ask for.
pub(crate) fn config(args: &args::run::RunArgs) -> Result<Config, graphmill::Error> {
    let common = &args.common;
    let tiers = &common.tiers;
    let placement = tiers.place.placement()?;
    Ok(Config {
        options: args.options.clone(),
        import: options::reading(&common.reading),
        output: common.output.clone(),
        metrics: common.metrics.clone(),
        top: common.top.unwrap_or(0),
        summary: common.json || !common.machine.quiet,
        machine: MachineConfig {
            placement,
            charge: charge(tiers)?,
            ..options::machine(&common.machine)
        },
        executor: common.experiments.executor,
        engine: engine(&common.experiments),
        trials: common.experiments.trials,
        ranks: common.ranks.into(),
        checkpoints: checkpoints(&common.recovery)?,
        ..Config::new(&args.algorithm, &common.input)
    })
}

/// Rows under their names, as people read them.
fn table([key, value]: [&str; 2], rows: &[TopRow]) -> String {
    let columns = |row: &TopRow| {
        let ends = std::iter::once(row.vertex.clone()).chain(row.destination.clone());
        ends.chain([row.value.clone()]).collect::<Vec<_>>()
    };
    let is_of_edges = rows.iter().any(|row| row.destination.is_some());
    let mut lines = vec![vec![key.to_string(), value.to_string()]];
    if is_of_edges {
        lines[0].insert(1, "destination".to_string());
    }
    lines.extend(rows.iter().map(columns));
    let mut text = String::new();
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    for line in &lines {
        let Some((last, cells)) = line.split_last() else {
            continue;
        };
        for (column, cell) in cells.iter().enumerate() {
            // A text takes whatever is written to it.
            let _ = write!(text, "{cell:<width$}  ", width = width(column));
        }
        let _ = writeln!(text, "{last}");
    }
    text
}

/// Returns the summary of a run: the result in a few numbers, its path, and the time and memory.
fn account(run: &Run, output: Option<&Path>) -> String {
    let summary = &run.summary;
    let mut text = String::new();
    let mut line = |line: String| text += &(line + "\n");
    if let Some(groups) = summary.groups {
        let sizes = summary.top.iter().take(5);
        let sizes = sizes.map(|row| format!("{} ({})", row.value, row.vertex));
        let sizes: Vec<String> = sizes.collect();
        let largest = match &sizes[..] {
            [] => String::new(),
            sizes => format!(
                "; the largest have {} vertices (the smallest id of each in parentheses)",
                sizes.join(", ")
            ),
        };
        let groups = size::grouped(groups);
        line(format!("{groups} {}s{largest}", summary.columns[0]));
    } else if run.top.is_empty() && !summary.top.is_empty() {
        line(table(summary.columns, &summary.top).trim_end().to_string());
    }
    if let Some(edges) = summary.edges {
        let trees = edges.trees.map(size::grouped);
        let trees = trees.map_or_else(String::new, |trees| format!(" in {trees} trees"));
        let count = size::grouped(edges.count);
        line(format!("{count} edges{trees}; weight {:?}", edges.weight));
    }
    if let Some(row) = &summary.numbers {
        for (name, number) in row.columns() {
            let number = number.text().unwrap_or_else(|| "undefined".to_string());
            line(format!("{name}: {number}"));
        }
    }
    if let Some(reached) = summary.reached {
        let (greatest, value) = (summary.greatest.as_ref(), summary.columns[1]);
        let greatest = greatest.map(|greatest| format!("; greatest {value}: {greatest}"));
        let [reached, vertices] = [reached, run.vertices].map(size::grouped);
        let greatest = greatest.unwrap_or_default();
        line(format!(
            "{reached} of {vertices} vertices reached{greatest}"
        ));
    }
    if let Some(convergence) = summary.convergence {
        line(format!(
            "{} iterations; residual {:.3e}, by which all values together changed in the last",
            size::grouped(convergence.iterations),
            convergence.residual
        ));
    }
    if let (Some(path), Some(bytes)) = (output, run.result_bytes) {
        line(format!("{}: {}", path.display(), size::text(bytes)));
    }
    line(format!(
        "{} vertices, {} arcs, {} passes; {:.2} s ({:.2} s to open, {:.2} s to load edges, {:.2} s to write), {} of memory at most",
        size::grouped(run.vertices),
        size::grouped(run.arcs),
        size::grouped(run.metrics.passes()),
        run.seconds.open + run.seconds.load + run.seconds.run + run.seconds.write,
        run.seconds.open,
        run.seconds.load,
        run.seconds.write,
        size::text(run.peak_memory)
    ));
    text
}

/// Runs this process as a rank of a job; only rank 0 returns a report.
fn run_as_rank(
    job: &MpiJob,
    config: Config,
    args: &args::machine::MachineArgs,
    stop: &CancelToken,
    watcher: &ProgressFn,
) -> anyhow::Result<Option<Run>> {
    let (machine, asked) = (job.share(config.machine.clone()), config.ranks);
    let plan = Plan::new(Config { machine, ..config })?;
    let fabric = options::start(job, asked, stop)?;
    options::advise(job, fabric.as_ref(), args);
    let is_first = fabric.rank() == 0;
    let quiet = graphmill::unwatched();
    let watcher = if is_first { watcher } else { &quiet };
    let run = plan.run_as(fabric, stop, watcher)?;
    Ok(is_first.then_some(run))
}

fn charge(args: &TierArgs) -> Result<Option<TierModel>, graphmill::Error> {
    match (args.simulate_slow_tier, args.dram_bandwidth) {
        (None, Some(_)) => Err(graphmill::Error::Meaningless {
            option: "--dram-bandwidth",
            needs: "--simulate-slow-tier paper",
        }),
        (charge, bandwidth) => Ok(charge.map(|charge| TierModel {
            dram_bandwidth: bandwidth.map_or(charge.dram_bandwidth, |bytes| bytes as f64),
            ..charge
        })),
    }
}

fn checkpoints(args: &RunCheckpointArgs) -> Result<CheckpointConfig, graphmill::Error> {
    let needs_some = [
        ("--resume", args.resume),
        ("--checkpoint-dir", args.checkpoint_dir.is_some()),
        ("--checkpoint-every", args.checkpoint_every.is_some()),
    ];
    if let Some((option, _)) = needs_some.into_iter().find(|(_, is_given)| *is_given)
        && args.checkpoints == Some(0)
    {
        return Err(graphmill::Error::Meaningless {
            option,
            needs: "--checkpoints 1 or more",
        });
    }
    // A user who asks for checkpoints wants them for rows in memory too.
    let is_asked = args.checkpoint_dir.is_some() || args.resume || args.checkpoints.is_some();
    let usual = match is_asked {
        true => CheckpointInterval::Usual,
        false => CheckpointInterval::Paged,
    };
    Ok(CheckpointConfig {
        folder: args.checkpoint_dir.clone(),
        every: args.checkpoint_every.unwrap_or(usual),
        keep: args.checkpoints.unwrap_or(1).into(),
        resume: args.resume,
    })
}

fn engine(args: &ExperimentArgs) -> EngineOptions {
    let defaults = EngineOptions::default();
    let buckets = BucketOptions {
        link: args.link,
        threads: args.bucket_threads,
        plain: args.plain_datagrams,
        combine: args.combine,
        rate: args.link_rate.map(|rate| rate as u64),
        address: args.datagram_address,
        // One string for the whole run.
        device: (args.dpdk_device.clone()).map(|device| &*device.leak()),
    };
    EngineOptions {
        kernel: args.direction,
        sparse: args.sparse,
        gamma: args.gamma.unwrap_or(defaults.gamma),
        filter_ratio: args.filter_ratio,
        alpha: args.alpha,
        dispatch: args.dispatch,
        combiner: args.combiner,
        updates: args.updates,
        window: args.window.map(usize::from),
        steal: args.steal,
        buckets: Some(buckets).filter(|given| *given != BucketOptions::default()),
        ..defaults
    }
}
