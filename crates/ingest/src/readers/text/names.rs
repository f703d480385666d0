//! Names of columns that programs write, by which a header and its columns are known.

/// Names of the ends of an edge, in lower case, source first. The first that a header has is taken.
const PAIRS: &[[&str; 2]] = &[
    ["unique_id_l", "unique_id_r"],
    [":start_id", ":end_id"],
    ["start_id", "end_id"],
    ["source", "target"],
    ["source", "destination"],
    ["source", "dest"],
    ["src", "dst"],
    ["src", "dest"],
    ["src", "target"],
    ["from", "to"],
    ["source_id", "target_id"],
    ["source_id", "destination_id"],
    ["src_id", "dst_id"],
    ["from_id", "to_id"],
    ["fromid", "toid"],
    ["sourceid", "targetid"],
    ["from_node", "to_node"],
    ["fromnode", "tonode"],
    ["fromnodeid", "tonodeid"],
    ["from_node_id", "to_node_id"],
    ["source_node", "target_node"],
    ["node1", "node2"],
    ["node_1", "node_2"],
    ["node_a", "node_b"],
    ["nodea", "nodeb"],
    ["node_u", "node_v"],
    ["vertex1", "vertex2"],
    ["vertex_1", "vertex_2"],
    ["v1", "v2"],
    ["u", "v"],
    ["id1", "id2"],
    ["id_1", "id_2"],
    ["id_l", "id_r"],
    ["id_a", "id_b"],
    ["left", "right"],
    ["left_id", "right_id"],
    ["ltable_id", "rtable_id"],
    ["follower", "followee"],
    ["follower_id", "followee_id"],
    ["head", "tail"],
    ["tail", "head"],
    ["start", "end"],
    ["start_node", "end_node"],
    ["_start", "_end"],
    ["parent", "child"],
    ["sender", "receiver"],
    ["caller", "callee"],
];

/// Names of a column of vertices, in lower case; so is every name that ends with `id`.
const VERTICES: &[&str] = &[
    "id",
    "unique_id",
    "vertex",
    "node",
    "vertex_id",
    "node_id",
    "name",
];

/// Names of a column of weights, in lower case.
const WEIGHTS: &[&str] = &[
    "weight",
    "weights",
    ":weight",
    "w",
    "value",
    "cost",
    "distance",
    "dist",
    "length",
    "score",
    "capacity",
    "match_weight",
];

/// Returns a name in lower case, without the type or group that Neo4j appends.
///
/// Examples are `:START_ID(Person)` and `weight:float`.
fn plain(name: &str) -> String {
    let name = name.trim().to_ascii_lowercase();
    let name = name.split('(').next().unwrap_or_default();
    match name.split_once(':') {
        Some((before, "float" | "double" | "int" | "long" | "integer" | "string")) => before.into(),
        _ => name.into(),
    }
}

/// Returns the columns of an edge's ends, if they have names that programs use.
pub(crate) fn known_pair(names: &[String]) -> Option<[usize; 2]> {
    let names: Vec<String> = names.iter().map(|name| plain(name)).collect();
    let at = |wanted: &str| names.iter().position(|name| name == wanted);
    let known = |[source, target]: &[&str; 2]| Some([at(source)?, at(target)?]);
    PAIRS.iter().find_map(known)
}

/// Returns the column that makes a key with the ids of several datasets, as Splink writes it.
pub(crate) fn ids_of_datasets(names: &[String]) -> Option<&str> {
    let names = || names.iter().map(|name| name.trim());
    let has = |wanted: &str| names().any(|name| name.eq_ignore_ascii_case(wanted));
    let all = has("unique_id_l") && has("unique_id_r") && has("source_dataset_r");
    names().find(|name| all && name.eq_ignore_ascii_case("source_dataset_l"))
}

/// Returns the column of the vertices, if it has a name that programs use.
pub(crate) fn known_vertex(names: &[String]) -> Option<usize> {
    let names: Vec<String> = names.iter().map(|name| plain(name)).collect();
    let known = |wanted: &&str| names.iter().position(|name| name == wanted);
    let neo4j = names.iter().position(|name| name.ends_with(":id"));
    neo4j.or_else(|| VERTICES.iter().find_map(known))
}

/// Returns the column of the weights, if it has a name that programs use and is not in `ends`.
pub(crate) fn known_weight(names: &[String], ends: [usize; 2]) -> Option<usize> {
    let names: Vec<String> = names.iter().map(|name| plain(name)).collect();
    WEIGHTS.iter().find_map(|wanted| {
        let is = |(at, name): (usize, &String)| name == wanted && !ends.contains(&at);
        names.iter().enumerate().position(is)
    })
}

fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    chars
        .next()
        .is_some_and(|first| first.is_alphabetic() || first == '_' || first == ':')
        && chars.all(|c| c.is_alphanumeric() || matches!(c, '_' | ':' | '.' | '-'))
}

/// True if two names look like the ends of an edge.
///
/// Examples are `record_a` and `record_b`, or `person_id` and `group_id`.
pub(crate) fn look_like_a_pair(first: &str, second: &str) -> bool {
    const ENDS: &[[&str; 2]] = &[
        ["1", "2"],
        ["0", "1"],
        ["a", "b"],
        ["l", "r"],
        ["x", "y"],
        ["u", "v"],
        ["i", "j"],
        ["_left", "_right"],
        ["_from", "_to"],
        ["_source", "_target"],
        ["_src", "_dst"],
    ];
    let (first, second) = (plain(first), plain(second));
    if !is_identifier(&first) || !is_identifier(&second) || first == second {
        return false;
    }
    let both = |end: &str| first.ends_with(end) && second.ends_with(end);
    both("_id") || both("_name") || both("_key") || both("_node") || {
        ENDS.iter().any(|[one, other]| {
            let stems = (first.strip_suffix(one), second.strip_suffix(other));
            matches!(stems, (Some(stem), Some(other)) if stem == other && stem.len() > 1)
        })
    }
}

/// True if a name looks like that of a column of vertices.
pub(crate) fn looks_like_a_vertex_name(name: &str) -> bool {
    let name = plain(name);
    is_identifier(&name) && (name == "id" || name.ends_with("_id") || name.ends_with(":id"))
}
