//! `graphmill verify`: reads every byte of a stored graph and compares it with its checksum.

use std::io::Write;

use graphmill::{CancelToken, Machine};

use crate::args::stored::VerifyArgs;
use crate::exit_code::DONE;
use crate::progress;
use crate::size;

use super::options;

pub(crate) fn run(args: VerifyArgs, stop: &CancelToken) -> anyhow::Result<u8> {
    let machine = Machine::open(&options::machine(&args.machine), stop.clone())?;
    let watcher = progress::watcher(args.machine.quiet);
    let bytes = match args.deep {
        true => machine.verify_deep(&args.graph, &watcher)?,
        false => machine.verify(&args.graph, &watcher)?,
    };
    writeln!(std::io::stdout(), "intact: {}", size::text(bytes))?;
    Ok(DONE)
}
