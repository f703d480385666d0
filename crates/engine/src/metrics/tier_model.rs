//! The cost model of a slow memory tier.

/// The extra cost of a byte on a slow tier against DRAM, spent as time on a machine without that tier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TierModel {
    /// Times that reading takes longer than from DRAM.
    pub read: f64,
    /// Times that writing takes longer.
    pub write: f64,
    /// Bytes a second that one thread gets from DRAM.
    pub dram_bandwidth: f64,
}

impl TierModel {
    /// Optane memory by Capelli et al. (iPregel on NVRAM, section "Related work").
    ///
    /// Reading is 2.4 times slower than DDR4, writing 6 times. A thread's share of DRAM is that of a core of their machine: six
    /// channels of DDR4-2933 for 24 cores.
    pub const PAPER: TierModel = TierModel {
        read: 2.4,
        write: 6.0,
        dram_bandwidth: 6.0 * 2.933e9 * 8.0 / 24.0,
    };

    /// Returns the extra seconds for the bytes read and written.
    pub(crate) fn seconds(&self, read: u64, written: u64) -> f64 {
        let more = read as f64 * (self.read - 1.0) + written as f64 * (self.write - 1.0);
        more / self.dram_bandwidth
    }
}
