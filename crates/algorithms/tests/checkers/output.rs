//! Rows of results: numbers, and edges with keys of their weights.

use graphmill_algorithms::{
    NO_EDGE, NumberRow, NumberValue, edge_row, holds_edge, key_weight, weight_key,
};

#[test]
fn row_of_numbers_keeps_them() {
    let numbers = [
        NumberValue::Integer(Some(7)),
        NumberValue::Float(None),
        NumberValue::Float(Some(-0.5)),
        NumberValue::Integer(None),
    ];
    let row = NumberRow::new(&["a", "b", "c", "d"], &numbers);
    assert!(row.columns().map(|column| column.1).eq(numbers));
    assert!(
        row.columns()
            .map(|column| column.0)
            .eq(["a", "b", "c", "d"])
    );
}

#[test]
fn weight_keys_compare_as_weights() {
    let weights = [
        f64::NEG_INFINITY,
        -1e300,
        -2.5,
        -f64::MIN_POSITIVE,
        0.0,
        1e-300,
        1.0,
        1.5,
        f64::INFINITY,
    ];
    for pair in weights.windows(2) {
        assert!(weight_key(pair[0]) < weight_key(pair[1]), "{pair:?}");
    }
    for weight in weights {
        assert_eq!(key_weight(weight_key(weight)).to_bits(), weight.to_bits());
    }
    assert_eq!(weight_key(-0.0), weight_key(0.0));
    assert!(!holds_edge(&NO_EDGE) && holds_edge(&edge_row(0.0, 0, 0)));
}
