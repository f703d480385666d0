//! `graphmill man`: manual pages, made from the same text as the help.

use std::process::ExitCode;

use anyhow::Context;
use clap_mangen::Man as Page;

use crate::args;
use crate::args::tools::ManArgs;

pub(crate) fn run(args: ManArgs) -> anyhow::Result<ExitCode> {
    if let Some(folder) = args.output {
        clap_mangen::generate_to(args::help::command(), &folder)
            .with_context(|| format!("cannot write manual pages to {}", folder.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = Vec::new();
    Page::new(args::help::command()).render(&mut text)?;
    super::print(&text)
}
