//! The `graphmill` command: reads the command line, calls the facade, prints. It knows nothing of how anything is done.
//!
//! A program of one call has it, and so does the Python package.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `args.rs`, `args/`, `size.rs`, `count.rs` | what can be asked, and its help |
//! | `command/` | one subcommand a file |
//! | `exit_code.rs` | what the command returns to the shell |
//! | `notice.rs` | lines on stderr |
//! | `progress.rs` | progress on stderr |
//! | `request.rs` | the work that words ask for, without doing it |
//! | `signals.rs` | Ctrl-C, and a terminal that closes |

#![forbid(unsafe_code)]

mod args;
mod command;
mod count;
mod exit_code;
mod notice;
mod progress;
mod request;
mod signals;
mod size;

use std::ffi::OsString;
use std::time::Duration;

use graphmill::{CancelToken, MpiJob};

pub use request::{ImportRequest, estimate_request, program_request, run_request};

use args::cli::Command;
use exit_code::{DONE, FAILED, INTERRUPTED, USAGE};
use notice::complain;

/// Time between the error of a rank and its end.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Runs the command line `words`, whose first word is the program; returns the exit code.
///
/// It takes over the signals of the process, and ends the process itself after help or a mistake in the command line.
#[must_use]
pub fn main(words: Vec<OsString>) -> u8 {
    let cli = args::help::parse(&words);
    // If the system refuses a higher limit, the command works with fewer open files.
    let _ = graphmill_raw::raise_nofile_limit();
    let stop = CancelToken::new();
    let done = signals::request_on_signals(&stop).map_err(anyhow::Error::from);
    match done.and_then(|()| run(cli.command, &stop)) {
        Ok(code) => code,
        Err(error) => {
            let (text, code) = ending(&error, &stop, words);
            if let Some(text) = text {
                complain(&text);
            }
            if MpiJob::of_environment().is_some() {
                // The launcher ends all ranks when the first has failed; each must report its cause before that.
                std::thread::sleep(LAST_WORDS);
            }
            code
        }
    }
}

/// Returns the message of an error, if any, and the exit code.
///
/// Work that was asked to stop may still fail for another reason; then the message names that failure.
fn ending(error: &anyhow::Error, stop: &CancelToken, words: Vec<OsString>) -> (Option<String>, u8) {
    let is = |what: fn(&graphmill::Error) -> bool| error.downcast_ref().is_some_and(what);
    let text = if is(graphmill::Error::is_interrupted) {
        Some(format!("{error}{}", again(error, words.into_iter())))
    } else if is(graphmill::Error::is_stopped) {
        Some("interrupted; nothing was left behind".to_string())
    } else if is_broken_pipe(error) {
        None
    } else {
        // Each error names its cause itself.
        Some(format!("error: {error}"))
    };
    // With several ranks one request is enough.
    let is_asked = stop.is_requested() || is(graphmill::Error::is_stopped);
    let code = if is_asked || is(graphmill::Error::is_interrupted) {
        INTERRUPTED
    } else if is_broken_pipe(error) {
        DONE
    } else if is(graphmill::Error::is_usage) {
        USAGE
    } else {
        FAILED
    };
    (text, code)
}

/// Returns a hint with the command that resumes, or nothing if a launcher starts the ranks.
fn again(error: &anyhow::Error, words: impl Iterator<Item = OsString>) -> String {
    if MpiJob::of_environment().is_some() {
        return String::new();
    }
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_./=:,+@%".contains(byte);
    let quoted = |word: OsString| match word.to_string_lossy() {
        word if !word.is_empty() && word.bytes().all(|byte| is_plain(&byte)) => word.into_owned(),
        word => format!("'{}'", word.replace('\'', r"'\''")),
    };
    let mut words: Vec<String> = words.map(quoted).collect();
    if let Some(graphmill::Error::Interrupted { needs_resume, .. }) = error.downcast_ref()
        && *needs_resume
        && !words.iter().any(|word| word == "--resume")
    {
        words.push("--resume".to_string());
    }
    format!("; to resume: {}", words.join(" "))
}

fn run(command: Command, stop: &CancelToken) -> anyhow::Result<u8> {
    let of_ranks = matches!(command, Command::Import(_) | Command::Run(_));
    if let Some(job) = MpiJob::of_environment().filter(|_| !of_ranks) {
        let ranks = job.ranks;
        return Err(graphmill::Error::OneProcess { ranks }.into());
    }
    if let Some(tasks) = MpiJob::strangers().filter(|_| of_ranks) {
        return Err(graphmill::Error::Strangers { tasks }.into());
    }
    match command {
        Command::Import(args) => command::import::run(args, stop),
        Command::Run(args) => command::run::run(*args, stop),
        Command::Generate(args) => command::generate::run(args, stop),
        Command::Info(args) => command::info::run(args, stop),
        Command::Verify(args) => command::verify::run(args, stop),
        Command::Validate(args) => command::validate::run(args, stop),
        Command::Estimate(args) => command::estimate::run(args, stop),
        Command::Algorithms(args) => command::algorithms::run(args),
        Command::Cache(args) => command::cache::run(args, stop),
        Command::Mpi(args) => command::mpi::run(args),
        Command::Dpdk(args) => command::mpi::dpdk(args),
        Command::Completions(args) => command::completions::run(args),
        Command::Man(args) => command::man::run(args),
    }
}

/// True if the reader of our output has closed it, as `head` does.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let error = match error.downcast_ref::<graphmill::Error>() {
        Some(graphmill::Error::Result(graphmill::ResultError::Write(error))) => Some(error),
        _ => error.downcast_ref::<std::io::Error>(),
    };
    error.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no_input() -> anyhow::Error {
        let path = "none".into();
        graphmill::Error::NoInput { path }.into()
    }

    #[test]
    fn only_stopped_work_reports_nothing_left() {
        let stop = CancelToken::new();
        stop.request();
        let (text, code) = ending(&graphmill::Error::Stopped.into(), &stop, Vec::new());
        assert_eq!(
            text.as_deref(),
            Some("interrupted; nothing was left behind")
        );
        assert_eq!(code, INTERRUPTED);
        let (text, code) = ending(&no_input(), &stop, Vec::new());
        let text = text.expect("a text");
        assert!(text.starts_with("error: cannot read none"), "{text}");
        assert_eq!(code, INTERRUPTED);
    }

    #[test]
    fn interrupted_command_is_quoted_for_a_shell() {
        let words = ["graphmill", "run", "wcc", "a b", "it's", ""].map(OsString::from);
        for (needs_resume, end) in [(false, ""), (true, " --resume")] {
            let folder = "checkpoints".into();
            let error = graphmill::Error::Interrupted {
                folder,
                needs_resume,
            };
            let text = again(&error.into(), words.clone().into_iter());
            let wanted = r"; to resume: graphmill run wcc 'a b' 'it'\''s' ''";
            assert_eq!(text, format!("{wanted}{end}"));
        }
    }

    #[test]
    fn exit_codes_separate_failure_from_usage() {
        let stop = CancelToken::new();
        assert_eq!(ending(&no_input(), &stop, Vec::new()).1, USAGE);
        assert_eq!(ending(&anyhow::anyhow!("odd"), &stop, Vec::new()).1, FAILED);
        let pipe = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        assert_eq!(ending(&pipe.into(), &stop, Vec::new()), (None, DONE));
    }
}
