//! Failpoints: mistakes that tests switch on, one at a time, to prove that a check finds each. [`failpoint!`] places one.
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

/// Places a mistake in builds with the feature `failpoints`; this one has no code.
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
            /// A mistake in how checkpoints or files are written, read, or resumed from.
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub enum Failpoint {
                $($(#[$doc])* $name,)*
            }

            impl Failpoint {
                /// All failpoints, in the order of their declaration.
                pub const ALL: &[Failpoint] = &[$(Failpoint::$name,)*];
            }
        };
    }

    failpoints! {
        /// The pages of a version are not made durable before its file is.
        PagesNotSynced,
        /// A step of an import is said to have ended before what it wrote is durable.
        StepNotSynced,
        /// A file gets its name before it is durable.
        FileNotSynced,
        /// A file is written under its name.
        WrittenInPlace,
        /// The version before goes when this rank has the next, not when all have.
        OldVersionGoesFirst,
        /// A slot that a version has is free once the current rows have it no more.
        SlotsNotKept,
        /// The newest version of a rank is taken, whatever the others have.
        OwnNewestTaken,
        /// The others are deleted before the checkpoint to resume is durable on all ranks.
        FoundNotDurable,
        /// Versions that only some ranks have stay.
        OtherVersionsStay,
        /// What a page holds is not compared with its checksum.
        PagesNotChecked,
        /// The same of a checkpoint's file.
        VersionNotChecked,
        /// The same of pages of the stored graph.
        GraphPagesNotChecked,
        /// Pages in memory that changed are not all written.
        ChangesMissed,
        /// Sets of the driver are empty in a resumed run.
        SetsForgotten,
        /// The log of calls leaves out changes of sets.
        EntriesForgotten,
        /// A version is published between a decision and the call that relies on it.
        DecisionForgotten,
        /// A run that is asked to stop does not end its pass first.
        PatienceForgotten,
        /// A sync that failed is taken for one that did not.
        FailedSyncIgnored,
        /// A folder that cannot be listed is taken for an empty one.
        FailedListIgnored,
        /// A run does not say that it is done before its versions go.
        EndNotSaid,
        /// Sums are added up in another order than that of batches.
        SumsOutOfOrder,
    }

    impl Failpoint {
        /// Returns true if this failpoint is active.
        #[inline(always)]
        pub fn is_active(self) -> bool {
            ACTIVE.load(Ordering::Relaxed) == self as u8 + 1
        }
    }

    /// Activates one failpoint in this process, in place of the one before.
    pub fn activate(failpoint: Option<Failpoint>) {
        let number = failpoint.map_or(0, |failpoint| failpoint as u8 + 1);
        ACTIVE.store(number, Ordering::Relaxed);
    }
}
