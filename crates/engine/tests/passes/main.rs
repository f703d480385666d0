//! Programs of the tests' own, through the calls that a program's author has: one kind of program a file.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod asks;
mod chunks;
mod common;
mod counts;
mod fixpoint;
mod gas;
mod level_scan;
mod misuse;
mod pregel;
mod random_programs;
mod records;
mod row_pages;
mod search_ranks;
mod slot;
mod tiers;
mod wide_rows;

use common::{Memory, Mode, Plain, all, engine, random, run};
