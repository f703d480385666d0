//! How a run names a foreign program.

use graphmill_engine::{Engine, ProgramFootprint};
use graphmill_graph::{GraphDims, StoredGraph};

use super::drive::{self, sizes as sizes_of};
use crate::entry::Entry;
use crate::options::{AlgorithmError, AlgorithmOptions};
use crate::output::Output;
use crate::recorded::ResultChecker;

/// The name of its entry, which the registry does not list: a run has the program itself.
pub const FOREIGN: &Entry = &Entry {
    name: "program",
    summary: "A program of the user, by the addresses of its functions",
    value: "value",
    passes_max: |settings| settings.program.as_ref()?.passes,
    ..Entry::new(run, sizes, checker)
};

/// The name under which the ordinals of its vertices are among the options.
pub const FOREIGN_VERTICES: &str = "program vertices";

fn run(engine: &mut Engine, settings: &AlgorithmOptions) -> Result<Output, AlgorithmError> {
    let program = settings.program.as_ref().ok_or(AlgorithmError::NoProgram)?;
    let vertices = settings.vertices.get(FOREIGN_VERTICES);
    drive::run(engine, program, vertices.map_or(&[], Vec::as_slice))
}

fn sizes(_: &GraphDims, settings: &AlgorithmOptions) -> ProgramFootprint {
    let program = settings.program.as_ref();
    program.map_or(ProgramFootprint::USUAL, |program| sizes_of(program))
}

fn checker(
    _: &StoredGraph,
    _: &AlgorithmOptions,
) -> Result<Box<dyn ResultChecker>, AlgorithmError> {
    Err(AlgorithmError::NoProgram)
}
