//! `graphmill run`: an algorithm on a stored graph or on edges; a short account on stdout, the result in a file.

use std::io::Write;
use std::process::ExitCode;

use graphmill::{
    Charge, Checkpoints, Combiner, Config, Every, KernelChoice, MachineConfig, MpiJob, Placement,
    Plan, SeekChoice, Stop, Tuning, Watcher,
};

use crate::args::{self, Combining, Direction, Experiments, Recovery, Run, Seek, Tiers};
use crate::{progress, size};

use super::options;

pub(crate) fn run(args: Run, stop: &Stop) -> anyhow::Result<ExitCode> {
    let common = args.common;
    let tiers = &common.tiers;
    let placement = Placement::parse(&tiers.place, tiers.slow_tier.as_deref())
        .map_err(graphmill::Error::from)?;
    let defaults = Config::new(args.algorithm, common.input);
    let config = Config {
        options: args.options,
        import: options::reading(&common.reading),
        output: common.output.clone(),
        metrics: common.metrics,
        top: common.top.unwrap_or(0),
        machine: MachineConfig {
            placement,
            charge: charge(tiers)?,
            ..options::machine(&common.machine)
        },
        tuning: tuning(&common.experiments),
        trials: common.experiments.trials,
        ranks: common.ranks.into(),
        checkpoints: checkpoints(&common.recovery)?,
        ..defaults
    };
    let watcher = progress::watcher(common.machine.quiet);
    let run = match MpiJob::of_environment() {
        None => Plan::new(config)?.run(stop, &watcher)?,
        Some(job) => {
            let Some(run) = as_rank(&job, config, &common.machine, stop, &watcher)? else {
                return Ok(ExitCode::SUCCESS);
            };
            run
        }
    };
    // The bar goes before the account comes.
    drop(watcher);

    let mut out = std::io::stdout().lock();
    let width = run
        .top
        .iter()
        .map(|row| row.vertex.chars().count())
        .max()
        .unwrap_or(0)
        .max("vertex".len());
    if !run.top.is_empty() {
        writeln!(out, "{:<width$}  {}", "vertex", run.column)?;
    }
    for row in &run.top {
        writeln!(out, "{:<width$}  {}", row.vertex, row.value)?;
    }
    if let (Some(path), Some(bytes)) = (&common.output, run.result_bytes) {
        writeln!(out, "{}: {}", path.display(), size::text(bytes))?;
    }
    let passes = run.metrics.passes();
    writeln!(
        out,
        "{} vertices, {} arcs, {} passes; {:.2} s ({:.2} s to open, {:.2} s to load edges, {:.2} s to write), {} of memory at most",
        size::grouped(run.vertices),
        size::grouped(run.edges),
        size::grouped(passes),
        run.seconds.open + run.seconds.load + run.seconds.run + run.seconds.write,
        run.seconds.open,
        run.seconds.load,
        run.seconds.write,
        size::text(run.peak_memory)
    )?;
    Ok(ExitCode::SUCCESS)
}

/// What this process does as a rank of a job; only rank 0 has a run to tell of.
fn as_rank(
    job: &MpiJob,
    config: Config,
    args: &args::Machine,
    stop: &Stop,
    watcher: &Watcher,
) -> anyhow::Result<Option<graphmill::Run>> {
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

fn charge(args: &Tiers) -> Result<Option<Charge>, graphmill::Error> {
    match (args.charge, args.dram_bandwidth) {
        (args::Charge::None, None) => Ok(None),
        (args::Charge::None, Some(_)) => Err(graphmill::Error::Meaningless {
            option: "--dram-bandwidth",
            needs: "--charge paper",
        }),
        (args::Charge::Paper, bandwidth) => Ok(Some(Charge {
            dram_bandwidth: match bandwidth {
                Some(bytes) => bytes as f64,
                None => Charge::PAPER.dram_bandwidth,
            },
            ..Charge::PAPER
        })),
    }
}

fn checkpoints(args: &Recovery) -> Result<Checkpoints, graphmill::Error> {
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
    // Whoever asks for versions wants them of rows in memory too.
    let is_asked = args.checkpoint_dir.is_some() || args.resume || args.checkpoints.is_some();
    let usual = match is_asked {
        true => Every::Usual,
        false => Every::Paged,
    };
    Ok(Checkpoints {
        folder: args.checkpoint_dir.clone(),
        every: args.checkpoint_every.unwrap_or(usual),
        keep: args.checkpoints.unwrap_or(1).into(),
        resume: args.resume,
    })
}

fn tuning(args: &Experiments) -> Tuning {
    Tuning {
        kernel: match args.direction {
            Direction::Auto => KernelChoice::Auto,
            Direction::Scatter => KernelChoice::Scatter,
            Direction::Gather => KernelChoice::Gather,
        },
        combiner: match args.combiner {
            Combining::Auto => Combiner::Auto,
            Combining::Hybrid => Combiner::Hybrid,
            Combining::Own => Combiner::Own,
        },
        seek: match args.seek {
            Seek::Auto => SeekChoice::Auto,
            Seek::Never => SeekChoice::Never,
            Seek::Always => SeekChoice::Always,
        },
        gamma: args.gamma.unwrap_or(Tuning::default().gamma),
        filter_ratio: args.filter_ratio,
        alpha: args.alpha,
        dispatch: options::dispatch(args.dispatch),
        ..Tuning::default()
    }
}
