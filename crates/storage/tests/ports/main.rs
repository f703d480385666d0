//! Disks, workers and memory tiers as the rest of the program calls them: one behaviour a file.

mod bytes_come_back;
mod disks;
mod jobs_run;
mod memory_lies_where_it_was_placed;
mod names_and_small_files;
mod planted_faults;
