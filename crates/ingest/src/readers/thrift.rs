//! Checks the footer and the page headers of a Parquet file before the `parquet` crate reads them.
//!
//! The crate reads a field by its number and ignores the type that the file gives it. It goes through a list that it skips for as long as the
//! list's length says, even where an element has no bytes. One wrong byte can so keep it busy for hours. So a field whose type is not the one
//! that Parquet defines is refused, and so is a list of booleans, which Parquet has in neither place, and a structure that is cut off.
//!
//! Source: Thrift's compact protocol, and `parquet.thrift` of the Parquet format.

use std::io::{Error, ErrorKind, Read};

use parquet::errors::{ParquetError, Result as ParquetResult};

/// What a field holds.
#[derive(Debug)]
enum ThriftType {
    /// Anything: a number that Parquet does not define.
    Any,
    Bool,
    Byte,
    /// An integer of 16, 32 or 64 bits: their bytes look alike.
    Integer,
    /// An integer: the bytes that a page unpacks to.
    PageBytes,
    /// An integer: the values of a dictionary.
    DictionaryValues,
    Double,
    Bytes,
    List(&'static ThriftType),
    /// The fields with the numbers 1, 2 and so on.
    Struct(&'static [ThriftType]),
}

use ThriftType::{
    Any, Bool, Byte, Bytes, DictionaryValues, Double, Integer, List, PageBytes, Struct,
};

const EMPTY: ThriftType = Struct(&[]);
const INTEGERS: ThriftType = List(&Integer);
const STATISTICS: ThriftType = Struct(&[Bytes, Bytes, Integer, Integer, Bytes, Bytes, Bool, Bool]);
const KEY_VALUES: ThriftType = List(&Struct(&[Bytes, Bytes]));

const DATA_PAGE: ThriftType = Struct(&[Integer, Integer, Integer, Integer, STATISTICS]);
const DICTIONARY: ThriftType = Struct(&[DictionaryValues, Integer, Bool]);
const PAGE_V2: ThriftType = Struct(&[
    Integer, Integer, Integer, Integer, Integer, Integer, Bool, STATISTICS,
]);
const PAGE_HEADER: ThriftType = Struct(&[
    Integer, PageBytes, Integer, Integer, DATA_PAGE, EMPTY, DICTIONARY, PAGE_V2,
]);

const DECIMAL: ThriftType = Struct(&[Integer, Integer]);
const TIME: ThriftType = Struct(&[Bool, Struct(&[EMPTY, EMPTY, EMPTY])]);
const INT_TYPE: ThriftType = Struct(&[Byte, Bool]);
const VARIANT: ThriftType = Struct(&[Byte]);
const GEOMETRY: ThriftType = Struct(&[Bytes]);
const GEOGRAPHY: ThriftType = Struct(&[Bytes, Integer]);
const LOGICAL: ThriftType = Struct(&[
    EMPTY, EMPTY, EMPTY, EMPTY, DECIMAL, EMPTY, TIME, TIME, Any, INT_TYPE, EMPTY, EMPTY, EMPTY,
    EMPTY, EMPTY, VARIANT, GEOMETRY, GEOGRAPHY,
]);
const SCHEMA: ThriftType = List(&Struct(&[
    Integer, Integer, Integer, Bytes, Integer, Integer, Integer, Integer, Integer, LOGICAL,
]));

const NAMES: ThriftType = List(&Bytes);
const ENCODINGS: ThriftType = List(&Struct(&[Integer, Integer, Integer]));
const SIZES: ThriftType = Struct(&[Integer, INTEGERS, INTEGERS]);
const BOUNDS: ThriftType = Struct(&[
    Double, Double, Double, Double, Double, Double, Double, Double,
]);
const GEOSPATIAL: ThriftType = Struct(&[BOUNDS, INTEGERS]);
const METADATA: ThriftType = Struct(&[
    Integer, INTEGERS, NAMES, Integer, Integer, Integer, Integer, KEY_VALUES, Integer, Integer,
    Integer, STATISTICS, ENCODINGS, Integer, Integer, SIZES, GEOSPATIAL,
]);
const COLUMNS: ThriftType = List(&Struct(&[
    Bytes, Integer, METADATA, Integer, Integer, Integer, Integer, Any, Bytes,
]));
const SORTED_BY: ThriftType = List(&Struct(&[Integer, Bool, Bool]));
const ROW_GROUPS: ThriftType = List(&Struct(&[
    COLUMNS, Integer, Integer, SORTED_BY, Integer, Integer, Integer,
]));
const ORDERS: ThriftType = List(&Struct(&[EMPTY]));
const FOOTER: ThriftType = Struct(&[
    Integer, SCHEMA, Integer, ROW_GROUPS, KEY_VALUES, Bytes, ORDERS, Any, Bytes,
]);

/// Levels of structures that the library follows.
const LEVELS_MAX: u32 = 64;

/// Refuses a footer that is cut off or is not what Parquet defines.
pub(super) fn check_footer(from: &mut dyn Read) -> ParquetResult<()> {
    check(from, &FOOTER).map(drop)
}

/// What reading a page allocates.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PageSize {
    /// Bytes that it unpacks to.
    pub bytes: u64,
    /// Values of the dictionary that it is; 0 for other pages.
    pub dictionary_values: u64,
}

/// The size of a page, by its header; refuses a header that is cut off or is not what Parquet defines.
pub(super) fn page_size(from: &mut dyn Read) -> ParquetResult<PageSize> {
    check(from, &PAGE_HEADER)
}

/// Returns the error of a file that is not what Parquet defines.
pub(super) fn broken(what: impl Into<String>) -> ParquetError {
    ParquetError::General(what.into())
}

fn check(from: &mut dyn Read, field: &ThriftType) -> ParquetResult<PageSize> {
    let mut reader = Reader {
        from,
        size: PageSize::default(),
    };
    match reader.value(STRUCT, field, LEVELS_MAX) {
        Ok(()) => Ok(reader.size),
        Err(error) if error.kind() == ErrorKind::InvalidData => Err(broken(error.to_string())),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(broken(
            "its footer or the header of a page makes no sense: it may be cut off",
        )),
        Err(error) => Err(error.into()),
    }
}

// The types as files number them.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;
const UUID: u8 = 13;

struct Reader<'a> {
    from: &'a mut dyn Read,
    /// The most that fields say: a file may have one twice.
    size: PageSize,
}

impl Reader<'_> {
    /// Goes past a value of a type.
    fn value(&mut self, kind: u8, field: &ThriftType, levels: u32) -> Result<(), Error> {
        let levels = levels.checked_sub(1).ok_or(ErrorKind::UnexpectedEof)?;
        let is_defined = match field {
            Any => true,
            Bool => matches!(kind, TRUE | FALSE),
            Byte => kind == BYTE,
            Integer | PageBytes | DictionaryValues => matches!(kind, I16..=I64),
            Double => kind == DOUBLE,
            Bytes => kind == BINARY,
            List(_) => kind == LIST,
            Struct(_) => kind == STRUCT,
        };
        if !is_defined {
            let what = format!(
                "a field of its footer or of the header of a page has the type {kind}, which Parquet does not define"
            );
            return Err(Error::new(ErrorKind::InvalidData, what));
        }
        match kind {
            TRUE | FALSE => Ok(()),
            BYTE => self.byte().map(drop),
            I16..=I64 => {
                let zigzag = self.number()?;
                let most = match field {
                    PageBytes => &mut self.size.bytes,
                    DictionaryValues => &mut self.size.dictionary_values,
                    _ => return Ok(()),
                };
                // An odd number is negative.
                if zigzag & 1 == 1 {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
                *most = (zigzag >> 1).max(*most);
                Ok(())
            }
            DOUBLE => self.skip(8),
            BINARY => {
                let count = self.number()?;
                self.skip(count)
            }
            LIST | SET => {
                let head = self.byte()?;
                // A short length is in the same byte.
                let count = match head >> 4 {
                    15 => self.number()?,
                    count => count.into(),
                };
                let of = if let List(of) = field { of } else { &Any };
                for _ in 0..count {
                    self.element(head & 15, of, levels)?;
                }
                Ok(())
            }
            MAP => {
                let count = self.number()?;
                let kinds = if count > 0 { self.byte()? } else { 0 };
                for _ in 0..count {
                    self.element(kinds >> 4, &Any, levels)?;
                    self.element(kinds & 15, &Any, levels)?;
                }
                Ok(())
            }
            STRUCT => {
                let fields = match field {
                    Struct(fields) => fields,
                    _ => &[][..],
                };
                let mut number = 0_i16;
                loop {
                    let head = self.byte()?;
                    if head & 15 == 0 {
                        return Ok(());
                    }
                    number = match head >> 4 {
                        // Zigzag, cut to 16 bits as the library cuts it.
                        0 => {
                            let zigzag = self.number()?;
                            ((zigzag >> 1) ^ (zigzag & 1).wrapping_neg()) as i16
                        }
                        step => number
                            .checked_add(i16::from(step))
                            .ok_or(ErrorKind::UnexpectedEof)?,
                    };
                    let at = usize::try_from(i32::from(number) - 1);
                    let field = at.ok().and_then(|at| fields.get(at)).unwrap_or(&Any);
                    self.value(head & 15, field, levels)?;
                }
            }
            UUID => self.skip(16),
            _ => Err(ErrorKind::UnexpectedEof.into()),
        }
    }

    fn element(&mut self, kind: u8, field: &ThriftType, levels: u32) -> Result<(), Error> {
        if matches!(kind, TRUE | FALSE) {
            let what = "it has a list of booleans where there is none";
            return Err(Error::new(ErrorKind::InvalidData, what));
        }
        self.value(kind, field, levels)
    }

    fn byte(&mut self) -> Result<u8, Error> {
        let mut byte = [0];
        self.from.read_exact(&mut byte).map(|()| byte[0])
    }

    fn number(&mut self) -> Result<u64, Error> {
        let (mut value, mut shift) = (0_u64, 0);
        loop {
            let byte = self.byte()?;
            // As the library shifts a number of more bytes than there should be.
            value |= u64::from(byte & 0x7f).wrapping_shl(shift);
            shift += 7;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
    }

    fn skip(&mut self, count: u64) -> Result<(), Error> {
        let skipped = std::io::copy(&mut (&mut *self.from).take(count), &mut std::io::sink())?;
        match skipped == count {
            true => Ok(()),
            false => Err(ErrorKind::UnexpectedEof.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ThriftType, check, page_size};

    #[test]
    fn thrift_endless_lists_are_refused() {
        // Field 1: a list of two numbers, a list of three booleans; the same in a structure of a structure; a cut one.
        for (bytes, is_refused) in [
            (&[0x19, 0x25, 1, 1, 0][..], false),
            (&[0x19, 0x31, 1, 1, 1, 0], true),
            (&[0x19, 0x01, 0], false),
            (&[0x1c, 0x1c, 0x1b, 0x05, 0x52, 1, 0, 0, 0, 0], true),
            (&[0x15, 0x80, 0x01, 0x19, 0xf2, 0xff, 0xff, 0x03], true),
            (&[0x18, 0x02, 0x19, 0x31, 0], false),
            (&[0x19, 0x35], true),
            (&[0x19, 0xf7, 0xff, 0xff, 0x03], true),
            (&[0x1c; 100], true),
        ] {
            let refused = check(&mut &*bytes, &ThriftType::Struct(&[])).is_err();
            assert_eq!(refused, is_refused, "{bytes:?}");
        }
    }

    #[test]
    fn page_size_is_read_from_its_header() {
        for (header, size) in [
            (&[0x15, 4, 0x15, 0x80, 2, 0x15, 0x10, 0][..], Some((128, 0))),
            // The library takes the last of two.
            (&[0x15, 4, 0x15, 2, 0x05, 4, 0x80, 2, 0], Some((128, 0))),
            // A dictionary of three values.
            (&[0x15, 4, 0x15, 8, 0x5c, 0x15, 6, 0, 0], Some((4, 3))),
            (&[0x15, 0, 0x15, 1, 0], None),
            (&[0x15, 0, 0x15, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], None),
            (&[0x15], None),
        ] {
            let found = page_size(&mut &*header).ok();
            let found = found.map(|size| (size.bytes, size.dictionary_values));
            assert_eq!(found, size, "{header:x?}");
        }
    }

    #[test]
    fn thrift_fields_of_other_types_are_refused() {
        // Type, two sizes, and the header of a data page with its count of rows; then one byte changed at a time.
        let header = [0x15, 0, 0x15, 2, 0x15, 2, 0x2c, 0x15, 2, 0, 0];
        assert!(page_size(&mut &header[..]).is_ok());
        for (at, byte) in [
            (0, 0x19),
            (2, 0x18),
            (6, 0x29),
            (7, 0x11),
            (7, 0x1c),
            (6, 0x25),
        ] {
            let mut header = header;
            header[at] = byte;
            assert!(page_size(&mut &header[..]).is_err(), "{header:x?}");
        }
        // A field that Parquet does not define, by its step and by its number.
        for header in [&[0xf8, 1, 7, 0][..], &[0x08, 0x7e, 1, 7, 0]] {
            assert!(page_size(&mut &*header).is_ok());
        }
        // Field 1 by its number, and by one that is cut to it.
        for header in [
            &[0x08, 0x02, 1, 7, 0][..],
            &[0x08, 0x82, 0x80, 0x08, 1, 7, 0],
        ] {
            assert!(page_size(&mut &*header).is_err());
        }
    }
}
