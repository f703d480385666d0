//! Programs of the user: functions that numba or a C compiler made, by their addresses.

#![expect(unsafe_code, reason = "takes addresses of functions from the user")]

use std::collections::BTreeMap;

use graphmill::advanced::foreign_program::{
    ForeignFold, ForeignProgram, ForeignType, SHARED_BEGIN, VERTEX_WORDS,
};
use graphmill::advanced::{ForeignAddresses, ForeignFunctions};
use pyo3::prelude::*;

/// A program as `graphmill/program.py` describes it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct ProgramSpec {
    /// By the names of [`ForeignAddresses`]; 0 for none.
    addresses: BTreeMap<String, usize>,
    columns: Vec<(String, String)>,
    result: usize,
    shared: Vec<u64>,
    vertices: Vec<(usize, String)>,
    message: String,
    /// `sum`, `min`, `max` or `own`.
    fold: String,
    /// The first accumulator of an own fold.
    identity: u64,
    exact: bool,
    weighted: bool,
    everywhere: bool,
    against: bool,
    passes: Option<u64>,
    known_as: BTreeMap<String, String>,
}

impl ProgramSpec {
    /// The program, or its mistake.
    pub(crate) fn program(self) -> Result<ForeignProgram, String> {
        let at = |name: &str| self.addresses.get(name).copied().unwrap_or_default();
        let addresses = ForeignAddresses {
            before: at("before"),
            begin: at("begin"),
            signal: at("signal"),
            fold: at("fold"),
            merge: at("merge"),
            apply: at("apply"),
        };
        let shared_words = SHARED_BEGIN + self.shared.len();
        // SAFETY: the user says that these are addresses of such functions: those that numba compiled have just these types, and access
        // the words that their records have. For other addresses the documentation of `graphmill.EdgeProgram` demands it of the user, as
        // `ctypes` does. The package keeps the functions for as long as the process lives.
        let functions = unsafe { ForeignFunctions::at(&addresses, shared_words, VERTEX_WORDS) };
        let fold = match &*self.fold {
            "sum" => ForeignFold::Sum,
            "min" => ForeignFold::Least,
            "max" => ForeignFold::Greatest,
            _ => ForeignFold::Own(self.identity),
        };
        let columns = self
            .columns
            .into_iter()
            .map(|(name, kind)| (name, kind_of(&kind)));
        Ok(ForeignProgram {
            functions: functions.ok_or("the program lacks begin, signal, apply or merge")?,
            columns: columns.collect(),
            result: self.result,
            shared: self.shared,
            vertices: self.vertices,
            message: kind_of(&self.message),
            fold,
            exact: self.exact,
            weighted: self.weighted,
            everywhere: self.everywhere,
            against: self.against,
            passes: self.passes,
            identity: self.known_as,
        })
    }
}

/// The type of that name.
fn kind_of(name: &str) -> ForeignType {
    match name {
        "int64" => ForeignType::Integer,
        "vertex" => ForeignType::Vertex,
        _ => ForeignType::Float,
    }
}
