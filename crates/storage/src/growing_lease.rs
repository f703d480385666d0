//! Memory that grows in small steps, each leased before it is used.

use crate::error::BudgetError;
use crate::memory_budget::{Lease, MemoryBudget};

/// A lease that grows by at least `step` bytes at a time.
#[derive(Debug)]
pub struct GrowingLease<'b> {
    budget: &'b MemoryBudget,
    what: &'static str,
    step: u64,
    unused: u64,
    leases: Vec<Lease>,
}

impl<'b> GrowingLease<'b> {
    /// Makes a lease of no bytes; an error names `what`.
    pub fn new(budget: &'b MemoryBudget, what: &'static str, step: u64) -> Self {
        GrowingLease {
            budget,
            what,
            step,
            unused: 0,
            leases: Vec::new(),
        }
    }

    /// Takes `bytes` more.
    ///
    /// # Errors
    /// The budget has too few bytes for the next step.
    pub fn take(&mut self, bytes: u64) -> Result<(), BudgetError> {
        if bytes > self.unused {
            let step = (bytes - self.unused).max(self.step);
            self.leases.push(self.budget.lease(self.what, step)?);
            self.unused += step;
        }
        self.unused -= bytes;
        Ok(())
    }

    /// Returns the leases of all bytes taken.
    pub fn into_leases(self) -> Vec<Lease> {
        self.leases
    }
}
