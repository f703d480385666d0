//! Real graphs with known answers, through the command as a user calls it.
//!
//! The data is a collection that does not come with the repository: the folder that GRAPHMILL_DATA names, or `shared/data` beside
//! the repository. Without it every test says so and passes.
//!
//! Each two of graph, order, method, way and batch size (where batches are few) meet in some run, and smaller batches are run in the usual
//! way. GRAPHMILL_SOAK=1 runs the full product, GRAPHMILL_SOAK=2/6 that of every sixth graph from the third on. The stream layout and the
//! bucket executor have pairs of their own, in `chunks` and `buckets`.

#![expect(
    clippy::disallowed_methods,
    reason = "tests read reference files and write inputs beside the ports"
)]

mod answers;
mod buckets;
mod chunks;
mod command;
mod forests;
mod graphs;
mod judges;
mod ldbc;
mod npz;
mod pairs;
mod run;
mod sums;
mod ways;
mod webgraph;

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::answers::Answers;
use crate::graphs::Graph;

/// Writes to stderr past the test harness's capture: a skip must show when tests pass.
pub(crate) fn say(what: &str) {
    writeln!(std::io::stderr(), "{what}").expect("stderr takes a line");
}

/// True if batches of `size` are too many: the case would be slow, and is skipped.
///
/// GRAPHMILL_BATCHES_MAX may allow more.
pub(crate) fn has_too_many_batches(case: &str, vertices: u64, size: u64) -> bool {
    let text = std::env::var("GRAPHMILL_BATCHES_MAX").ok();
    let most = text.map_or(5_000, |text| {
        text.parse().expect("GRAPHMILL_BATCHES_MAX is a number")
    });
    let is_skipped = vertices.div_ceil(size) > most;
    if is_skipped {
        say(&format!(
            "skipped: {case}: more than {most} batches; set GRAPHMILL_BATCHES_MAX to allow them"
        ));
    }
    is_skipped
}

/// Whether everything is run with everything.
pub(crate) fn is_soak() -> bool {
    std::env::var_os("GRAPHMILL_SOAK").is_some()
}

/// Whether a graph is run with everything: GRAPHMILL_SOAK asks for all graphs, or for a part.
pub(crate) fn is_soaked(number: usize) -> bool {
    let Ok(asked) = std::env::var("GRAPHMILL_SOAK") else {
        return false;
    };
    let part = asked.split_once('/').map(|(part, parts)| {
        let [part, parts] = [part, parts].map(str::parse::<usize>);
        let numbers = part.ok().zip(parts.ok().filter(|parts| *parts > 0));
        numbers.expect("GRAPHMILL_SOAK is 1, or a part such as 2/6")
    });
    part.is_none_or(|(part, parts)| number % parts == part)
}

/// The folder of the collection, unless there is none.
pub(crate) fn data() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = std::env::var_os("GRAPHMILL_DATA").map_or(beside, PathBuf::from);
    let found = folder.join("answers").is_dir();
    if !found {
        say(&format!(
            "skipped: no reference graphs in {}; GRAPHMILL_DATA can name their folder",
            folder.display()
        ));
    }
    found.then_some(folder)
}

/// A test for each graph with answers.
macro_rules! graphs {
    ($($test:ident: $name:literal),* $(,)?) => {
        pub(crate) const GRAPHS: &[&str] = &[$($name),*];

        mod graph {
            $(#[test]
            fn $test() {
                crate::run::check($name);
            })*
        }

        mod bucket_answers {
            $(#[test]
            fn $test() {
                crate::buckets::check($name);
            })*
        }
    };
}

graphs! {
    amsterdam_roads: "amsterdam-roads",
    as_caida20071105: "as-caida20071105",
    ca_astro_ph_cc1: "ca-AstroPh-cc1",
    cit_hep_ph: "cit-HepPh",
    cnr_2000: "cnr-2000",
    email_enron: "email-Enron",
    facebook_combined: "facebook-combined",
    metis_4elt: "metis-4elt",
    metis_pgp_giantcompo: "metis-PGPgiantcompo",
    metis_airfoil1: "metis-airfoil1",
    metis_astro_ph: "metis-astro-ph",
    metis_hep_th: "metis-hep-th",
    metis_polblogs: "metis-polblogs",
    metis_power: "metis-power",
    metis_wing: "metis-wing",
    p2p_31_directed: "p2p-31-directed",
    road_bremen_dist: "road-bremen_dist",
    road_graph_23rd: "road-graph_23rd",
    road_graph_ballard: "road-graph_ballard",
    road_south_seattle_car: "road-south_seattle_car",
    wiki_vote: "wiki-Vote",
    wordnet30: "wordnet30",
}

/// Answers that no test here uses, and why.
const SKIPPED: &[(&str, &str)] = &[(
    "mtx-scipy-read",
    "about files in Matrix Market format, which no reader takes",
)];

/// The names of all graphs with answers.
fn names(data: &Path) -> Vec<String> {
    let files = std::fs::read_dir(data.join("answers")).expect("the folder of answers");
    let names = files.map(|file| {
        file.expect("an entry")
            .file_name()
            .to_string_lossy()
            .into_owned()
    });
    let mut names: Vec<_> = names
        .filter_map(|name| name.strip_suffix(".json").map(str::to_string))
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn answers_are_used_or_skipped_for_a_reason() {
    let Some(data) = data() else { return };
    for name in names(&data) {
        match SKIPPED.iter().find(|row| row.0 == name) {
            Some((_, reason)) => say(&format!("skipped: {name}: {reason}")),
            None => assert!(
                GRAPHS.contains(&name.as_str()),
                "{name} has an answer but no test"
            ),
        }
    }
}

#[test]
fn judges_accept_answers_and_refuse_changed_ones() {
    let Some(data) = data() else { return };
    for name in GRAPHS {
        let answers = Answers::load(&data, name);
        let graph = Graph::load(&data, name, answers.vertices, answers.directed)
            .expect("a format that is read here");
        judges::check(name, &graph, &answers);
    }
}
