//! Ranks over every fabric: one behaviour a file.

#![expect(
    clippy::disallowed_methods,
    reason = "processes take real time, and their plugin is written beside the ports"
)]

mod fabrics;
mod mpi;
mod mpirun;
mod simulated;
