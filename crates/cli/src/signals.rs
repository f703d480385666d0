//! Ctrl-C and similar signals: the first asks the work to stop between two steps and remove temporary files; the second kills.
//!
//! A run that writes checkpoints first ends its pass and writes one more, unless it is asked twice. Then the third signal kills. So does a
//! timer some seconds after the second, since the work may wait for a disk that completes nothing.
//!
//! Batch systems report the end of the time limit by SIGTERM, or by a signal that the job names. SIGUSR1 and SIGUSR2 ask too, and never
//! kill. Nor does SIGXCPU, which the system sends at a limit of processor time (`ulimit -t`).
//!
//! A terminal that closes (SIGHUP) asks too, unless that is ignored when the command starts, as under `nohup`. It never kills: the shell
//! and the system may both send it.
//!
//! A rank that waits for others to start cannot read a request to stop, and would wait for ever for a rank that was killed. So it ends by
//! itself.
//!
//! A write past the limit of file sizes (SIGXFSZ) would kill the process. With a handler that does nothing, the write fails with an error.

use std::io::Write;
use std::sync::Arc;
use std::thread::Builder;
use std::time::Duration;

use graphmill::CancelToken;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU, SIGXFSZ};
use signal_hook::iterator::Signals;

use crate::exit_code::INTERRUPTED;

/// Makes signals that ask to stop request `stop`, and SIGXFSZ do nothing.
///
/// The signals are SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU and SIGHUP.
///
/// # Errors
/// The system refuses the handlers or the thread that receives signals.
pub(crate) fn request_on_signals(stop: &CancelToken) -> std::io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU])?;
    // If the system does not report ignored signals, a hangup keeps its default action.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if ignores(&status, SIGHUP) == Some(false) {
        signals.add_signal(SIGHUP)?;
    }
    // No code reads the flag; the signal only needs a handler.
    signal_hook::flag::register(SIGXFSZ, Arc::default())?;
    let stop = stop.clone();
    // A thread of its own, since every worker may be deep in a step.
    let thread = Builder::new().name("signals".to_string());
    let started = thread.spawn(move || {
        let mut asked = false;
        for signal in signals.forever() {
            // A closing session may send a hangup first and then terminate its processes.
            let is_urgent = [SIGINT, SIGTERM].contains(&signal);
            let again = asked && is_urgent;
            asked |= is_urgent;
            if !stop.is_requested() {
                stop.request();
                say(match stop.is_patient() {
                    true => "stopping after this pass, to resume later; once more to stop now",
                    false => KILLING,
                });
            } else if again && stop.is_patient() {
                stop.force();
                say(KILLING);
                // Without a thread, ending at once is the only way.
                if Builder::new().spawn(end_late).is_err() {
                    end_now();
                }
            } else if again {
                end_now();
            }
        }
    });
    started.map(drop).map_err(|error| {
        std::io::Error::other(format!(
            "cannot start a thread: {error}; raise the limit of threads (ulimit -u, pids.max)"
        ))
    })
}

/// Time that a command may take to stop after the second request.
const STOPPING: Duration = Duration::from_secs(20);

/// Ends the process, whatever its threads wait for, unless it ends by itself soon.
fn end_late() {
    std::thread::sleep(STOPPING);
    end_now();
}

/// Ends the process without any more work of its own, which might wait, too.
fn end_now() -> ! {
    signal_hook::low_level::exit(i32::from(INTERRUPTED))
}

/// How long a rank that was asked to stop waits for others to start, in this many steps.
const MEETING: Duration = Duration::from_secs(5);
const STEPS: u32 = 50;

/// Ends the process soon after a request to stop, as long as the returned guard lives.
///
/// # Errors
/// The system refuses the thread that looks.
pub(crate) fn end_when_asked(stop: &CancelToken) -> std::io::Result<Arc<()>> {
    let waits = Arc::new(());
    let (stop, lives) = (stop.clone(), Arc::downgrade(&waits));
    Builder::new().name("meeting".to_string()).spawn(move || {
        let mut left = STEPS;
        while left > 0 && lives.strong_count() > 0 {
            std::thread::sleep(MEETING / STEPS);
            left -= u32::from(stop.is_requested());
        }
        if lives.strong_count() > 0 {
            say("interrupted while it waited for other ranks to start");
            std::process::exit(i32::from(INTERRUPTED));
        }
    })?;
    Ok(waits)
}

/// The notice when work stops at once.
const KILLING: &str = "stopping; once more to kill, which leaves temporary files";

/// Prints a line on stderr and ignores a closed stderr.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "graphmill: {text}");
}

/// Whether a process ignores a signal, by its /proc/PID/status; nothing where that does not say.
fn ignores(status: &str, signal: i32) -> Option<bool> {
    let mut lines = status.lines();
    let mask = lines.find_map(|line| line.strip_prefix("SigIgn:"))?;
    let mask = u64::from_str_radix(mask.trim(), 16).ok()?;
    // Signals count from 1.
    Some(mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signal_mask_shows_ignored_signals() {
        let status = "Name:\tgraphmill\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000000000\n";
        assert_eq!(ignores(status, SIGHUP), Some(true));
        assert_eq!(ignores(status, SIGINT), Some(false));
        assert_eq!(ignores("Name:\tgraphmill\n", SIGHUP), None);
    }
}
