//! Blocks as text, columns separated by commas or tabs: a header, then one row a vertex. Where a vertex was not reached numbers are `inf`, and vertices nothing: `inf` may
//! be the name of one.
//!
//! Floats are written in the fewest digits that read back to the same bits.

use std::io::Write;

use super::block::{Block, Labels, Values};
use super::{ResultError, RowWriter};

pub(super) struct CsvRows<W: Write> {
    rows: csv::Writer<W>,
}

impl<W: Write> CsvRows<W> {
    pub(super) fn new(sink: W, column: &str, tabs: bool) -> Result<CsvRows<W>, ResultError> {
        let mut rows = csv::WriterBuilder::new()
            .delimiter(if tabs { b'\t' } else { b',' })
            .buffer_capacity(1 << 16)
            .from_writer(sink);
        rows.write_record(["vertex", column])?;
        Ok(CsvRows { rows })
    }
}

impl<W: Write> RowWriter<W> for CsvRows<W> {
    fn block(&mut self, block: &Block) -> Result<(), ResultError> {
        let mut number = itoa::Buffer::new();
        let mut float = ryu::Buffer::new();
        for row in 0..block.rows() {
            label(&mut self.rows, &block.ids, row, &mut number)?;
            if !block.is_reached(row) {
                let none = match block.values {
                    Values::Vertex(_) => "",
                    _ => "inf",
                };
                self.rows.write_field(none)?;
            } else {
                match &block.values {
                    Values::F32(values) => self.rows.write_field(text(values[row], &mut float))?,
                    Values::F64(values) => self.rows.write_field(text(values[row], &mut float))?,
                    Values::U32(values) => self.rows.write_field(number.format(values[row]))?,
                    Values::U64(values) => self.rows.write_field(number.format(values[row]))?,
                    Values::Vertex(labels) => label(&mut self.rows, labels, row, &mut number)?,
                }
            }
            self.rows.write_record(None::<&[u8]>)?;
        }
        Ok(())
    }

    fn finish(self) -> Result<W, ResultError> {
        self.rows
            .into_inner()
            .map_err(|error| ResultError::Write(error.into_error()))
    }
}

fn label<W: Write>(
    rows: &mut csv::Writer<W>,
    labels: &Labels,
    row: usize,
    number: &mut itoa::Buffer,
) -> Result<(), csv::Error> {
    match labels {
        Labels::Integers(ids) => rows.write_field(number.format(ids[row])),
        Labels::Signed(ids) => rows.write_field(number.format(ids[row])),
        Labels::Texts(texts) => rows.write_field(texts.get(row)),
    }
}

/// `ryu` spells what is not a number its own way.
fn text<F: ryu::Float + Into<f64>>(value: F, buffer: &mut ryu::Buffer) -> &str {
    let wide: f64 = value.into();
    if wide.is_finite() {
        buffer.format_finite(value)
    } else if wide.is_nan() {
        "nan"
    } else if wide > 0.0 {
        "inf"
    } else {
        "-inf"
    }
}
