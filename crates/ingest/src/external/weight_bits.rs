//! Weights as the bits under which they are stored.

use graphmill_graph::EdgeKind;

/// The bits under which a weight is stored.
pub(crate) fn bits(weight: f64, kind: EdgeKind) -> u64 {
    match kind {
        EdgeKind::F32 => u64::from((weight as f32).to_bits()),
        EdgeKind::None | EdgeKind::F64 => weight.to_bits(),
    }
}

/// The weight of those bits.
pub(crate) fn value(bits: u64, kind: EdgeKind) -> f64 {
    match kind {
        EdgeKind::F32 => f64::from(f32::from_bits(bits as u32)),
        EdgeKind::None | EdgeKind::F64 => f64::from_bits(bits),
    }
}
