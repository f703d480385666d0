//! `graphmill validate`: 0 when the result is what the reference or the checker says, 1 with the first differences when not.

use std::io::Write;

use graphmill::{CancelToken, Config, Machine, Plan, Rule, Verdict};

use crate::args;
use crate::args::validate::ValidateArgs;
use crate::exit_code::{DONE, FAILED};
use crate::notice::complain;
use crate::{progress, size};

use super::options;

/// The relative difference that LDBC allows.
const EPSILON: f64 = 1e-4;

pub(crate) fn run(args: ValidateArgs, stop: &CancelToken) -> anyhow::Result<u8> {
    let common = args.common;
    let (machine, against) = (options::machine(&common.machine), common.against);
    let rule = match common.how.rule {
        Some(args::validate::RuleName::Exact) => Rule::Exact,
        Some(args::validate::RuleName::Epsilon) => Rule::Epsilon(common.epsilon.unwrap_or(EPSILON)),
        Some(args::validate::RuleName::Equivalence) => Rule::Equivalence,
        None => {
            let config = Config {
                options: args.options,
                import: options::reading(&common.reading),
                machine,
                ..Config::new(common.how.algorithm.unwrap_or_default(), against)
            };
            let watcher = progress::watcher(common.machine.quiet);
            let verdict = Plan::new(config)?.check_result(&common.result, stop, &watcher)?;
            // The bar goes before the verdict comes.
            drop(watcher);
            return told(&verdict, "graph");
        }
    };
    let machine = Machine::open(&machine, stop.clone())?;
    let verdict = graphmill::validate(&machine, &common.result, &against, rule)
        .map_err(graphmill::Error::from)?;
    told(&verdict, "reference")
}

/// Prints the verdict; `against` names what the result was compared with.
fn told(verdict: &Verdict, against: &str) -> anyhow::Result<u8> {
    if verdict.is_same() {
        let vertices = size::grouped(verdict.vertices);
        writeln!(std::io::stdout(), "valid: {vertices} {}", verdict.rows)?;
        return Ok(DONE);
    }
    for difference in &verdict.described {
        complain(difference);
    }
    complain(&format!(
        "not valid: {}{} difference{}, {} {} in the {against}",
        if verdict.may_be_more { "at least " } else { "" },
        size::grouped(verdict.differences),
        if verdict.differences == 1 { "" } else { "s" },
        size::grouped(verdict.vertices),
        verdict.rows,
    ));
    Ok(FAILED)
}
