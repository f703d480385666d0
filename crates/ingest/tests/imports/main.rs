//! Imports as the rest of the program calls them: one behaviour a file.

mod a_failing_disk_leaves_no_graph;
mod a_generated_graph_is_the_import_of_its_edges;
mod a_killed_import_goes_on;
mod an_imported_graph_holds_the_input;
mod common;
mod indices_beyond_32_bits_cost_nothing;
mod parquet_rows;
mod ranks_import_one_graph;
mod text_as_found;
mod vertices_are_dealt_by_degree;
mod what_is_read_of_input_files;
