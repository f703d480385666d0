//! Progress on stderr: a bar with rate and time left on a terminal, a plain line now and then otherwise, nothing but warnings when
//! quiet.

use std::io::IsTerminal;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use graphmill::advanced::{Clock, PassMetrics, SystemClock};
use graphmill::{Progress, ProgressFn};
use graphmill_raw::lock;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::notice::complain;
use crate::size;

/// Between plain lines, so that a log stays short.
const LINE_EVERY: Duration = Duration::from_secs(5);

const BAR: &str = "{msg} [{bar:30}] {percent:>3}%  {prefix}  {eta} left";
/// A bar of passes with a known greatest number.
const PASSES: &str = "{msg} [{bar:30}]  at most {eta} left";
const SPINNER: &str = "{spinner} {msg}  {elapsed}";

/// Somebody to tell how far a command is.
pub(crate) fn watcher(quiet: bool) -> ProgressFn {
    if quiet {
        return Arc::new(|progress| {
            if let Progress::Warning(text) = progress {
                complain(text);
            }
        });
    }
    if std::io::stderr().is_terminal() {
        let bar = Mutex::new(Bar::new());
        Arc::new(move |progress| lock(&bar).show(progress))
    } else {
        let lines = Mutex::new(PlainProgress::default());
        Arc::new(move |progress| {
            if let Some(line) = lock(&lines).line(progress) {
                complain(&line);
            }
        })
    }
}

/// One bar on a terminal, remade for each part of the work.
struct Bar {
    bar: ProgressBar,
    part: Option<String>,
}

impl Bar {
    fn new() -> Bar {
        Bar {
            bar: ProgressBar::hidden(),
            part: None,
        }
    }

    fn show(&mut self, progress: &Progress<'_>) {
        match progress {
            Progress::Note(text) | Progress::Warning(text) => {
                self.start(None, "", SPINNER);
                self.bar.println(format!("graphmill: {text}"));
            }
            Progress::Part {
                what,
                done,
                total,
                unit,
            } => {
                if self.part.as_deref() != Some(what) {
                    self.start(Some(*total), what, BAR);
                }
                self.bar.set_length((*total).max(*done));
                self.bar.set_position(*done);
                self.bar.set_prefix(rate(self.bar.per_sec(), unit));
            }
            Progress::Superstep { number, most, pass } => {
                if self.part.as_deref() != Some("superstep") {
                    let style = if most.is_some() { PASSES } else { SPINNER };
                    self.start(*most, "superstep", style);
                    // A resumed run begins where the earlier one ended.
                    self.bar.set_position(number.saturating_sub(1));
                    self.bar.reset_eta();
                }
                self.bar.set_message(superstep(*number, *most, pass));
                self.bar.set_position(*number);
            }
        }
    }

    /// Puts the bar away and starts the next.
    fn start(&mut self, total: Option<u64>, what: &str, style: &str) {
        self.bar.finish_and_clear();
        self.bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template(style) {
            self.bar.set_style(style.progress_chars("=> "));
        }
        self.bar.set_message(what.to_string());
        self.part = Some(what.to_string()).filter(|what| !what.is_empty());
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Plain lines: every note and the start of every part at once, the rest when some time has gone by.
#[derive(Default)]
struct PlainProgress {
    clock: SystemClock,
    part: Option<String>,
    part_began: Duration,
    /// The first pass of the part.
    first_pass: u64,
    last: Duration,
}

impl PlainProgress {
    fn line(&mut self, progress: &Progress<'_>) -> Option<String> {
        let now = self.clock.now();
        let what = match progress {
            Progress::Note(text) | Progress::Warning(text) => return Some(text.to_string()),
            Progress::Part { what, .. } => what,
            Progress::Superstep { .. } => "superstep",
        };
        let is_new = self.part.as_deref() != Some(what);
        if is_new {
            self.part = Some(what.to_string());
            self.part_began = now;
            if let Progress::Superstep { number, .. } = progress {
                self.first_pass = *number;
            }
        } else if now - self.last < LINE_EVERY {
            return None;
        }
        self.last = now;
        let seconds = (now - self.part_began).as_secs_f64();
        Some(match progress {
            Progress::Superstep { number, most, pass } => {
                let left = most.and_then(|most| {
                    let done = *number - self.first_pass;
                    seconds_left(seconds, done, most.checked_sub(*number)?)
                });
                let left = left.map(|left| format!(", at most {left:.0} s left"));
                superstep(*number, *most, pass) + &left.unwrap_or_default()
            }
            Progress::Part {
                done, total, unit, ..
            } if !is_new => {
                let per_second = *done as f64 / seconds.max(1e-9);
                let left = total.saturating_sub(*done) as f64 / per_second.max(1e-9);
                let percent = 100 * u128::from(*done) / u128::from((*total).max(1));
                let rate = rate(per_second, unit);
                format!("{what}: {percent}%, {rate}, {left:.0} s left")
            }
            _ => what.to_string(),
        })
    }
}

fn rate(per_second: f64, unit: &str) -> String {
    if unit == "bytes" {
        format!("{}/s", size::text(per_second as u64))
    } else if per_second >= 1e6 {
        format!("{:.1} M {unit}/s", per_second / 1e6)
    } else {
        format!("{} {unit}/s", size::grouped(per_second as u64))
    }
}

/// Seconds that `left` passes take if each takes as long as those that were done; none where none was.
fn seconds_left(seconds: f64, done: u64, left: u64) -> Option<f64> {
    (done > 0).then(|| seconds / done as f64 * left as f64)
}

fn superstep(number: u64, most: Option<u64>, pass: &PassMetrics) -> String {
    let active = size::grouped(pass.active);
    let most = most.map_or(String::new(), |most| format!(" of at most {most}"));
    if pass.edges == 0 {
        return format!("pass {number}{most}: {active} active");
    }
    let edges = rate(pass.edges as f64 / pass.seconds.max(1e-9), "edges");
    format!("pass {number}{most}: {active} active, {edges}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_follows_the_passes_done() {
        assert_eq!(seconds_left(10.0, 5, 15), Some(30.0));
        assert_eq!(seconds_left(10.0, 5, 0), Some(0.0));
        assert_eq!(seconds_left(0.0, 0, 300), None);
    }
}
