//! The cost model of a slow memory tier.

/// What a byte on a slow tier costs more than one in DRAM: the time that is spent when a machine has no such tier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Charge {
    /// Times that reading takes longer than from DRAM.
    pub read: f64,
    /// Times that writing takes longer.
    pub write: f64,
    /// Bytes a second that one thread gets from DRAM.
    pub dram_bandwidth: f64,
}

impl Charge {
    /// Optane memory as Capelli et al. quote it (iPregel on NVRAM, section "Related work"): reading is 2.4 times slower than DDR4, writing
    /// 6 times. A thread's share of DRAM is that of a core of their machine: six channels of DDR4-2933 for 24 cores.
    pub const PAPER: Charge = Charge {
        read: 2.4,
        write: 6.0,
        dram_bandwidth: 6.0 * 2.933e9 * 8.0 / 24.0,
    };

    /// Seconds that so many bytes take longer.
    pub(crate) fn seconds(&self, read: u64, written: u64) -> f64 {
        let more = read as f64 * (self.read - 1.0) + written as f64 * (self.write - 1.0);
        more / self.dram_bandwidth
    }
}
