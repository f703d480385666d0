//! `graphmill mpi` and `graphmill dpdk`: the plugins that the command needs to run under an MPI, and to send by DPDK.

use std::io::Write;
use std::path::Path;

use graphmill::advanced::{DPDK_PLUGIN, MPI_PLUGIN, PluginKind, build_plugin};

use crate::args::tools::{DpdkArgs, DpdkCommand, MpiArgs, MpiCommand};
use crate::exit_code::DONE;

pub(crate) fn run(args: MpiArgs) -> anyhow::Result<u8> {
    let MpiCommand::Build(args) = args.command;
    build(&MPI_PLUGIN, &args.cc, args.output.as_deref())
}

pub(crate) fn dpdk(args: DpdkArgs) -> anyhow::Result<u8> {
    let DpdkCommand::Build(args) = args.command;
    build(&DPDK_PLUGIN, &args.cc, args.output.as_deref())
}

fn build(kind: &PluginKind, compiler: &str, to: Option<&Path>) -> anyhow::Result<u8> {
    let plugin = build_plugin(kind, compiler, to)?;
    writeln!(std::io::stdout(), "{}", plugin.display())?;
    Ok(DONE)
}
