//! Disks, workers and memory tiers as the rest of the program calls them: one behaviour a file.

mod disks;
mod faults;
mod files;
mod tiers;
mod transfers;
mod worker_pool;
