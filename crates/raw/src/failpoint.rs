//! Mistakes that tests plant in the code, one at a time, to see that they are found. Without the feature `planted`, which no build but
//! that of tests has, there are none and nothing is asked.

#[cfg(feature = "planted")]
use std::sync::atomic::{AtomicU8, Ordering};

/// A mistake in how versions of a run are published, read, or gone on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failpoint {
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
    /// The others go before the version that is gone on with is durable on all ranks.
    FoundNotDurable,
    /// Versions that only some ranks have stay.
    OtherVersionsStay,
    /// What a page holds is not compared with its checksum.
    PagesNotChecked,
    /// The same of a version's file.
    VersionNotChecked,
    /// The same of frames of the stored graph.
    FramesNotChecked,
    /// Pages in memory that changed are not all written.
    ChangesMissed,
    /// Sets of the driver are empty in a run that goes on.
    SetsForgotten,
    /// Of what calls were told, changes of sets are left out.
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
    /// All of them.
    pub const ALL: [Failpoint; 21] = [
        Failpoint::PagesNotSynced,
        Failpoint::StepNotSynced,
        Failpoint::FileNotSynced,
        Failpoint::WrittenInPlace,
        Failpoint::OldVersionGoesFirst,
        Failpoint::SlotsNotKept,
        Failpoint::OwnNewestTaken,
        Failpoint::FoundNotDurable,
        Failpoint::OtherVersionsStay,
        Failpoint::PagesNotChecked,
        Failpoint::VersionNotChecked,
        Failpoint::FramesNotChecked,
        Failpoint::ChangesMissed,
        Failpoint::SetsForgotten,
        Failpoint::EntriesForgotten,
        Failpoint::DecisionForgotten,
        Failpoint::PatienceForgotten,
        Failpoint::FailedSyncIgnored,
        Failpoint::FailedListIgnored,
        Failpoint::EndNotSaid,
        Failpoint::SumsOutOfOrder,
    ];

    /// Whether it is planted.
    #[inline(always)]
    pub fn is_planted(self) -> bool {
        #[cfg(feature = "planted")]
        return PLANTED.load(Ordering::Relaxed) == self as u8 + 1;
        #[cfg(not(feature = "planted"))]
        false
    }
}

#[cfg(feature = "planted")]
static PLANTED: AtomicU8 = AtomicU8::new(0);

/// Plants a mistake in this process, in place of the one before.
#[cfg(feature = "planted")]
pub fn plant(mistake: Option<Failpoint>) {
    PLANTED.store(
        mistake.map_or(0, |mistake| mistake as u8 + 1),
        Ordering::Relaxed,
    );
}
