//! Files that are no edge lists, known by their first bytes or their ending, and what to do with each.

const MATRIX_MARKET: &str = "this is a Matrix Market file, which is not read; remove the lines that start with % and the line of sizes below them (grep -v '^%' FILE | tail -n +2 > FILE.el), and say --undirected if its first line says symmetric";
const METIS: &str = "this is a METIS file, an adjacency list, which is not read; write one edge a line (networkx or networkit convert it)";
const GML: &str =
    "this is a GML file, which is not read; convert it, as networkx.write_edgelist does";
const XML: &str = "this is an XML file (GraphML, GEXF), which is not read; convert it, as networkx.write_edgelist does";
const HTML: &str = "this is an HTML page, which is not read; download the file itself instead of the page that shows it";
const DOT: &str =
    "this is a Graphviz file, which is not read; convert it, as networkx.write_edgelist does";
const PAJEK: &str =
    "this is a Pajek file, which is not read; convert it, as networkx.write_edgelist does";
const JSON: &str = "this is a JSON file, which is not read; write its edges as CSV or Parquet, as DuckDB does: COPY (SELECT source, target FROM 'FILE') TO 'edges.parquet'";
const TRIPLES: &str = "this is a file of RDF triples, which is not read; write subject and object as two columns; if they are the first and the third, say --delimiter space --source-column 1 --target-column 3";
const ARROWS: &str = "this is a list of edges with an arrow or a dash between their ends, which is not read; say --delimiter space --source-column 1 --target-column 3";
const DIMACS: &str = "this is a DIMACS file by its lines, which is not read; say --format dimacs";
const SHEET: &str = "this is a spreadsheet or another zip archive, which is not read; save the sheet as CSV, or unpack the archive";
const OFFICE: &str =
    "this is a file of Windows or an old spreadsheet, which is not read; save the sheet as CSV";
const DATABASE: &str =
    "this is an SQLite database, which is not read; export its table of edges as CSV or Parquet";
const COLUMNAR: &str = "this is a columnar or array file, which is not read; write it as Parquet, as DuckDB, Polars and pandas do";
const ARCHIVE: &str = "this is an archive or compressed in a way, which is not read; unpack it, or pack it with gzip or zstd";
const TUPLES: &str = "this is a list of pairs in parentheses, which is not read; write each pair as two columns without them (sed 's/[()]//g')";
const LISTS: &str = "this is a list of neighbours after each vertex and a colon, which is not read; write one edge a line, or say --source-column 1 --target-column 2 if it is one";
const SINGLE_QUOTES: &str = "this is a list with columns in single quotes, which is not read; remove them (sed \"s/'//g\"), or say --source-column 1 --target-column 2 if they are part of the ids";
const ADJACENCY: &str = "this is an adjacency list of NetworkX, which is not read; write it with networkx.write_edgelist";

/// Returns the error of a foreign format, by the ending of a name.
pub(crate) fn by_ending(ending: &str) -> Option<&'static str> {
    Some(match ending {
        "mtx" | "mm" => MATRIX_MARKET,
        "graph" | "metis" => METIS,
        "gml" => GML,
        "graphml" | "gexf" | "xml" => XML,
        "html" | "htm" => HTML,
        "dot" | "gv" => DOT,
        "net" | "paj" => PAJEK,
        "json" | "jsonl" | "ndjson" => JSON,
        "nt" | "nq" | "ttl" | "rdf" => TRIPLES,
        "adjlist" => ADJACENCY,
        "xlsx" | "xls" | "ods" => SHEET,
        "db" | "sqlite" => DATABASE,
        "arrow" | "feather" | "ipc" | "orc" | "avro" | "npy" | "npz" | "pkl" | "h5" => COLUMNAR,
        "xz" | "bz2" | "lz4" | "zip" | "7z" | "rar" | "tar" | "tgz" => ARCHIVE,
        _ => return None,
    })
}

/// Returns the error of a foreign format, by the first bytes of any file.
pub(crate) fn by_magic(head: &[u8]) -> Option<&'static str> {
    const MAGICS: &[(&[u8], &str)] = &[
        (b"PK\x03\x04", SHEET),
        (b"\xd0\xcf\x11\xe0", OFFICE),
        (b"SQLite format 3", DATABASE),
        (b"ARROW1", COLUMNAR),
        (b"FEA1", COLUMNAR),
        (b"ORC", COLUMNAR),
        (b"Obj\x01", COLUMNAR),
        (b"\x93NUMPY", COLUMNAR),
        (b"\x89HDF", COLUMNAR),
    ];
    let magic = |(magic, _): &&(&[u8], &str)| head.starts_with(magic);
    MAGICS.iter().find(magic).map(|(_, problem)| *problem)
}

/// Returns the error of a foreign format, by the first lines of a text.
pub(crate) fn by_text(head: &[u8]) -> Option<&'static str> {
    let head = &head[..head.len().min(64 << 10)];
    if head.starts_with(b"%%MatrixMarket") {
        return Some(MATRIX_MARKET);
    }
    let text = String::from_utf8_lossy(head);
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    if lines.clone().take(3).any(|line| line.starts_with("# GMT "))
        && lines
            .clone()
            .next()
            .is_some_and(|line| line.starts_with("#/") || line.starts_with("#"))
        && is_adjacency(lines.clone())
    {
        return Some(ADJACENCY);
    }
    let first = lines.find(|line| !is_comment(line))?;
    let second = lines.find(|line| !is_comment(line));
    let lower = first.to_ascii_lowercase();
    let words: Vec<&str> = first.split_whitespace().collect();
    let is = |starts: &[&str]| starts.iter().any(|start| lower.starts_with(start));
    if is(&["<!doctype html", "<html"]) {
        return Some(HTML);
    }
    if is(&["<?xml", "<graphml", "<gexf", "<svg", "<!doctype"]) {
        return Some(XML);
    }
    if lower == "graph ["
        || is(&["graph [", "creator \""])
        || lower == "graph" && second == Some("[")
    {
        return Some(GML);
    }
    let opens = |line: &str| line.contains('{');
    if is(&["digraph", "strict graph", "strict digraph"])
        && (opens(first) || second.is_some_and(opens))
        || is(&["graph "]) && opens(first)
    {
        return Some(DOT);
    }
    if is(&["*vertices", "*network", "*arcs", "*edges"]) {
        return Some(PAJEK);
    }
    if first.starts_with(['{', '[']) && (first.contains([':', '"', ',']) || first.len() == 1) {
        return Some(JSON);
    }
    if first.ends_with('.')
        && words.len() >= 4
        && (first.starts_with('<') || first.starts_with("_:"))
        || is(&["@prefix", "@base", "prefix "]) && first.contains('<')
    {
        return Some(TRIPLES);
    }
    let arrows = ["->", "--", "<->", "=>", "<-", "→", "-->"];
    if words.len() >= 3 && arrows.contains(&words[1]) {
        return Some(ARROWS);
    }
    let both = |is: &dyn Fn(&str) -> bool| is(first) && second.is_none_or(is);
    if both(&|line| line.starts_with('(') && line.ends_with([')', ',']) && line.contains(',')) {
        return Some(TUPLES);
    }
    let after_colon = |line: &str| {
        let mut words = line.split_whitespace();
        words
            .next()
            .is_some_and(|word| word.len() > 1 && word.ends_with(':'))
            && words.next().is_some()
    };
    if both(&after_colon) {
        return Some(LISTS);
    }
    let in_single_quotes = |line: &str| {
        let apart = ["','", "';'", "'\t'", "' '"];
        line.starts_with('\'')
            && line.ends_with('\'')
            && apart.iter().any(|apart| line.contains(apart))
    };
    if both(&in_single_quotes) {
        return Some(SINGLE_QUOTES);
    }
    let starts_with_c = lower == "c" || lower.starts_with("c ");
    let problem = text
        .lines()
        .take(200)
        .any(|line| line.starts_with("p ") && is_dimacs(line));
    if is_dimacs(first) && (first.starts_with("p ") || second.is_some_and(is_dimacs))
        || starts_with_c && problem
    {
        return Some(DIMACS);
    }
    None
}

/// True if a line is one of a DIMACS file: the problem, an arc or an edge.
fn is_dimacs(line: &str) -> bool {
    let numbers = |words: &[&str]| words.iter().all(|word| word.parse::<f64>().is_ok());
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        ["p", _, nodes, edges] => numbers(&[nodes, edges]),
        ["a" | "e", ref arc @ ..] => arc.len() == 3 && numbers(arc),
        _ => false,
    }
}

fn is_comment(line: &str) -> bool {
    line.starts_with('#') || line.starts_with('%') || line.starts_with("//")
}

/// True if lines of blanks have different numbers of words.
fn is_adjacency<'a>(lines: impl Iterator<Item = &'a str>) -> bool {
    let mut widths = lines
        .filter(|line| !is_comment(line))
        .map(|line| line.split_whitespace().count());
    let first = widths.next();
    widths.any(|width| Some(width) != first) || first == Some(1)
}
