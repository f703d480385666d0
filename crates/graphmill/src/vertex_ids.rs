//! From the id of a vertex, in whatever form it is given, to its index.

use std::str::FromStr;

use graphmill_graph::{FormatError, IdKind, PageCache, StoredGraph, VertexId, uuid_of};

/// The index of the vertex with an id; `None` if the graph has no such vertex.
///
/// # Errors
/// The ids cannot be read.
pub(crate) fn index_of(
    graph: &StoredGraph,
    reader: &mut PageCache,
    id: VertexId,
) -> Result<Option<u64>, FormatError> {
    match of_kind(graph.id_kind(), id) {
        Some(id) => graph.index_of(reader, &id),
        None => Ok(None),
    }
}

/// The place of the id of a vertex in ascending order; `None` if the graph has no such vertex.
///
/// # Errors
/// The ids cannot be read.
pub(crate) fn rank_of(
    graph: &StoredGraph,
    reader: &mut PageCache,
    id: VertexId,
) -> Result<Option<u64>, FormatError> {
    match of_kind(graph.id_kind(), id) {
        Some(id) => graph.rank_of_id(reader, &id),
        None => Ok(None),
    }
}

/// The id as graphs with ids of a kind have it.
///
/// Digits are a number if ids are integers, and a number is its digits if they are text. `007` and `+7` are no numbers.
/// `None` if no such graph has it.
pub(crate) fn of_kind(kind: IdKind, id: VertexId) -> Option<VertexId> {
    use VertexId::{Integer, Signed, Text, Uuid};
    fn parsed<T: FromStr + ToString>(text: &[u8]) -> Option<T> {
        let id: T = str::from_utf8(text).ok()?.parse().ok()?;
        (id.to_string().as_bytes() == text).then_some(id)
    }
    Some(match (kind, id) {
        (IdKind::Dense | IdKind::Integer, Signed(id)) => Integer(id.try_into().ok()?),
        (IdKind::Dense | IdKind::Integer, Text(id)) => Integer(parsed(&id)?),
        (IdKind::Signed, Integer(id)) => Signed(id.try_into().ok()?),
        (IdKind::Signed, Text(id)) => Signed(parsed(&id)?),
        (IdKind::Text, id @ (Integer(_) | Signed(_) | Uuid(_))) => Text(id.to_string().into()),
        (IdKind::Uuid, Text(id)) => Uuid(uuid_of(&id)?),
        (IdKind::Uuid, Integer(_) | Signed(_)) => return None,
        (IdKind::Dense | IdKind::Integer | IdKind::Signed, Uuid(_)) => return None,
        (_, id) => id,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_of_another_form_is_the_same_id() {
        let of = |kind, id: VertexId| of_kind(kind, id).map(|id| id.to_string());
        for kind in [IdKind::Dense, IdKind::Integer, IdKind::Signed, IdKind::Text] {
            assert_eq!(of(kind, 7.into()).as_deref(), Some("7"));
            assert_eq!(of(kind, 7_u64.into()).as_deref(), Some("7"));
            assert_eq!(of(kind, "7".into()).as_deref(), Some("7"));
        }
        assert_eq!(of_kind(IdKind::Text, (-7).into()), Some("-7".into()));
        assert_eq!(of_kind(IdKind::Signed, "-7".into()), Some((-7).into()));
        for id in [
            VertexId::from(-7),
            "x".into(),
            "".into(),
            VertexId::Text(vec![0xff]),
        ] {
            assert_eq!(of_kind(IdKind::Integer, id), None);
        }
        assert_eq!(of_kind(IdKind::Signed, u64::MAX.into()), None);
        for text in ["07", "+7", "-0", "-07", " 7"] {
            for kind in [IdKind::Dense, IdKind::Integer, IdKind::Signed] {
                assert_eq!(of_kind(kind, text.into()), None, "{text}");
            }
            assert_eq!(of_kind(IdKind::Text, text.into()), Some(text.into()));
        }
    }
}
