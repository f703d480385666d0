//! The ids that files may have, and what integers among them become.

use graphmill_graph::IdType;

use crate::error::{CellProblem, LineProblem};
use crate::source::{Ids, SIGN};

/// The ids that a source takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdRange {
    pub(crate) ids: Ids,
    /// All ids are below it.
    pub(crate) below: Option<u64>,
    /// The type that the user asked for.
    pub(crate) asked: Option<IdType>,
}

/// A reason why an integer is no id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdFault {
    /// It is negative, and ids are unsigned.
    Negative,
    /// It is 2^63 or more, and ids are signed.
    Huge,
    /// It is not one of the vertices.
    Beyond { below: u64 },
    /// It is not of the type that the user asked for.
    OtherType { id_type: IdType },
}

impl IdRange {
    /// All ids of a kind.
    pub(crate) fn all(ids: Ids) -> Self {
        Self {
            ids,
            below: None,
            asked: None,
        }
    }

    /// Returns the greatest integer that [`IdRange::deliver`] takes.
    pub(crate) fn last(&self) -> u64 {
        // Without vertices no id is right, but there is no number below 0: the sink refuses the edge.
        let below = self.below.map(|below| below.saturating_sub(1));
        let of_type = self.asked.and_then(IdType::integer_max);
        let of_kind = match self.ids {
            Ids::Signed | Ids::Wrapping => i64::MAX as u64,
            Ids::Integer | Ids::Text | Ids::Uuid => u64::MAX,
        };
        let limits = [below, of_type].into_iter().flatten();
        limits.fold(of_kind, u64::min)
    }

    /// Returns the id that a source delivers for an integer.
    ///
    /// # Errors
    /// The integer is no id of this source.
    #[inline]
    pub(crate) fn deliver(&self, number: i128) -> Result<u64, IdFault> {
        if let Some(id_type) = self.asked
            && let Some(greatest) = id_type.integer_max()
        {
            let greatest = i128::from(greatest);
            let least = if id_type.is_signed() { !greatest } else { 0 };
            if !(least..=greatest).contains(&number) {
                return Err(IdFault::OtherType { id_type });
            }
        }
        let fault = match number < 0 {
            true => IdFault::Negative,
            false => IdFault::Huge,
        };
        let signed = || i64::try_from(number).map(|number| number as u64);
        let id = match self.ids {
            Ids::Signed => signed().map(|id| id ^ SIGN),
            Ids::Wrapping => signed(),
            Ids::Integer | Ids::Text | Ids::Uuid => number.try_into(),
        };
        let id = id.map_err(|_| fault)?;
        match self.below {
            Some(below) if number >= below.into() && below > 0 => Err(IdFault::Beyond { below }),
            Some(_) if number < 0 => Err(IdFault::Negative),
            _ => Ok(id),
        }
    }
}

impl LineProblem {
    /// The problem with the id in a column.
    pub(crate) fn of_id(fault: IdFault, column: usize) -> Self {
        match fault {
            IdFault::Negative => LineProblem::Negative { column },
            IdFault::Huge => LineProblem::Huge { column },
            IdFault::Beyond { below } => LineProblem::Beyond { column, below },
            IdFault::OtherType { id_type } => LineProblem::OtherType { column, id_type },
        }
    }
}

impl From<IdFault> for CellProblem {
    fn from(fault: IdFault) -> CellProblem {
        match fault {
            IdFault::Negative => CellProblem::Negative,
            IdFault::Huge => CellProblem::Huge,
            IdFault::Beyond { below } => CellProblem::Beyond { below },
            IdFault::OtherType { id_type } => CellProblem::OtherType { id_type },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_become_ids_or_are_refused() {
        let of = |ids, number| IdRange::all(ids).deliver(number);
        assert_eq!(of(Ids::Integer, u64::MAX.into()), Ok(u64::MAX));
        assert_eq!(of(Ids::Integer, -1), Err(IdFault::Negative));
        assert_eq!(of(Ids::Signed, -1), Ok(SIGN - 1));
        assert_eq!(of(Ids::Signed, 1 << 63), Err(IdFault::Huge));
        assert_eq!(of(Ids::Wrapping, -1), Ok(u64::MAX));
        assert_eq!(of(Ids::Wrapping, 7), Ok(7));
        let asked = |id_type, number| {
            let asked = Some(id_type);
            let range = IdRange {
                asked,
                ..IdRange::all(Ids::Wrapping)
            };
            range.deliver(number).is_ok()
        };
        assert!(asked(IdType::Int32, i32::MIN.into()) && asked(IdType::Int32, i32::MAX.into()));
        assert!(!asked(IdType::Int32, 1 << 31) && !asked(IdType::Int32, -(1 << 31) - 1));
        assert!(!asked(IdType::UInt32, -1) && asked(IdType::UInt32, u32::MAX.into()));
        let below = IdRange {
            below: Some(5),
            ..IdRange::all(Ids::Integer)
        };
        assert_eq!((below.last(), below.deliver(4)), (4, Ok(4)));
        assert_eq!(below.deliver(5), Err(IdFault::Beyond { below: 5 }));
    }
}
