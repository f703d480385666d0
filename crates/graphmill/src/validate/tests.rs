//! The rules, on texts.

use std::cell::Cell;
use std::path::Path;

use graphmill_storage::MemoryBudget;

use crate::validate::merge_join::compare;
use crate::validate::verdict::{RowKind, Rule, Verdict};
use crate::validate_error::ValidateError;
use crate::vertex_file::text::{ResultRow, RowId, RowIter, TextRows, Value, ValueReading};

/// Compares two texts.
fn compared(result: &str, reference: &str, rule: Rule) -> Result<Verdict, ValidateError> {
    let open = |path: &Path| -> Result<RowIter, ValidateError> {
        let text = if path == Path::new("result") {
            result
        } else {
            reference
        };
        Ok(Box::new(TextRows::new(
            std::io::Cursor::new(text.to_string()),
            path.to_path_buf(),
            ValueReading::Numbers,
            false,
        )))
    };
    compare(
        &MemoryBudget::new(64 << 20),
        [Path::new("result"), Path::new("reference")],
        rule,
        open,
    )
}

fn verdict(result: &str, reference: &str, rule: Rule) -> Verdict {
    compared(result, reference, rule).unwrap()
}

/// How many vertices differ in value, are missing, are unexpected.
fn counts(verdict: &Verdict) -> [u64; 3] {
    let Verdict {
        differences,
        missing,
        unexpected,
        ..
    } = *verdict;
    [differences - missing - unexpected, missing, unexpected]
}

#[test]
fn exact_compares_numbers_and_unreached_words() {
    let result = "vertex,depth\n1,0\n2,3\n3,inf\n4,inf\n5,inf\n6,260\n7,0.5\n";
    let reference = "1 0\n2 3\n3 9223372036854775807\n4 Infinity\n5 infinity\n6 2.600000000000000e+02\n7 5e-1\n";
    let verdict = verdict(result, reference, Rule::Exact);
    assert!(verdict.is_same(), "{verdict:?}");
    assert_eq!(verdict.vertices, 7);
}

#[test]
fn unreached_or_vertex_follows_the_other_file() {
    let long_max = i64::MAX as u64;
    let text = |text: &str| ValueReading::Numbers.value(text.as_bytes());
    let word = |text: &str| ValueReading::Numbers.word(text.as_bytes());
    for (left, right, same) in [
        (text("inf"), Value::Unreached, true),
        (text("inf"), word("inf"), true),
        (word("inf"), Value::Unreached, false),
        (text(""), Value::Unreached, true),
        (text(""), word("inf"), false),
        (text("9223372036854775807"), Value::Integer(long_max), true),
        (text("9223372036854775807"), Value::Unreached, true),
        (Value::Integer(long_max), Value::Unreached, false),
        (text("9223372036854775807"), Value::Integer(7), false),
        (text("nan"), word("nan"), true),
        (word("7"), word("007"), false),
        (text("null"), word("null"), true),
        (text("7"), word("null"), false),
        (text("7"), word("7"), true),
        (text("inf"), word("null"), false),
        (text("9223372036854775807"), word("null"), false),
        (text("null"), Value::Unreached, false),
    ] {
        assert_eq!(left.is_same(&right), same, "{left:?} {right:?}");
        assert_eq!(right.is_same(&left), same, "{right:?} {left:?}");
        assert!(left.is_same(&left) || left == text("nan"), "{left:?}");
    }
    assert_ne!(
        ValueReading::Names.value(b"7"),
        ValueReading::Names.value(b"007")
    );
}

#[test]
fn exact_sees_the_last_bit() {
    for (result, reference, same) in [
        ("0.1", "0.1", true),
        ("0.1", "0.10000000000000002", false),
        ("9007199254740993", "9007199254740992", false),
        ("9007199254740993", "9007199254740992.0", false),
        ("18446744073709551615", "1.8446744073709552e19", false),
        ("0", "-0.0", true),
        ("NaN", "NaN", false),
        ("-1", "inf", false),
        ("inf", "-inf", false),
        ("openssl", "openssl", true),
        ("openssl", "openssh", false),
    ] {
        let verdict = verdict(
            &format!("vertex,value\n1,{result}\n"),
            &format!("1 {reference}"),
            Rule::Exact,
        );
        assert_eq!(verdict.is_same(), same, "{result} {reference}");
    }
}

#[test]
fn epsilon_is_relative_to_the_reference() {
    for (result, reference, same) in [
        ("1.00009", "1", true),
        ("1.00011", "1", false),
        ("0.000100009", "0.0001", true),
        ("0.00010002", "0.0001", false),
        ("-1.00009", "-1", true),
        ("0", "0", true),
        ("1e-300", "0", false),
        ("inf", "9223372036854775807", true),
        ("1e300", "inf", false),
        ("inf", "5", false),
        ("NaN", "5", false),
        ("5", "NaN", false),
    ] {
        let rule = Rule::Epsilon(1e-4);
        let verdict = verdict(
            &format!("vertex,value\n1,{result}\n"),
            &format!("1 {reference}"),
            rule,
        );
        assert_eq!(verdict.is_same(), same, "{result} {reference}");
    }
}

#[test]
fn equivalence_compares_groups_under_any_names() {
    let reference = "1 7\n2 7\n3 8\n4 8\n5 a\n";
    let of = |labels: [&str; 5]| {
        let rows: String = labels
            .iter()
            .zip(1..)
            .map(|(label, vertex)| format!("{vertex},{label}\n"))
            .collect();
        verdict(
            &format!("vertex,component\n{rows}"),
            reference,
            Rule::Equivalence,
        )
    };
    assert!(of(["1", "1", "3", "3", "5"]).is_same());
    assert!(
        of(["8", "8", "7", "7", "x"]).is_same(),
        "names may be swapped"
    );
    assert_eq!(
        counts(&of(["1", "1", "1", "1", "5"])),
        [2, 0, 0],
        "two groups merged"
    );
    assert_eq!(
        counts(&of(["1", "2", "3", "3", "5"])),
        [1, 0, 0],
        "one group split"
    );
    assert_eq!(
        counts(&of(["1", "1", "3", "1", "5"])),
        [1, 0, 0],
        "one vertex astray"
    );
}

#[test]
fn vertex_sets_must_be_equal() {
    let found = verdict(
        "vertex,depth\n1,0\n3,1\n4,1\n",
        "1 0\n2 1\n3 1\n",
        Rule::Exact,
    );
    assert_eq!(counts(&found), [0, 1, 1]);
    assert!(!found.is_same());
    assert_eq!(
        counts(&verdict("vertex,depth\n", "1 0\n", Rule::Exact)),
        [0, 1, 0]
    );
    assert_eq!(
        counts(&verdict("vertex,depth\n1,0\n", "", Rule::Exact)),
        [0, 0, 1]
    );
    assert!(verdict("vertex,depth\n", "", Rule::Exact).is_same());
    assert_eq!(
        counts(&verdict("vertex,depth\n7,0\n", "007 0\n", Rule::Exact)),
        [0, 1, 1],
        "another id"
    );
}

#[test]
fn row_order_does_not_matter() {
    let rows = ["10 4\n", "2 5\n", "zlib 6\n", "bash 7\n", "33 8\n"];
    for turn in 0..rows.len() {
        let mut turned = rows;
        turned.rotate_left(turn);
        let mut back = turned;
        back.reverse();
        for (result, reference) in [(turned, back), (back, turned), (turned, turned)] {
            assert!(verdict(&result.concat(), &reference.concat(), Rule::Exact).is_same());
            let changed = result
                .concat()
                .replace("bash 7", "bash 9")
                .replace("33 8\n", "");
            assert_eq!(
                counts(&verdict(&changed, &reference.concat(), Rule::Exact)),
                [1, 1, 0]
            );
        }
    }
}

#[test]
fn vertex_with_two_rows_is_an_error() {
    for text in ["1 5\n1 5\n2 3\n", "1 5\n2 3\n1 5\n", "2 3\n1 5\n1 6\n"] {
        for (result, reference, file) in [
            (text, "1 5\n2 3\n", "result"),
            ("1 5\n2 3\n", text, "reference"),
        ] {
            let error = compared(result, reference, Rule::Exact).expect_err("a vertex twice");
            assert_eq!(
                error.to_string(),
                format!("cannot compare {file}: it has vertex 1 twice")
            );
        }
    }
}

#[test]
fn malformed_line_is_an_error_with_its_number() {
    let long = "x".repeat(1 << 17);
    for (text, line) in [
        ("1 5\n2\n", 2),
        ("1 5\n\n\n2 5 6\n", 4),
        ("vertex,depth\n1,5\n2\n", 3),
        ("vertex,depth\n1,5,6\n", 2),
        ("vertex,depth\n,1\n", 2),
        ("vertex,depth\n\"a,1\n", 2),
        ("vertex,depth\n\"a\"b,1\n", 2),
        ("count\nmany\n", 2),
        ("0,1\n1,5\n", 1),
        ("\0\u{1}", 1),
        (long.as_str(), 1),
    ] {
        match compared(text, "1 5\n", Rule::Exact) {
            Err(ValidateError::Malformed { line: found, .. }) => {
                assert_eq!(found, line, "{text:.20}")
            }
            other => panic!("{text:.20}: {other:?}"),
        }
    }
}

#[test]
fn rows_of_numbers_may_have_any_names() {
    for (result, reference, differing) in [
        ("inside,share\n3,0.5\n", "inside,share\n3.0,0.5\n", 0),
        (
            "inside\tshare\tall\n3\t0.5\t\n",
            "inside,share,all\n3,0.25,1\n",
            2,
        ),
        ("triangles\n7\n", "triangles\n7\n", 0),
    ] {
        let verdict = verdict(result, reference, Rule::Exact);
        assert_eq!(verdict.rows, RowKind::Columns, "{result}");
        assert_eq!(verdict.differences, differing, "{result}: {verdict:?}");
    }
    let other = verdict("inside\n3\n", "outside\n3\n", Rule::Exact);
    assert_eq!(counts(&other), [0, 1, 1]);
    let twice = compared("id,depth\n1,5\n2,6\n", "id,depth\n", Rule::Exact);
    assert!(
        matches!(twice, Err(ValidateError::Malformed { line: 3, .. })),
        "{twice:?}"
    );
    let vertices = compared("id,depth\n1,5\n", "1 5\n", Rule::Exact);
    assert!(
        matches!(vertices, Err(ValidateError::Column { .. })),
        "{vertices:?}"
    );
}

#[test]
fn text_may_have_crlf_and_quoted_ids() {
    let result = "\u{feff}vertex,value\r\n\"a,\"\"b\",1\r\n\"c\",2";
    assert!(verdict(result, "\u{feff}c\t2\r\na,\"b  1", Rule::Exact).is_same());
}

#[test]
fn differences_are_counted_and_first_described() {
    let result: String = (0..20).map(|vertex| format!("{vertex} 1\n")).collect();
    let reference: String = (1..21)
        .map(|vertex| format!("{vertex} {}\n", vertex % 2))
        .collect();
    let verdict = verdict(&result, &reference, Rule::Exact);
    assert_eq!((verdict.vertices, verdict.differences), (20, 11));
    assert_eq!(verdict.described.len(), 10);
    let first = [
        "vertex 0 has 1, but is not in the reference",
        "vertex 2 has 1, expected 0",
    ];
    assert_eq!(verdict.described[..2], first);
}

#[test]
fn unsorted_files_need_memory() {
    let opened = Cell::new(0);
    let compare = |rows: std::ops::Range<u64>, first: u64, budget: u64| {
        let open = |_: &Path| -> Result<RowIter, ValidateError> {
            opened.set(opened.get() + 1);
            let row = |vertex| {
                Ok(ResultRow {
                    id: RowId::Integer(vertex),
                    value: Value::Integer(1),
                    line: 0,
                })
            };
            Ok(Box::new(
                std::iter::once(first).chain(rows.clone()).map(row),
            ))
        };
        compare(
            &MemoryBudget::new(budget),
            [Path::new("a"), Path::new("b")],
            Rule::Exact,
            open,
        )
    };
    assert_eq!(compare(1..100_000, 0, 0).unwrap().vertices, 100_000);
    assert_eq!(opened.get(), 2);
    assert!(matches!(
        compare(1..100_000, 200_000, 1 << 20),
        Err(ValidateError::Budget(_))
    ));
    assert_eq!(
        compare(1..100_000, 200_000, 64 << 20).unwrap().vertices,
        100_000
    );
}

#[test]
fn csv_ids_are_compared_as_text() {
    let same = |left: &str, right: &str| {
        let text = |row: &str| format!("vertex,value\n{row}\n");
        verdict(&text(left), &text(right), Rule::Exact).is_same()
    };
    assert!(same("\"x \",1", "\"x \",1"));
    for (left, right) in [
        ("\"x \",1", "x,1"),
        ("x ,1", "x,1"),
        (" x,1", "x,1"),
        ("\"\tx\",1", "x,1"),
        ("7 ,1", "7,1"),
        ("\"a\nb\",1", "ab,1"),
    ] {
        assert!(!same(left, right), "{left:?} {right:?}");
    }
    // Line ends within quotes, and line ends of other systems.
    assert!(same("\"a\nb\",1\nc,2", "\"a\nb\",1\r\nc,2\r"));
    assert!(same("\"a\"\"\n\n,b\",1\nc,2", "c,2\n\"a\"\"\n\n,b\",1"));
    // Blanks around a number mean nothing.
    assert!(same("x,1 ", "x,1.0"));
    let open = compared("vertex,value\n\"a,1\n", "vertex,value\na,1\n", Rule::Exact);
    assert!(open.is_err());
}
