//! Groups of a block, as the index of a cell samples them.

/// Groups of a block that its index knows the sources of: as many as make its entry one cache line.
pub(crate) const GROUP_SAMPLES: usize = 12;

/// Returns which of the groups of a block a sample belongs to: samples lie evenly.
#[inline]
pub(crate) fn group_of_sample(sample: usize, groups: usize) -> usize {
    (sample + 1) * groups / (GROUP_SAMPLES + 1)
}

/// What an index knows of the group of a source in a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Group {
    /// Its number.
    Number(usize),
    /// That of the sample with this number, whose source this is, or one behind it.
    From(usize, u32),
    /// Only the block's own list can tell.
    #[default]
    Unknown,
}
