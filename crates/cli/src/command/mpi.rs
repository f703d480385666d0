//! `graphmill mpi`: what the command needs to run under an MPI.

use std::io::Write;
use std::process::ExitCode;

use crate::args::tools::{MpiArgs, MpiCommand};

pub(crate) fn run(args: MpiArgs) -> anyhow::Result<ExitCode> {
    let MpiCommand::Build(args) = args.command;
    let plugin = graphmill::advanced::build_plugin(&args.cc, args.output.as_deref())?;
    writeln!(std::io::stdout(), "{}", plugin.display())?;
    Ok(ExitCode::SUCCESS)
}
