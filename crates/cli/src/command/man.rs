//! `graphmill man`: manual pages, made from the same text as the help.

use anyhow::Context;
use clap_mangen::Man as Page;

use crate::args;
use crate::args::tools::ManArgs;
use crate::exit_code::DONE;

pub(crate) fn run(args: ManArgs) -> anyhow::Result<u8> {
    if let Some(folder) = args.output {
        clap_mangen::generate_to(args::help::command(), &folder)
            .with_context(|| format!("cannot write manual pages to {}", folder.display()))?;
        return Ok(DONE);
    }
    let mut text = Vec::new();
    Page::new(args::help::command()).render(&mut text)?;
    super::print(&text)
}
