//! `graphmill estimate`: what an import and a run would take, as tables for people or as JSON.

use std::collections::BTreeMap;
use std::io::Write;

use graphmill::CancelToken;
use graphmill::advanced::{default_memory, default_threads};
use graphmill::estimate::{
    Cluster, Cost, Estimate, EstimateRequest, Expected, GraphSource, ImportStats, Input, RunStats,
    StageCost,
};

use crate::args::estimate::{
    ClusterArgs, DiskSharing, EstimateArgs, ExpectedGraphArgs, ExpectedInput,
};
use crate::exit_code::DONE;
use crate::size;

/// Ranks that are listed one by one.
const LISTED: usize = 32;

pub(crate) fn run(args: EstimateArgs, stop: &CancelToken) -> anyhow::Result<u8> {
    let answer = request(&args)?.answer(stop)?;
    if args.json {
        return super::print_json(serde_json::to_string_pretty(&answer));
    }
    print(&answer, &mut std::io::stdout().lock())?;
    Ok(DONE)
}

/// Returns the question that the arguments ask.
pub(crate) fn request(args: &EstimateArgs) -> Result<EstimateRequest, graphmill::Error> {
    Ok(EstimateRequest {
        graph: match &args.graph {
            Some(path) => GraphSource::Stored(path.clone()),
            None => GraphSource::Expected(expected(&args.expected)),
        },
        algorithm: args.work.algorithm.clone(),
        options: BTreeMap::new(),
        iterations: args.work.iterations,
        dispatch: args.work.dispatch,
        executor: args.work.executor,
        updates: args.work.updates,
        combine: args.work.combine,
        placement: args.place.placement()?,
        cluster: cluster(&args.cluster),
    })
}

fn expected(args: &ExpectedGraphArgs) -> Expected {
    let vertices = args.vertices.unwrap_or(0);
    // As many bytes an id as all ids fit in.
    let pair_bytes = if vertices <= 1 << 32 { 8 } else { 16 };
    let record = (args.edge_data.as_ref()).and_then(|data| data.fields().kind());
    let record_bytes = record.map_or(0, |record| record.bytes() as u64);
    Expected {
        like: args.like,
        vertices,
        edges: args.edges.unwrap_or(0),
        directed: !args.undirected,
        input: match args.input {
            ExpectedInput::Files | ExpectedInput::Below => Input::Pairs(pair_bytes + record_bytes),
            ExpectedInput::Generated => Input::Drawn,
        },
        vertices_below: matches!(args.input, ExpectedInput::Below),
        weights: record.unwrap_or(args.weights),
        batch_size: args.batch_size,
        csr_ratio: args.csr_ratio,
        chunk_size: args.chunk_size,
    }
}

fn cluster(args: &ClusterArgs) -> Cluster {
    Cluster {
        ranks: args.ranks.into(),
        threads: args.threads.map_or_else(default_threads, usize::from),
        memory: args.memory.unwrap_or_else(default_memory),
        shared_disk: matches!(args.disks, DiskSharing::Shared),
        disk_rate: args.disk_rate,
        network_rate: args.network_rate,
        import_rate: args.import_rate,
        pass_rate: args.pass_rate,
    }
}

fn print(answer: &Estimate, out: &mut impl Write) -> std::io::Result<()> {
    let (graph, cluster) = (&answer.graph, &answer.cluster);
    let mut line = |what: &str, text: String| writeln!(out, "{what:<12}{text}");
    let counts = [graph.vertices, graph.arcs, graph.batches, graph.cells].map(size::grouped);
    let [vertices, arcs, batches, cells] = counts;
    let counts = format!("{vertices} vertices, {arcs} arcs, {batches} batches, {cells} cells");
    line("graph", counts)?;
    let of_arc = graph.disk_bytes as f64 / graph.arcs.max(1) as f64;
    line(
        "on disk",
        format!(
            "{}, {of_arc:.2} bytes an arc: {} of blocks, {} of indices, {} of {}, {} of all else",
            size::text(graph.disk_bytes),
            size::text(graph.block_bytes),
            size::text(graph.index_bytes),
            size::text(graph.weight_bytes),
            if graph.has_records {
                "edge data"
            } else {
                "weights"
            },
            size::text(graph.other_bytes)
        ),
    )?;
    let disks = match cluster.shared_disk {
        true => "one disk for all",
        false => "a disk each",
    };
    let rate = |rate: f64| size::text(rate as u64);
    line(
        "machines",
        format!(
            "{} ranks, each with {} threads and {} of memory; {disks} of {}/s; network {}/s each way",
            cluster.ranks,
            cluster.threads,
            size::text(cluster.memory),
            rate(cluster.disk_rate),
            rate(cluster.network_rate)
        ),
    )?;
    if let Some(import) = &answer.import {
        print_import(import, out)?;
    }
    print_run(&answer.run, out)?;
    print_ranks(answer, out)
}

/// The columns of a table of costs, under a title.
fn head(title: &str, out: &mut impl Write) -> std::io::Result<()> {
    writeln!(
        out,
        "\n{title:<22}{:>11}{:>11}{:>11}{:>14}",
        "read", "written", "sent", "seconds"
    )
}

fn row(name: &str, cost: &Cost, out: &mut impl Write) -> std::io::Result<()> {
    let bytes = [cost.bytes_read, cost.bytes_written, cost.bytes_sent].map(size::text);
    let ([read, written, sent], seconds, bound) = (bytes, cost.seconds, cost.bound());
    writeln!(
        out,
        "  {name:<20}{read:>11}{written:>11}{sent:>11}{seconds:>14.1}  {bound}"
    )
}

fn print_import(import: &ImportStats, out: &mut impl Write) -> std::io::Result<()> {
    head("import, all ranks", out)?;
    for step in &import.steps {
        row(step.name, &step.all, out)?;
    }
    row(import.all.name, &import.all.all, out)?;
    let sorted = match import.sorts_ids {
        true => "; ids are sorted on disk, as memory holds no bitmap of them",
        false => "",
    };
    let temporary = size::text(import.temporary_bytes);
    writeln!(out, "  temporary files: {temporary}{sorted}")
}

fn print_run(run: &RunStats, out: &mut impl Write) -> std::io::Result<()> {
    let passes = match run.iterations {
        1 => "1 pass".to_string(),
        count => format!("{count} passes"),
    };
    head(&format!("{}, {passes}", run.algorithm), out)?;
    for part in [&run.start, &run.pass, &run.all] {
        row(part.name, &part.all, out)?;
    }
    let place = |resident: bool| if resident { "in memory" } else { "on disk" };
    writeln!(
        out,
        "  rows {}, messages {}, {} of {} of cells in memory; temporary files: {}; the least memory that does: {} a rank, {} with a result",
        place(run.vertex_state_resident),
        place(run.messages_resident),
        size::text(run.cached_cell_bytes),
        size::text(run.cell_bytes),
        size::text(run.temporary_bytes),
        size::text(run.least_memory),
        size::text(run.least_memory_with_rows)
    )
}

fn print_ranks(answer: &Estimate, out: &mut impl Write) -> std::io::Result<()> {
    let import = answer.import.as_ref().map(|import| ("import", &import.all));
    let run = (answer.run.algorithm, &answer.run.all);
    for (what, StageCost { per_rank, .. }) in import.into_iter().chain([run]) {
        head(&format!("{what}, each rank"), out)?;
        for (rank, cost) in per_rank.iter().enumerate().take(LISTED) {
            row(&format!("rank {rank}"), cost, out)?;
        }
        if let Some(more) = per_rank.len().checked_sub(LISTED).filter(|more| *more > 0) {
            writeln!(out, "  and {more} more: --json has all")?;
        }
    }
    Ok(())
}
