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

    /// Returns the leases of exactly the bytes taken.
    pub fn into_leases(mut self) -> Vec<Lease> {
        // Only the last step can have unused bytes.
        if let Some(last) = self.leases.last_mut() {
            last.give_back(self.unused);
        }
        self.leases
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_are_of_the_bytes_taken() {
        let budget = MemoryBudget::new(100);
        let mut lease = GrowingLease::new(&budget, "a list", 30);
        for bytes in [1, 29, 5, 40] {
            lease.take(bytes).unwrap();
        }
        assert!(lease.take(30).is_err(), "{} are free", budget.available());
        let leases = lease.into_leases();
        assert_eq!(budget.available(), 25);
        drop(leases);
        assert_eq!(budget.available(), 100);
    }
}
