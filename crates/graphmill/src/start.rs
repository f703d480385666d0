//! The options that all ranks of a job must be started with alike.
//!
//! Every rank does the same work on its own part, so a rank with another option makes a result that belongs to no command. The first
//! collective of a job compares the program, the command and each option by name. What a rank may take of its own machine is left out:
//! memory, threads, temporary files and how it reaches its disk.

use std::collections::hash_map::DefaultHasher;
use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::str::from_utf8;

use graphmill_ingest::TextOptions;

use crate::config::Config;
use crate::error::Error;
use crate::import_config::ImportConfig;
use crate::machine::resources::Machine;

/// What a rank says first: of another program, nothing else is compared.
const PROGRAM: &str = concat!("graphmill ", env!("CARGO_PKG_VERSION"));

/// Options by name, each with a hash of its value: a list of files may be long.
pub(crate) struct StartOptions {
    lines: String,
}

impl StartOptions {
    /// The options of `graphmill run`.
    pub(crate) fn of_run(config: &Config) -> StartOptions {
        let Config {
            algorithm,
            program,
            options,
            input,
            import,
            output,
            metrics,
            top,
            summary,
            // They are counted by the fabric.
            ranks: _,
            trials,
            machine,
            executor,
            engine,
            checkpoints,
        } = config;
        let mut start = StartOptions::of("run");
        start.add("algorithm", algorithm);
        for (name, value) in options {
            start.add(&format!("--{name}"), value);
        }
        let program = program.as_ref().map(|program| &program.identity);
        start.add("the program", &program);
        start.add("input", input);
        start.add("--output", output);
        start.add("--metrics", metrics);
        start.add("--top", top);
        start.add("--quiet or --json", summary);
        start.add("--trials", trials);
        start.add("--place or --slow-tier", &machine.placement);
        start.add("--simulate-slow-tier", &machine.charge);
        start.add("--executor", executor);
        start.add("--updates", &engine.updates);
        start.add("--window", &engine.window);
        start.add("--steal", &engine.steal);
        start.add("the options of --executor bucket", &engine.buckets);
        start.add("--direction", &engine.kernel);
        start.add("--sparse", &engine.sparse);
        start.add("--gamma", &engine.gamma);
        start.add("--filter-ratio", &engine.filter_ratio);
        start.add("--alpha", &engine.alpha);
        start.add("--dispatch", &engine.dispatch);
        start.add("--combiner", &engine.combiner);
        start.add("--place edges", &engine.edges);
        start.add("--checkpoint-dir", &checkpoints.folder);
        start.add("--checkpoint-every", &checkpoints.every);
        start.add("--checkpoints", &checkpoints.keep);
        start.add("--resume", &checkpoints.resume);
        start.reading(import);
        start
    }

    /// The options of `graphmill import`.
    pub(crate) fn of_import(
        inputs: &[PathBuf],
        graph: &Path,
        config: &ImportConfig,
        metrics: Option<&Path>,
    ) -> StartOptions {
        let mut start = StartOptions::of("import");
        start.add("input", &inputs);
        start.add("--output", &graph);
        start.add("--metrics", &metrics);
        start.reading(config);
        start
    }

    fn of(command: &str) -> StartOptions {
        let lines = String::from(PROGRAM);
        let mut start = StartOptions { lines };
        start.add("command", &command);
        start
    }

    /// How edges are read and stored.
    fn reading(&mut self, config: &ImportConfig) {
        let ImportConfig {
            format,
            ids,
            id_type,
            vertices_below,
            weights,
            text:
                TextOptions {
                    source_column,
                    target_column,
                    weight_column,
                    edge_data,
                    header,
                    delimiter,
                    quote,
                    comments,
                },
            on_error,
            directed,
            duplicates,
            self_loops,
            vertices,
            reverse,
            order,
            layout,
            chunk_size,
            edge_vertices,
            batch_size,
            csr_ratio,
            keep_every,
        } = config;
        self.add("--format", format);
        self.add("--ids", &(ids, id_type));
        self.add("--vertices-below", vertices_below);
        self.add("--weights", weights);
        self.add("--source-column", source_column);
        self.add("--target-column", target_column);
        self.add("--weight-column", weight_column);
        self.add("--edge-data", edge_data);
        self.add("--header", header);
        self.add("--delimiter", delimiter);
        self.add("--quote", quote);
        self.add("--comments", comments);
        self.add("--on-error", on_error);
        self.add("--undirected", directed);
        self.add("--duplicates", duplicates);
        self.add("--self-loops", self_loops);
        self.add("--vertices", vertices);
        self.add("--reverse", reverse);
        self.add("--order", order);
        self.add("--layout", layout);
        self.add("--chunk-size", chunk_size);
        self.add("--edge-vertices", edge_vertices);
        self.add("--batch-size", batch_size);
        self.add("--csr-ratio", csr_ratio);
        self.add("--checkpoints or --checkpoint-every", keep_every);
    }

    fn add(&mut self, name: &str, value: &impl Debug) {
        let mut hasher = DefaultHasher::new();
        format!("{value:?}").hash(&mut hasher);
        self.lines += &format!("\n{name}\t{:016x}", hasher.finish());
    }
}

/// The name of the first line that differs.
fn difference(first: &str, other: &str) -> Option<String> {
    let name = |line: &str| line.split('\t').next().unwrap_or_default().to_string();
    let (mut first, mut other) = (first.lines(), other.lines());
    if first.next() != other.next() {
        return Some("version".into());
    }
    loop {
        return match (first.next(), other.next()) {
            (None, None) => None,
            (Some(one), Some(same)) if one == same => continue,
            // Options come in one order: a name that is not next at the other rank is an option that it lacks.
            (Some(one), Some(another)) if name(one) > name(another) => Some(name(another)),
            (Some(one), _) => Some(name(one)),
            (None, Some(more)) => Some(name(more)),
        };
    }
}

impl Machine {
    /// Refuses ranks that were started differently: the first collective of a job.
    ///
    /// # Errors
    /// Returns `RanksDiffer` on every rank if a rank has another program or option than rank 0.
    pub(crate) fn check_same_start(&self, options: &StartOptions) -> Result<(), Error> {
        let of_ranks = self.gather(options.lines.as_bytes())?;
        let lines = |rank: usize| from_utf8(&of_ranks[rank]).unwrap_or_default();
        let differs = |rank| Some((rank, difference(lines(0), lines(rank))?));
        match (0..of_ranks.len()).find_map(differs) {
            None => Ok(()),
            Some((rank, option)) => Err(Error::RanksDiffer { rank, option }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_of_starts_names_the_option() {
        let of = |config: Config| StartOptions::of_run(&config).lines;
        let base = || Config::new("pagerank", "k.el");
        let differs = |other: Config| difference(&of(base()), &of(other));
        assert_eq!(differs(base()), None);
        let damping = base().option("damping", "0.5");
        assert_eq!(differs(damping.clone()).as_deref(), Some("--damping"));
        assert_eq!(
            difference(&of(damping), &of(base())).as_deref(),
            Some("--damping")
        );
        let [mut import, mut output, mut resume] = [base(), base(), base()];
        import.import.directed = false;
        output.output = Some("other.csv".into());
        resume.checkpoints.resume = true;
        assert_eq!(differs(import).as_deref(), Some("--undirected"));
        assert_eq!(differs(output).as_deref(), Some("--output"));
        assert_eq!(differs(resume).as_deref(), Some("--resume"));
        let input = Config::new("pagerank", "l.el");
        assert_eq!(differs(input).as_deref(), Some("input"));
        let algorithm = Config::new("wcc", "k.el");
        assert_eq!(differs(algorithm).as_deref(), Some("algorithm"));
        for (name, other) in [
            ("version", "graphmill 0.0.0"),
            ("version", ""),
            ("command", &StartOptions::of("import").lines),
        ] {
            assert_eq!(difference(&of(base()), other).as_deref(), Some(name));
        }
    }
}
