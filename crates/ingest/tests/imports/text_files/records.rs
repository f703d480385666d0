//! Records of several columns.

use super::*;

#[test]
fn records_of_columns_are_read() {
    let trips = "from,to,amount,day,kind\n1,2,0.1,7,255\n3,4,-2.5e3,65535,0\n";
    all_are_read(&[
        (
            "trips.csv",
            "data=amount:f32,day:u16,kind:u8",
            trips,
            "1>2:0.1/7/255 3>4:-2500/65535/0",
            "columns from -> to, data amount:f32,day:u16,kind:u8",
        ),
        // Fields in another order than columns, a column twice, and by number.
        (
            "trips.csv",
            "data=kind:u8,a=3:f64,b=AMOUNT:f32",
            trips,
            "1>2:255/0.1/0.1 3>4:0/-2500/-2500",
            "1 column ignored",
        ),
        // A field may stand before the ids, or be one.
        (
            "a.tsv",
            "source=2 target=3 data=x=1:i8,id=2:u64",
            "-128\t8\t9\n+7\t9\t8\n",
            "8>9:-128/8 9>8:7/9",
            "",
        ),
        (
            "a.txt",
            "data=w=3:i64",
            "a b -9223372036854775808\nb c 007\n",
            "a>b:-9223372036854775808 b>c:7",
            "data w:i64",
        ),
        (
            "a.csv",
            "data=w:u8",
            "a,b,w\n\"x, y\",z,\"4\"\n\"a \"\"b\"\"\",z, 5 \n",
            "x, y>z:4 a \"b\">z:5",
            "",
        ),
        ("a.gr", "data=w=4:u8", "p sp 2 1\na 1 2 9\n", "1>2:9", ""),
    ]);
}

#[test]
fn lines_that_do_not_fit_their_record_are_refused() {
    all_are_refused(&[
        (
            "a.csv",
            "data=w:u8",
            "a,b,w\n1,2,3\n1,2,256\n",
            "line 3, \"1,2,256\": column 3 does not fit u8",
        ),
        ("a.csv", "data=w:u8", "a,b,w\n1,2,-1\n", "does not fit u8"),
        (
            "a.csv",
            "data=w:i16",
            "a,b,w\n1,2,-32769\n",
            "does not fit i16",
        ),
        (
            "a.csv",
            "data=w:u64",
            "a,b,w\n1,2,999999999999999999999999999999999999999999999999\n",
            "does not fit u64",
        ),
        (
            "a.csv",
            "data=w:f32",
            "a,b,w\n1,2,1e39\n",
            "does not fit f32",
        ),
        (
            "a.csv",
            "data=w:f64",
            "a,b,w\n1,2,inf\n",
            "no number of type f64",
        ),
        (
            "a.csv",
            "data=w:u8",
            "a,b,w\n1,2,1.0\n",
            "column 3 is no number of type u8",
        ),
        (
            "a.csv",
            "data=w:u8",
            "a,b,w\n1,2,x\n",
            "no number of type u8",
        ),
        ("a.csv", "data=w:u8", "a,b,w\n1,2,\n", "column 3 is empty"),
        (
            "a.csv",
            "data=x:u8",
            "a,b,w\n1,2,3\n",
            "--edge-data x: there is no such column",
        ),
        ("a.csv", "data=x=4:u8", "a,b,w\n1,2,3\n", "no column 4"),
        ("a.gr", "data=w:u8", "a 1 2 9\n", "DIMACS has no header"),
        (
            "a.u32",
            "data=w:u8",
            "abcdefgh",
            "raw pairs have no weights and no data",
        ),
    ]);
    let skip = options("skip=1 data=w:u8");
    let (edges, _) = read("a.csv", b"a,b,w\n1,2,3\n1,3,256\n1,4,x\n1,5,6\n", &skip).unwrap();
    assert_eq!(edges, "1>2:3 1>5:6");
}

/// Columns after the ids are read by a short loop, others are not; malformed lines are skipped.
#[test]
fn records_are_the_same_wherever_their_columns_are() {
    let mut random = graphmill_storage::SplitMix64::new(5);
    let mut number = || {
        let bits = random.next_u64();
        let small = (bits >> 8) % 70_000;
        match bits % 12 {
            0 => format!("-{small}"),
            1 => format!("+{small}"),
            2 => format!("00{small}"),
            3 => format!("{small}.25"),
            4 => format!("{small}e3"),
            5 => format!("{}", f32::from_bits((bits >> 16) as u32)),
            6 => format!("{}", bits >> 3),
            7 => format!(" {small} "),
            8 => ["", "-", "x", "1.2.3", "inf", "--1"][small as usize % 6].to_string(),
            _ => format!("{}", small % 300),
        }
    };
    for fields in ["u8 f32 i64", "u16 i8 f64", "f32 f32 u64", "i16 i32 u32"] {
        let [a, b, c] = *fields.split(' ').collect::<Vec<_>>() else {
            panic!("three fields");
        };
        let (mut plain, mut moved) = (String::new(), String::new());
        for line in 0..4000 {
            let [x, y, z] = [number(), number(), number()];
            plain += &format!("{line},7,{x},{y},{z}\n");
            moved += &format!("{y},{line},7,{z},{x}\n");
        }
        let words = format!("skip=1 header=no data=c=5:{c},a=3:{a},b=4:{b}");
        let here = read("a.csv", plain.as_bytes(), &options(&words)).unwrap();
        let words = format!("source=2 target=3 skip=1 header=no data=c=4:{c},a=5:{a},b=1:{b}");
        let there = read("a.csv", moved.as_bytes(), &options(&words)).unwrap();
        assert_eq!(here.0, there.0, "{fields}");
        assert!(here.0.matches('>').count() > 100, "{fields}: {}", here.0);
    }
}
