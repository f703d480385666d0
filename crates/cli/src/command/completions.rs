//! `graphmill completions`: what a shell sources to complete commands and options.

use crate::args;
use crate::args::tools::CompletionsArgs;

pub(crate) fn run(args: CompletionsArgs) -> anyhow::Result<u8> {
    let mut text = Vec::new();
    clap_complete::generate(
        args.shell,
        &mut args::help::command(),
        "graphmill",
        &mut text,
    );
    super::print(&text)
}
