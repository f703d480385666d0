//! `graphmill validate`: 0 when the result is what the reference says, 1 with the first differences when not.

use std::io::Write;
use std::process::ExitCode;

use graphmill::{Machine, Rule, Stop};

use crate::args::{self, Validate};
use crate::{complain, size};

use super::options;

pub(crate) fn run(args: Validate, stop: &Stop) -> anyhow::Result<ExitCode> {
    let machine = Machine::open(&options::machine(&args.machine), stop.clone())?;
    let rule = match args.rule {
        args::Rule::Exact => Rule::Exact,
        args::Rule::Epsilon => Rule::Epsilon(args.epsilon),
        args::Rule::Equivalence => Rule::Equivalence,
    };
    let verdict = graphmill::validate(&machine, &args.result, &args.reference, rule)?;
    if verdict.is_same() {
        let vertices = size::grouped(verdict.vertices);
        writeln!(std::io::stdout(), "valid: {vertices} vertices")?;
        return Ok(ExitCode::SUCCESS);
    }
    for difference in &verdict.described {
        complain(difference);
    }
    complain(&format!(
        "not valid: {} difference{}, {} vertices in the reference",
        size::grouped(verdict.differences),
        if verdict.differences == 1 { "" } else { "s" },
        size::grouped(verdict.vertices)
    ));
    Ok(ExitCode::FAILURE)
}
