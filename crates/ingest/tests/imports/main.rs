//! Imports as the rest of the program calls them: one behaviour a file.

mod common;
mod degree_order;
mod disk_faults;
mod generated;
mod growing_input;
mod input_files;
mod parquet_rows;
mod random_inputs;
mod ranks;
mod resume;
mod stream;
mod text_files;
mod wide_indices;
