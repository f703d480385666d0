//! What the registry knows of an algorithm.

use std::path::Path;

use graphmill_engine::{Engine, ProgramFootprint};
use graphmill_graph::{GraphDims, StoredGraph};

use crate::option::OptionSpec;
use crate::options::{AlgorithmError, AlgorithmOptions};
use crate::output::{Output, ResultShape};
use crate::recorded::ResultChecker;

/// One algorithm.
#[derive(Debug)]
pub struct Entry {
    /// Its name on the command line.
    pub name: &'static str,
    /// Other names by which people ask for it.
    pub aliases: &'static [&'static str],
    /// Description of the result, in one line.
    pub summary: &'static str,
    /// Name of the result's column; of edges and of a row of numbers, of the main one.
    pub value: &'static str,
    /// What the rows of its result are.
    pub shape: ResultShape,
    /// True if the weights of arcs always count; where there are none each arc counts 1.
    pub weighted: bool,
    /// True if it runs on graphs whose edges have vertices of their own, and on no others.
    pub edge_vertices: bool,
    /// Its options.
    pub options: &'static [OptionSpec],
    /// Checks the values of its options, except those that name vertices.
    pub check_options: fn(&AlgorithmOptions) -> Result<(), AlgorithmError>,
    /// Refuses options that do not fit the graph at a path whose edges are directed, or are not.
    pub check_direction: fn(&AlgorithmOptions, bool, &Path) -> Result<(), AlgorithmError>,
    /// Runs it.
    pub run: fn(&mut Engine, &AlgorithmOptions) -> Result<Output, AlgorithmError>,
    /// Passes over edges that a run takes at most, where the options say so.
    pub passes_max: fn(&AlgorithmOptions) -> Option<u64>,
    /// Passes over all edges that a run usually makes, if they are few and sum no floating-point numbers.
    ///
    /// Such a run on a file of edges gives the same result over unsorted chunks, sooner.
    pub few_passes: fn(&AlgorithmOptions) -> Option<u64>,
    /// Counts the members of each group, if the values of a result name groups.
    ///
    /// The size of a group is at the ordinal of the group's id; an id without a group has 0.
    pub group_sizes: Option<GroupSizes>,
    /// Returns the bytes that its passes hold for each vertex, from the graph and the options alone.
    pub sizes: fn(&GraphDims, &AlgorithmOptions) -> ProgramFootprint,
    /// Checks a result of a run on this graph with these options.
    pub checker: CheckerOf,
}

/// Counts the members of the groups that a result names.
pub type GroupSizes = fn(&mut Engine, &Output) -> Result<Output, AlgorithmError>;

/// Makes a checker of results on a graph, of runs with these options.
pub type CheckerOf =
    fn(&StoredGraph, &AlgorithmOptions) -> Result<Box<dyn ResultChecker>, AlgorithmError>;

impl Entry {
    /// Creates an entry without name and options, as most algorithms have the rest.
    pub(crate) const fn new(
        run: fn(&mut Engine, &AlgorithmOptions) -> Result<Output, AlgorithmError>,
        sizes: fn(&GraphDims, &AlgorithmOptions) -> ProgramFootprint,
        checker: CheckerOf,
    ) -> Entry {
        Entry {
            name: "",
            aliases: &[],
            summary: "",
            value: "",
            shape: ResultShape::Vertices,
            weighted: false,
            edge_vertices: false,
            options: &[],
            check_options: |_| Ok(()),
            check_direction: |_, _, _| Ok(()),
            run,
            passes_max: |_| None,
            few_passes: |_| None,
            group_sizes: None,
            sizes,
            checker,
        }
    }

    /// True if a run with these options uses the weights of arcs; an arc without a weight counts 1.
    #[must_use]
    pub fn is_weighted(&self, settings: &AlgorithmOptions) -> bool {
        self.weighted || settings.flag("weighted")
    }

    /// True if a run can go by the weights of arcs, when it is asked to.
    #[must_use]
    pub fn can_be_weighted(&self) -> bool {
        self.weighted || self.options.iter().any(|option| option.name == "weighted")
    }
}
