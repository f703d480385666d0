//! Options of reading files of edges.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use graphmill::{EdgeColumns, EdgeKind, Format, Header, IdType, Ids, OnError};

use super::edges::EdgeArgs;

/// Options of reading files of edges.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Reading edges")]
pub(crate) struct ReadArgs {
    /// File format; auto decides by the names
    ///
    /// text (SNAP, .el, .wel), csv, ldbc (.v, .e), dimacs (a u v w), raw-u32 or raw-u64 (little-endian pairs), parquet. In a directory with
    /// .e files, only these and .v files are read.
    #[arg(long, value_name = "auto|text|csv|...", value_enum, default_value_t)]
    pub(crate) format: Format,
    /// Type of vertex ids, which results have too
    ///
    /// int32, int64, uint32, uint64, int (as wide as the columns say, else 64 bits), string, or uuid. With auto the columns of Parquet
    /// files decide, or the first 64 MiB.
    #[arg(long, value_name = "auto|int64|string|...", default_value = "auto", value_parser = ids())]
    pub(crate) ids: AnyIds,
    /// All integers below N are the vertices, and no edge has another id
    ///
    /// The ids are integers, and the graph stores none. With --layout stream the input is read once then.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) vertices_below: Option<u64>,
    /// Keep weights, in this precision
    ///
    /// The weights are in --weight-column, else in the column named weight, else in the one after the ids.
    #[arg(long, value_name = "none|f32|f64", value_enum, default_value_t = EdgeKind::None)]
    pub(crate) weights: EdgeKind,
    /// Column of the sources, by name or number from 1
    ///
    /// By default a column with a known name such as source, src or from, else the first.
    #[arg(long, value_name = "COLUMN")]
    pub(crate) source_column: Option<String>,
    /// Column of the destinations
    ///
    /// By default a column with a known name such as target, dst or to, else the second.
    #[arg(long, value_name = "COLUMN")]
    pub(crate) target_column: Option<String>,
    /// Column of the weights
    #[arg(long, value_name = "COLUMN")]
    pub(crate) weight_column: Option<String>,
    /// Keep a record of fields with each edge, for programs of your own
    ///
    /// Each field is COLUMN:TYPE or NAME=COLUMN:TYPE: a column by name or number from 1, and u8, u16, u32, u64, i8, i16, i32, i64, f32 or
    /// f64. A record has at most 16 bytes. Example: amount:f32,day:u16,kind=7:u8.
    #[arg(long, value_name = "FIELDS", conflicts_with_all = ["weights", "weight_column"])]
    pub(crate) edge_data: Option<EdgeColumns>,
    /// Read column names from the first line
    ///
    /// With auto the content of that line decides.
    #[arg(long, value_name = "auto|yes|no", value_enum, default_value_t)]
    pub(crate) header: Header,
    /// Separator of columns: one character, tab or space
    ///
    /// By default the first lines decide.
    #[arg(long, value_name = "CHAR")]
    pub(crate) delimiter: Option<graphmill::Delimiter>,
    /// Meaning of quotes
    ///
    /// Quotes enclose columns ('"'), or are text (none). With auto they enclose in CSV and TSV.
    #[arg(long, value_name = "auto|none|'\"'", default_value = "auto", value_parser = quote)]
    pub(crate) quote: graphmill::Quote,
    /// Prefix of comment lines
    ///
    /// Lines with this prefix are comments anywhere. With auto, lines before the first edge are comments if they start with #, % or //.
    #[arg(long, value_name = "auto|none|PREFIX", default_value = "auto", value_parser = comments)]
    pub(crate) comments: graphmill::Comments,
    /// File of vertex ids, for vertices without edges
    ///
    /// The ids are in the column named id or similar, else in the first.
    #[arg(long, value_name = "FILE")]
    pub(crate) vertices: Option<PathBuf>,
    /// Stop at a line that is not an edge, or skip and count it
    #[arg(long, value_name = "stop|skip", value_enum, default_value_t)]
    pub(crate) on_error: OnError,
    #[command(flatten)]
    pub(crate) edges: EdgeArgs,
}

/// The type of ids, and the exact one; `None` leaves it to the input.
type AnyIds = (Option<Ids>, Option<IdType>);

/// Returns the parser of the type of ids.
fn ids() -> impl TypedValueParser<Value = AnyIds> {
    let names = [
        "auto", "int", "int32", "int64", "uint32", "uint64", "string", "uuid",
    ];
    PossibleValuesParser::new(names).map(|name| {
        let ids = match name.as_str() {
            "int" => Some(Ids::Integer),
            "string" => Some(Ids::Text),
            _ => None,
        };
        (ids, IdType::ALL.into_iter().find(|one| one.name() == name))
    })
}

fn quote(text: &str) -> Result<graphmill::Quote, String> {
    use graphmill::Quote;
    match text {
        "auto" => Ok(Quote::Auto),
        "none" => Ok(Quote::None),
        "\"" => Ok(Quote::Encloses),
        _ => Err("auto, none or '\"'".into()),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "what clap asks for")]
fn comments(text: &str) -> Result<graphmill::Comments, String> {
    use graphmill::Comments;
    Ok(match text {
        "auto" => Comments::Auto,
        "none" | "" => Comments::None,
        prefix => Comments::Prefix(prefix.into()),
    })
}
