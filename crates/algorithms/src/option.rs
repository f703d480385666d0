//! The options of an algorithm, as its entry describes them.

/// The type of an option's value.
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
    /// A set of vertices: a file of ids, or `odd` or `even` for the vertices with such ids.
    VertexSet,
    /// A value for each vertex: a file of values, or `ones`.
    VertexValues,
    /// A probability for each vertex: a file of values from 0 to 1; 0.5 where it has none.
    VertexProbabilities,
}

impl OptionKind {
    /// The values that are words, not the name of a file; `./odd` is a file of that name.
    #[must_use]
    pub fn words(self) -> &'static [&'static str] {
        match self {
            OptionKind::VertexSet => &["odd", "even"],
            OptionKind::VertexValues => &["ones"],
            OptionKind::Value
            | OptionKind::Flag
            | OptionKind::Vertex
            | OptionKind::Vertices
            | OptionKind::VertexProbabilities => &[],
        }
    }

    /// The value of a vertex without a row in a file.
    #[must_use]
    pub fn missing(self) -> f64 {
        match self {
            OptionKind::VertexProbabilities => 0.5,
            _ => 0.0,
        }
    }
}

/// One option of an algorithm.
#[derive(Debug)]
pub struct OptionSpec {
    /// Its name, without dashes.
    pub name: &'static str,
    /// Placeholder of its value in a help text.
    pub value_name: &'static str,
    /// Type of its value.
    pub kind: OptionKind,
    /// True if the algorithm cannot run without it.
    pub required: bool,
    /// Its value when it is not given, if there is one.
    pub default: Option<&'static str>,
    /// Description in one line.
    pub help: &'static str,
}

impl OptionSpec {
    /// Creates an option with a value, which need not be given; `names` are its own and that of its value.
    pub(crate) const fn value(
        [name, value_name]: [&'static str; 2],
        default: Option<&'static str>,
        help: &'static str,
    ) -> OptionSpec {
        OptionSpec {
            name,
            value_name,
            kind: OptionKind::Value,
            required: false,
            default,
            help,
        }
    }

    /// Creates a flag.
    pub(crate) const fn flag(name: &'static str, help: &'static str) -> OptionSpec {
        OptionSpec {
            kind: OptionKind::Flag,
            ..OptionSpec::value([name, ""], None, help)
        }
    }
}
