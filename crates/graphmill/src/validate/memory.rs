//! Memory that grows with the files, leased in steps and given back at the end.

use graphmill_storage::{BudgetError, Lease, MemoryBudget};

/// Memory that grows with the files, leased in steps and given back at the end.
pub(super) struct SteppedLease<'a> {
    budget: &'a MemoryBudget,
    leases: Vec<Lease>,
    spare: usize,
}

impl<'a> SteppedLease<'a> {
    const STEP_BYTES: usize = 1 << 20;

    pub(super) fn new(budget: &'a MemoryBudget) -> SteppedLease<'a> {
        SteppedLease {
            budget,
            leases: Vec::new(),
            spare: 0,
        }
    }

    pub(super) fn take(&mut self, bytes: usize) -> Result<(), BudgetError> {
        if bytes > self.spare {
            let step = (bytes - self.spare).max(Self::STEP_BYTES);
            let what = "rows of a file whose ids do not ascend, or names of groups";
            self.leases.push(self.budget.lease(what, step as u64)?);
            self.spare += step;
        }
        self.spare -= bytes;
        Ok(())
    }
}
