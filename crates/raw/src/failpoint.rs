//! Failpoints: mistakes that tests switch on, one at a time, to prove that a check finds each.
//!
//! [`failpoint!`] places one.
//!
//! Only the tests of the simulation switch the feature `failpoints` on; without it the macro expands to nothing.

/// Places a mistake: `NAME => STATEMENT` runs a statement, `NAME: LOCAL = VALUE` shadows a local.
#[cfg(feature = "failpoints")]
#[macro_export]
macro_rules! failpoint {
    ($name:ident => $statement:expr) => {
        if $crate::Failpoint::$name.is_active() {
            $statement
        }
    };
    ($name:ident : $local:ident = $value:expr) => {
        let $local = match $crate::Failpoint::$name.is_active() {
            true => $value,
            false => $local,
        };
    };
}

/// Places a mistake in builds with the feature `failpoints`; this build has none of its code.
#[cfg(not(feature = "failpoints"))]
#[macro_export]
macro_rules! failpoint {
    ($($mistake:tt)*) => {};
}

#[cfg(feature = "failpoints")]
pub use switch::{Failpoint, activate};

#[cfg(feature = "failpoints")]
mod switch {
    use std::sync::atomic::{AtomicU8, Ordering};

    static ACTIVE: AtomicU8 = AtomicU8::new(0);

    macro_rules! failpoints {
        ($($(#[$doc:meta])* $name:ident,)*) => {
            /// A mistake in checkpoints, in files, or in what ranks exchange.
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub enum Failpoint {
                $($(#[$doc])* $name,)*
            }

            impl Failpoint {
                /// All failpoints, in the order of their declaration.
                pub const ALL: &[Failpoint] = &[$(Failpoint::$name,)*];

                /// True if it is a mistake in buckets.
                pub fn is_in_buckets(self) -> bool {
                    self as u8 >= Failpoint::DoubledFolded as u8
                }
            }
        };
    }

    failpoints! {
        /// The pages of a checkpoint are not made durable before its file.
        PagesNotSynced,
        /// An import records the end of a step before the bytes of that step are durable.
        StepNotSynced,
        /// A file gets its name before it is durable.
        FileNotSynced,
        /// A file is written under its final name.
        WrittenInPlace,
        /// A rank deletes the previous checkpoint once it has the next, not once all ranks have it.
        OldVersionGoesFirst,
        /// A slot of a checkpoint is reused once the current rows no longer use it.
        SlotsNotKept,
        /// A rank resumes from its own newest checkpoint, even if other ranks do not have it.
        OwnNewestTaken,
        /// The others are deleted before the checkpoint to resume is durable on all ranks.
        FoundNotDurable,
        /// Checkpoints that only some ranks have stay.
        OtherVersionsStay,
        /// The checksum of a page is not checked.
        PagesNotChecked,
        /// The checksum of a checkpoint's file is not checked.
        VersionNotChecked,
        /// The checksums of pages of the stored graph are not checked.
        GraphPagesNotChecked,
        /// Some changed pages in memory are not written.
        ChangesMissed,
        /// Sets of the driver are empty in a resumed run.
        SetsForgotten,
        /// The log of calls leaves out changes of sets.
        EntriesForgotten,
        /// A checkpoint is published between a decision and the call that relies on it.
        DecisionForgotten,
        /// A run that is asked to stop does not finish its pass first.
        PatienceForgotten,
        /// The error of a sync is ignored.
        FailedSyncIgnored,
        /// A directory that cannot be listed counts as empty.
        FailedListIgnored,
        /// A run does not record its end before it deletes its checkpoints.
        EndNotSaid,
        /// Sums are not added in the order of batches.
        SumsOutOfOrder,
        /// Storage engines hand out chunks of others too, so that these are served twice.
        ChunkServedTwice,
        /// A storage engine never hands out each eighth chunk of a batch.
        ChunkForgotten,
        /// An owner drops the accumulators of its helpers.
        HelpLost,
        /// An owner merges the accumulators of its helpers twice.
        HelpMergedTwice,
        /// A rank hands over the accumulators of the superstep before once more.
        OldUpdatesFolded,
        /// A rank takes a storage engine's answer for that to its first request.
        AnswerOfOtherBatch,
        /// A bucket that comes twice is folded twice.
        DoubledFolded,
        /// A bucket is acknowledged before it is opened and folded.
        AcknowledgedFirst,
        /// A stream gives the numbers of a superstep once more in the next.
        NumberReused,
        /// A receiver does not see that a bucket is the last one.
        LastIgnored,
        /// A receiver is done with the last bucket, whatever is missing before it.
        LastBeforeGap,
        /// A missing bucket is sent again to another lane.
        ResentElsewhere,
        /// The tag of a bucket is not checked.
        TagNotChecked,
        /// A bucket of an earlier start is accepted.
        OldKeyAccepted,
        /// A jumbo message is folded although one of its parts is missing.
        JumboPartLost,
    }

    impl Failpoint {
        /// Returns true if this failpoint is active.
        #[inline(always)]
        pub fn is_active(self) -> bool {
            ACTIVE.load(Ordering::Relaxed) == self as u8 + 1
        }
    }

    /// Activates one failpoint in this process, in place of the previous one; `None` ends it.
    pub fn activate(failpoint: Option<Failpoint>) {
        let number = failpoint.map_or(0, |failpoint| failpoint as u8 + 1);
        ACTIVE.store(number, Ordering::Relaxed);
    }
}
