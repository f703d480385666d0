//! A fabric over another one that counts the bytes that this rank sends and receives.

use std::fmt::Debug;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::bucket::BucketLink;
use crate::error::FabricError;
use crate::port::{Fabric, FabricCompletion, FabricOperation};

/// A fabric that counts the bytes that pass through another. Tokens are below 2^63.
#[derive(Debug)]
pub struct CountedFabric<F> {
    fabric: F,
    sent: AtomicU64,
    received: AtomicU64,
}

impl<F> CountedFabric<F> {
    /// Makes a fabric over `fabric`, with counts of 0.
    #[must_use]
    pub fn new(fabric: F) -> Self {
        CountedFabric {
            fabric,
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
        }
    }
    /// Returns the bytes of frames sent so far.
    #[must_use]
    pub fn bytes_sent(&self) -> u64 {
        self.sent.load(Relaxed)
    }
    /// Returns the bytes of frames received so far.
    #[must_use]
    pub fn bytes_received(&self) -> u64 {
        self.received.load(Relaxed)
    }

    /// Counts a completion of the other fabric; its token tells whether it was a receive.
    fn take(&self, done: FabricCompletion) -> FabricCompletion {
        if let (Ok(bytes), 1) = (&done.result, done.token & 1) {
            self.received.fetch_add(*bytes as u64, Relaxed);
        }
        FabricCompletion {
            token: done.token >> 1,
            ..done
        }
    }
}

impl<T: Fabric + ?Sized, F: Deref<Target = T> + Send + Sync + Debug> Fabric for CountedFabric<F> {
    fn rank(&self) -> usize {
        self.fabric.rank()
    }
    fn ranks(&self) -> usize {
        self.fabric.ranks()
    }
    fn submit(&self, operation: FabricOperation, token: u64) {
        let is_receive = match &operation {
            FabricOperation::Send { range, .. } => {
                self.sent.fetch_add(range.len() as u64, Relaxed);
                0
            }
            FabricOperation::Receive { .. } => 1,
        };
        self.fabric.submit(operation, token << 1 | is_receive);
    }
    fn poll(&self) -> Option<FabricCompletion> {
        self.fabric.poll().map(|done| self.take(done))
    }
    fn wait(&self, limit: Duration) -> Option<FabricCompletion> {
        self.fabric.wait(limit).map(|done| self.take(done))
    }
    fn in_flight(&self) -> usize {
        self.fabric.in_flight()
    }
    fn lost(&self) -> Option<FabricError> {
        self.fabric.lost()
    }
    fn lost_flag(&self) -> Option<Arc<AtomicBool>> {
        self.fabric.lost_flag()
    }
    fn bucket_link(
        &self,
        key: u64,
        lanes: &[usize],
        datagrams_max: usize,
    ) -> Option<Box<dyn BucketLink>> {
        self.fabric.bucket_link(key, lanes, datagrams_max)
    }
    fn fail(&self, cause: &str) {
        self.fabric.fail(cause);
    }
    fn leave(&self) {
        self.fabric.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{all_gather, local};

    #[test]
    fn counted_fabric_counts_all_bytes() {
        let fabrics = local(2, 1);
        let moved: Vec<[u64; 2]> = std::thread::scope(|scope| {
            let each = fabrics.iter().map(|fabric| {
                scope.spawn(move || {
                    let counted = CountedFabric::new(fabric);
                    let said = [7; 100];
                    all_gather::<FabricError>(&counted, &said, &|| Ok(())).unwrap();
                    [counted.bytes_sent(), counted.bytes_received()]
                })
            });
            let each: Vec<_> = each.collect();
            each.into_iter().map(|of| of.join().unwrap()).collect()
        });
        assert!(
            moved
                .as_flattened()
                .iter()
                .all(|bytes| (100..200).contains(bytes)),
            "{moved:?}"
        );
    }
}
