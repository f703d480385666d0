//! The passes of a program in another language.

use std::sync::Arc;

use graphmill_engine::{
    ActiveSet, COLUMNS_MAX, Direction, Engine, ProgramFootprint, ReadColumns, VertexArray,
    WriteColumns,
};

use super::combine::{ForeignCombine, LeastBits, OwnFold, SumOfFloats, SumOfIntegers};
use super::step::ForeignStep;
use crate::foreign_program::{ForeignFold, ForeignProgram, ForeignType, SHARED_BEGIN};
use crate::options::AlgorithmError;
use crate::output::{Output, OutputValues};

/// Calls a function with the way in which a program folds messages as its type.
macro_rules! with_combine {
    ($program:expr, $call:ident($($argument:expr),*)) => {
        match ($program.fold, $program.message, $program.weighted) {
            (ForeignFold::Own(_), _, true) => $call::<OwnFold<f64>>($($argument),*),
            (ForeignFold::Own(_), _, false) => $call::<OwnFold<()>>($($argument),*),
            (ForeignFold::Sum, ForeignType::Float, _) => $call::<SumOfFloats>($($argument),*),
            (ForeignFold::Sum, _, _) => $call::<SumOfIntegers>($($argument),*),
            (ForeignFold::Least | ForeignFold::Greatest, _, _) => $call::<LeastBits>($($argument),*),
        }
    };
}

/// Bytes that the passes of a program hold for each vertex.
pub(super) fn sizes(program: &ForeignProgram) -> ProgramFootprint {
    with_combine!(program, sizes_of(program))
}

fn sizes_of<F: ForeignCombine>(program: &ForeignProgram) -> ProgramFootprint {
    let (apply_to, exact) = (program.apply_to(), program.is_exact(F::EXACT));
    let of = ProgramFootprint::of_columns::<ForeignStep<F>>(program.columns.len(), apply_to, exact);
    of.going_against(program.against)
}

/// Runs a program; `vertices` are the ordinals of the ids that it names.
pub(super) fn run(
    engine: &mut Engine,
    program: &Arc<ForeignProgram>,
    vertices: &[u64],
) -> Result<Output, AlgorithmError> {
    with_combine!(program, drive(engine, program, vertices))
}

/// Makes the passes of a program.
fn drive<F: ForeignCombine>(
    engine: &mut Engine,
    program: &Arc<ForeignProgram>,
    vertices: &[u64],
) -> Result<Output, AlgorithmError> {
    let mut arrays = Vec::new();
    for (name, _) in program.columns.iter().take(COLUMNS_MAX) {
        arrays.push(engine.vertex_array::<u64>(name)?);
    }
    let reading = || ReadColumns::new(&arrays);
    let writing = || WriteColumns::new(&arrays);
    let mut shared = vec![engine.vertices(), engine.graph().arcs(), 0, 0];
    shared.resize(SHARED_BEGIN, 0);
    shared.extend(&program.shared);
    for ((place, _), vertex) in program.vertices.iter().zip(vertices) {
        if let Some(word) = shared.get_mut(SHARED_BEGIN + place) {
            *word = *vertex;
        }
    }
    let mut step = ForeignStep::<F>::new(program, shared);
    let mut sums = engine.process_vertices(writing(), None, |_, row| step.begin(row).0)?;
    let failed = |failures: u64| match failures {
        0 => Ok(()),
        _ => Err(AlgorithmError::ProgramFailed),
    };
    failed(sums.1)?;
    let mut active = match program.everywhere {
        true => engine.full_set()?,
        // The same calls again.
        false => engine.select_vertices(writing(), None, |_, row| step.begin(row).1)?,
    };
    let direction = match program.against {
        true => Direction::Backward,
        false => Direction::Forward,
    };
    for pass in 1..=program.passes.unwrap_or(u64::MAX) {
        if active.is_empty() || !step.before(pass, active.len(), sums) {
            break;
        }
        let next: ActiveSet;
        (sums, next) = engine.process_edges(&step, reading(), writing(), &active, direction)?;
        failed(sums.1)?;
        if !program.everywhere {
            active = next;
        }
    }
    // Where no vertex was applied after it, the sums do not tell.
    let failures = engine.process_vertices((), None, |_, ()| u64::from(step.has_failed()))?;
    failed(failures)?;
    output(engine, program, &arrays)
}

/// The result: one of the columns.
fn output(
    engine: &mut Engine,
    program: &ForeignProgram,
    arrays: &[VertexArray<u64>],
) -> Result<Output, AlgorithmError> {
    let missing = || AlgorithmError::Column {
        column: String::new(),
        problem: "is no column of the program",
    };
    let (name, kind) = program.columns.get(program.result).ok_or_else(missing)?;
    let array = arrays.get(program.result).ok_or_else(missing)?;
    let refused = |problem| AlgorithmError::Column {
        column: name.clone(),
        problem,
    };
    let values = match kind {
        ForeignType::Float => OutputValues::F64(array.as_floats()),
        ForeignType::Vertex => {
            let named = engine.graph().named_vertices();
            let beyond = engine.process_vertices(array.write(), None, |_, value| {
                if value.cast_signed() < 0 {
                    *value = u64::MAX;
                }
                u64::from(*value != u64::MAX && *value >= named)
            })?;
            if beyond > 0 {
                return Err(refused("has numbers that are ordinals of no vertex"));
            }
            OutputValues::Ordinal64(*array)
        }
        ForeignType::Integer => {
            let negative = engine.process_vertices(array.read(), None, |_, value| {
                u64::from(value.cast_signed() < 0)
            })?;
            if negative > 0 {
                return Err(refused(
                    "has negative integers, which a result cannot have: make it a column of floats",
                ));
            }
            OutputValues::U64(*array)
        }
    };
    Ok(Output::new(
        interned(name),
        values,
        *kind == ForeignType::Vertex,
    ))
}

/// The same text for as long as the process lives. Programs have few names.
fn interned(name: &str) -> &'static str {
    use std::collections::BTreeSet;
    use std::sync::{Mutex, PoisonError};
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let name: &'static str = Box::leak(name.into());
    names.insert(name);
    name
}
