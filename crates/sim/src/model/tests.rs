//! The conditions that the model must meet, at an eighth of the chunks.

use super::figures::{FIGURES, FigureTable, figure};

fn table(name: &str) -> FigureTable {
    figure(name, 64.0).expect("a figure")
}

#[test]
fn dummy() {
    assert!(FIGURES.len() > 1 && !table("fig5").rows.is_empty());
}
