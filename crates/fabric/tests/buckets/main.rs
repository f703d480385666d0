//! Buckets: their links, and the exchange of messages over a lossy link in virtual time.

use std::sync::{Mutex, MutexGuard, PoisonError};

mod cluster;
mod hostile_datagrams;
mod links;
mod lossy_streams;
mod planted_buckets;

/// Lets one test run at a time, because a planted mistake is one of the whole process.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
