//! The library as a program calls it: one behaviour a file.

mod validate;
