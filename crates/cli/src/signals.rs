//! Ctrl-C: the first asks the work to stop between two steps, so that temporary files are removed; the second kills.

use std::io::Write;
use std::thread::Builder;

use graphmill::Stop;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Exit code of an interrupted command.
pub(crate) const INTERRUPTED: u8 = 130;

/// From now on SIGINT and SIGTERM request `stop`.
///
/// # Errors
/// The system refuses the handlers or the thread that hears them.
pub(crate) fn request_on_signals(stop: &Stop) -> std::io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let stop = stop.clone();
    // A thread of its own, since every worker may be deep in a step.
    Builder::new().name("signals".to_string()).spawn(move || {
        for _ in signals.forever() {
            if stop.requested() {
                std::process::exit(i32::from(INTERRUPTED));
            }
            stop.request();
            // Nobody may be listening to stderr.
            let _ = writeln!(
                std::io::stderr(),
                "graphmill: stopping; once more to kill, which leaves temporary files"
            );
        }
    })?;
    Ok(())
}
