//! Cells of an Arrow array: integers, floats, text and UUIDs, also in a dictionary.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ByteArrayType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, GenericByteArray, downcast_dictionary_array,
};
use arrow_buffer::Buffer;
use arrow_schema::DataType;
use bytes::Bytes;
use graphmill_graph::IdType;
use graphmill_ingest::tables::{CellValue, ColumnType};
use parquet::data_type::ByteArray;

/// Returns the type of a column.
pub(crate) fn column_type(data_type: &DataType) -> ColumnType {
    use DataType::{
        Dictionary, FixedSizeBinary, Float32, Float64, Int8, Int16, Int32, Int64, LargeUtf8, Null,
        UInt8, UInt16, UInt32, UInt64, Utf8, Utf8View,
    };
    match data_type {
        Int8 | Int16 | Int32 => ColumnType::Ids(IdType::Int32),
        Int64 => ColumnType::Ids(IdType::Int64),
        UInt8 | UInt16 | UInt32 => ColumnType::Ids(IdType::UInt32),
        UInt64 => ColumnType::Ids(IdType::UInt64),
        // A column of nulls alone has no type.
        Utf8 | LargeUtf8 | Utf8View | Null => ColumnType::Ids(IdType::Text),
        FixedSizeBinary(16) => ColumnType::Ids(IdType::Uuid),
        Float32 | Float64 => ColumnType::Float,
        Dictionary(_, values) => column_type(values),
        _ => ColumnType::Other,
    }
}

/// The values of an array, shared where they are bytes.
pub(crate) struct ArrayCells {
    array: ArrayRef,
    bytes: Option<Bytes>,
    /// The values of a dictionary, whose places `array` has.
    dictionary: Option<Arc<[CellValue]>>,
}

impl ArrayCells {
    /// Looks at an array whose type has [`column_type`] `Ids` or `Float`.
    pub(crate) fn new(array: ArrayRef) -> ArrayCells {
        let bytes = match array.data_type() {
            DataType::Utf8 => Some(all_bytes(array.as_string::<i32>())),
            DataType::LargeUtf8 => Some(all_bytes(array.as_string::<i64>())),
            _ => None,
        };
        let dictionary = match array.data_type() {
            DataType::Dictionary(..) => {
                let values = Arc::clone(array.as_any_dictionary().values());
                let rows = 0..values.len();
                Some(ArrayCells::new(values).cells(rows).into())
            }
            _ => None,
        };
        ArrayCells {
            array,
            bytes,
            dictionary,
        }
    }

    /// The cells of some rows.
    pub(crate) fn cells(&self, rows: Range<usize>) -> Vec<CellValue> {
        let array = &*self.array;
        if let Some(values) = &self.dictionary {
            return downcast_dictionary_array!(
                array => of_dictionary(array.keys().values(), array, values, rows),
                _ => Vec::new()
            );
        }
        let signed = |number: i64| match u64::try_from(number) {
            Ok(number) => CellValue::Unsigned(number),
            Err(_) => CellValue::Negative(number),
        };
        let each = |value: &dyn Fn(usize) -> CellValue| {
            let cell = |row| match array.is_null(row) {
                true => CellValue::Null,
                false => value(row),
            };
            rows.clone().map(cell).collect()
        };
        match array.data_type() {
            DataType::Int8 => numbers::<Int8Type>(array, rows, |n| signed(n.into())),
            DataType::Int16 => numbers::<Int16Type>(array, rows, |n| signed(n.into())),
            DataType::Int32 => numbers::<Int32Type>(array, rows, |n| signed(n.into())),
            DataType::Int64 => numbers::<Int64Type>(array, rows, signed),
            DataType::UInt8 => numbers::<UInt8Type>(array, rows, |n| CellValue::Unsigned(n.into())),
            DataType::UInt16 => {
                numbers::<UInt16Type>(array, rows, |n| CellValue::Unsigned(n.into()))
            }
            DataType::UInt32 => {
                numbers::<UInt32Type>(array, rows, |n| CellValue::Unsigned(n.into()))
            }
            DataType::UInt64 => numbers::<UInt64Type>(array, rows, CellValue::Unsigned),
            DataType::Float32 => numbers::<Float32Type>(array, rows, CellValue::Single),
            DataType::Float64 => numbers::<Float64Type>(array, rows, CellValue::Float),
            DataType::Utf8 => self.texts(array.as_string::<i32>(), rows),
            DataType::LargeUtf8 => self.texts(array.as_string::<i64>(), rows),
            DataType::Utf8View => {
                let texts = array.as_string_view();
                each(&|row| CellValue::Text(texts.value(row).as_bytes().to_vec().into()))
            }
            DataType::FixedSizeBinary(16) => {
                let values = array.as_fixed_size_binary();
                each(&|row| (values.value(row).try_into()).map_or(CellValue::Null, CellValue::Uuid))
            }
            _ => vec![CellValue::Null; rows.len()],
        }
    }

    /// Texts, which share the bytes of the array.
    fn texts<T: ByteArrayType>(
        &self,
        texts: &GenericByteArray<T>,
        rows: Range<usize>,
    ) -> Vec<CellValue>
    where
        T::Offset: Into<i64>,
    {
        let offsets = texts.value_offsets();
        let place = |row: usize| {
            let offset: i64 = offsets[row].into();
            usize::try_from(offset).unwrap_or(0)
        };
        let cell = |row| match (&self.bytes, texts.is_null(row)) {
            (Some(bytes), false) => {
                let text = bytes.slice(place(row)..place(row + 1));
                CellValue::Text(ByteArray::from(text))
            }
            _ => CellValue::Null,
        };
        rows.map(cell).collect()
    }
}

/// The bytes that the offsets of texts refer to.
fn all_bytes<T: ByteArrayType>(texts: &GenericByteArray<T>) -> Bytes {
    struct Shared(Buffer);
    impl AsRef<[u8]> for Shared {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    Bytes::from_owner(Shared(texts.values().clone()))
}

fn numbers<T: ArrowPrimitiveType>(
    array: &dyn Array,
    rows: Range<usize>,
    cell: impl Fn(T::Native) -> CellValue,
) -> Vec<CellValue> {
    let numbers = array.as_primitive::<T>();
    let values = &numbers.values()[rows.clone()];
    if numbers.null_count() == 0 {
        return values.iter().map(|number| cell(*number)).collect();
    }
    let pairs = rows.zip(values);
    let cells = pairs.map(|(row, number)| match numbers.is_null(row) {
        true => CellValue::Null,
        false => cell(*number),
    });
    cells.collect()
}

fn of_dictionary<K: TryInto<usize> + Copy>(
    keys: &[K],
    array: &dyn Array,
    values: &[CellValue],
    rows: Range<usize>,
) -> Vec<CellValue> {
    let cell = |row: usize| {
        let place = keys[row].try_into().ok().filter(|_| !array.is_null(row));
        let value = place.and_then(|place| values.get(place));
        value.cloned().unwrap_or(CellValue::Null)
    };
    rows.map(cell).collect()
}
