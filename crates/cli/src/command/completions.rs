//! `graphmill completions`: what a shell sources to complete commands and options.

use std::process::ExitCode;

use crate::args::{self, Completions};

pub(crate) fn run(args: Completions) -> anyhow::Result<ExitCode> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut args::command(), "graphmill", &mut text);
    super::print(&text)
}
