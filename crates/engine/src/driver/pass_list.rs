//! The callback that records each pass of an in-memory loop in the metrics.

use graphmill_storage::Clock;

use crate::config::PassCallback;
use crate::metrics::run::{Metrics, PassMetrics};
use crate::metrics::traffic::MemoryTraffic;

/// Returns a callback that lists each pass: its time, and the bytes that `count` returns for it.
///
/// The time is the time since the last pass.
pub(crate) fn listed<'e>(
    clock: &'e dyn Clock,
    on_pass: &'e Option<PassCallback>,
    metrics: &'e mut Metrics,
    traffic: &'e MemoryTraffic,
    count: impl Fn(&PassMetrics) + 'e,
) -> impl FnMut(PassMetrics) + 'e {
    let mut began = clock.now();
    move |mut pass| {
        count(&pass);
        (pass.tiers, pass.simulated_tier_seconds) = traffic.take();
        let now = clock.now();
        pass.seconds = (now - std::mem::replace(&mut began, now)).as_secs_f64();
        if let Some(tell) = on_pass {
            tell(metrics.pass_number(), &pass);
        }
        metrics.push(pass);
    }
}
