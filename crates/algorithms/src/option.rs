//! The options of an algorithm, as its entry describes them.

/// What an option's value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionKind {
    /// A number or a word.
    Value,
    /// Given or not.
    Flag,
    /// The id of a vertex.
    Vertex,
    /// Ids of vertices, separated by commas; a backslash takes the character after it as a part of the id.
    Vertices,
}

/// One option of an algorithm.
#[derive(Debug)]
pub struct OptionSpec {
    /// Its name, without dashes.
    pub name: &'static str,
    /// What stands for its value in a help text.
    pub value_name: &'static str,
    /// What its value is.
    pub kind: OptionKind,
    /// Whether the algorithm cannot run without it.
    pub required: bool,
    /// Its value when it is not given, if there is one.
    pub default: Option<&'static str>,
    /// What it does, in a line.
    pub help: &'static str,
}
