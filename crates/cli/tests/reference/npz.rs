//! The vectors of a NumPy .npz: a zip archive of .npy files, each one flat array of little-endian numbers.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

/// The arrays of the archive by name, without `.npy`.
pub(crate) fn read(path: &Path) -> BTreeMap<String, Vector> {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let end = bytes
        .windows(4)
        .rposition(|window| window == b"PK\x05\x06")
        .expect("the end record of a zip archive");
    let mut entry = number(&bytes, end + 16, 4);
    let mut arrays = BTreeMap::new();
    for _ in 0..number(&bytes, end + 10, 2) {
        assert_eq!(
            &bytes[entry..entry + 4],
            b"PK\x01\x02",
            "an entry of the zip directory"
        );
        let [method, packed] = [number(&bytes, entry + 10, 2), number(&bytes, entry + 20, 4)];
        let [name, extra, comment] = [28, 30, 32].map(|at| number(&bytes, entry + at, 2));
        let local = number(&bytes, entry + 42, 4);
        let data = local + 30 + number(&bytes, local + 26, 2) + number(&bytes, local + 28, 2);
        let data = &bytes[data..data + packed];
        let array = match method {
            0 => data.to_vec(),
            8 => {
                let mut array = Vec::new();
                flate2::read::DeflateDecoder::new(data)
                    .read_to_end(&mut array)
                    .expect("deflated data");
                array
            }
            other => panic!("zip method {other} is not known here"),
        };
        let file =
            std::str::from_utf8(&bytes[entry + 46..entry + 46 + name]).expect("a name in UTF-8");
        arrays.insert(
            file.trim_end_matches(".npy").to_string(),
            Vector::parse(&array),
        );
        entry += 46 + name + extra + comment;
    }
    arrays
}

/// One array.
pub(crate) enum Vector {
    Integers(Vec<i64>),
    /// The second field is true where the file has 32-bit floats.
    Floats(Vec<f64>, bool),
}

impl Vector {
    fn parse(npy: &[u8]) -> Vector {
        assert_eq!(&npy[..8], b"\x93NUMPY\x01\x00", "a .npy of version 1");
        let start = 10 + number(npy, 8, 2);
        let header = std::str::from_utf8(&npy[10..start]).expect("a header in ASCII");
        let kind = header
            .split("'descr': '")
            .nth(1)
            .and_then(|rest| rest.split('\'').next())
            .expect("a descr");
        let data = &npy[start..];
        match kind {
            "<i4" => Vector::Integers(
                cut(data)
                    .map(|bytes| i32::from_le_bytes(bytes).into())
                    .collect(),
            ),
            "<i8" => Vector::Integers(cut(data).map(i64::from_le_bytes).collect()),
            "<f4" => Vector::Floats(
                cut(data)
                    .map(|bytes| f32::from_le_bytes(bytes).into())
                    .collect(),
                true,
            ),
            "<f8" => Vector::Floats(cut(data).map(f64::from_le_bytes).collect(), false),
            "<i2" => Vector::Integers(
                cut(data)
                    .map(|bytes| i16::from_le_bytes(bytes).into())
                    .collect(),
            ),
            "<u4" => Vector::Integers(
                cut(data)
                    .map(|bytes| u32::from_le_bytes(bytes).into())
                    .collect(),
            ),
            other => panic!("numbers of type {other} are not known here"),
        }
    }
}

fn cut<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> + '_ {
    bytes
        .chunks_exact(N)
        .map(|chunk| chunk.try_into().expect("N bytes"))
}

fn number(bytes: &[u8], at: usize, width: usize) -> usize {
    bytes[at..at + width]
        .iter()
        .rev()
        .fold(0, |number, byte| number << 8 | usize::from(*byte))
}
