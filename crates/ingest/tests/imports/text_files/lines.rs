//! Lines, ids and comments; files that are no edge lists; folders.

use super::*;

#[test]
fn lines_end_in_every_way() {
    all_are_read(&[
        ("a.el", "", "1 2\r3 4\r5 6\r", "1>2 3>4 5>6", ""),
        ("a.el", "", "1 2\r\n3 4\r5 6\n7 8", "1>2 3>4 5>6 7>8", ""),
        ("a.csv", "", "s,t\r1,2\r3,4", "1>2 3>4", "columns s -> t"),
        ("a.csv", "", "a,b,junk\rc,d,x\n", "a>b c>d", ""),
        (
            "a.csv",
            "",
            "\u{feff}source,target\n1,2\n\u{feff}source,target\n3,4\n",
            "1>2 3>4",
            "",
        ),
        ("a.csv", "", "\u{feff}a,b\n\u{feff}b,c\n", "a>b b>c", ""),
        (
            "a.el",
            "",
            "\u{feff}# x\n1 2\n\n\n3 4\n",
            "1>2 3>4",
            "1 comment line",
        ),
        ("a.csv", "", "", "", ""),
        ("a.csv", "", "\n\n", "", ""),
    ]);
    let many: String = (0..60_000).map(|i| format!("{i} {}\r", i + 1)).collect();
    let (edges, _) = read("a.el", many.as_bytes(), &options("")).unwrap();
    assert_eq!(edges.split(' ').count(), 60_000);
}

#[test]
fn ids_are_their_text() {
    all_are_read(&[
        ("a.el", "", "007 1\n7 2\n", "007>1 7>2", "ids text"),
        ("a.el", "", "+7 1\n7 2\n", "+7>1 7>2", "ids text"),
        ("a.el", "", "1.0 1\n1 2\n", "1.0>1 1>2", "ids text"),
        ("a.el", "", "1e3 1000\n", "1e3>1000", "ids text"),
        (
            "a.el",
            "",
            "-3 4\n5 -6\n",
            "-3>4 5>-6",
            "ids int (some negative)",
        ),
        (
            "a.el",
            "",
            "-9223372036854775808 9223372036854775807\n",
            "-9223372036854775808>9223372036854775807",
            "",
        ),
        (
            "a.el",
            "",
            "18446744073709551615 0\n",
            "18446744073709551615>0",
            "ids int",
        ),
        (
            "a.el",
            "",
            "1 2\n2 3\n3 n/a\n",
            "1>2 2>3 3>n/a",
            "ids are text because of line 3: \"n/a\"",
        ),
        ("a.el", "ids=int", "-3 4\n", "-3>4", ""),
        ("a.el", "ids=text", "1 2\n", "1>2", "ids text"),
        (
            "a.el",
            "ids=text",
            "-1 18446744073709551615\n",
            "-1>18446744073709551615",
            "ids text",
        ),
    ]);
    all_are_refused(&[
        ("a.el", "", "-1 18446744073709551615\n", "2^63 or more"),
        (
            "a.el",
            "ids=int",
            "1 2\n007 1\n",
            "line 2, \"007 1\": column 1 is no integer",
        ),
        ("a.el", "ids=int", "1 2\n3 +4\n", "column 2 is no integer"),
        ("a.el", "ids=int", "1 x\n", "--ids string"),
        ("a.txt", "", "a\tb\nc\t\\N\n", "line 2"),
        ("a.txt", "", "\u{fffd}", "where 2 are needed"),
    ]);
}

#[test]
fn comments_stand_before_the_first_edge() {
    all_are_read(&[
        (
            "a.txt",
            "",
            "# Directed graph\n# FromNodeId\tToNodeId\n1\t2\n",
            "1>2",
            "2 comment lines",
        ),
        (
            "a.csv",
            "",
            "#ml,#ai\n#ai,#db\n",
            "#ml>#ai #ai>#db",
            "ids text",
        ),
        ("a.csv", "", "x,y\n#ml,#ai\n", "x>y #ml>#ai", ""),
        (
            "a.csv",
            "",
            "%C3%89cole,b\n%C3%A9,c\n",
            "%C3%89cole>b %C3%A9>c",
            "",
        ),
        (
            "a.txt",
            "",
            "//host/x //host/y\n//host/y //host/z\n",
            "//host/x>//host/y //host/y>//host/z",
            "",
        ),
        (
            "out.x",
            "",
            "% sym unweighted\n% 2 3 3\n1 2\n2 3\n",
            "1>2 2>3",
            "2 comment lines",
        ),
        ("a.txt", "comments=#", "1 2\n# x\n3 4\n", "1>2 3>4", ""),
        ("a.txt", "comments=none", "# b\nc d\n", "#>b c>d", ""),
        ("a.csv", "comments=;", "; made by hand\na,b\n", "a>b", ""),
        (
            "a.txt",
            "",
            "#FromNodeId\tToNodeId\n1\t2\n",
            "1>2",
            "columns FromNodeId -> ToNodeId",
        ),
    ]);
    all_are_refused(&[
        (
            "a.txt",
            "",
            "a b\n# x\nc d\n",
            "line 2, \"# x\": this looks like a comment",
        ),
        ("a.el", "", "1 2\n# 3\n4 5\n", "--comments"),
    ]);
}

#[test]
fn files_that_are_no_edge_lists_are_refused() {
    all_are_refused(&[
        ("a.txt", "", "<http://a> <http://b> <http://c> .\n", "RDF"),
        ("a.txt", "", "{\"source\": 1, \"target\": 2}\n", "JSON"),
        (
            "a.txt",
            "",
            "1 -> 2\n2 -> 3\n",
            "--source-column 1 --target-column 3",
        ),
        (
            "a.txt",
            "",
            "c comment\np sp 3 2\na 1 2 3\n",
            "--format dimacs",
        ),
        (
            "a.txt",
            "",
            "%%MatrixMarket matrix coordinate real general\n3 3 1\n1 2 1\n",
            "line of sizes",
        ),
        ("a.txt", "", "<?xml version=\"1.0\"?>\n<graphml/>\n", "XML"),
        ("a.txt", "", "digraph {\n a -> b\n}\n", "Graphviz"),
        ("a.txt", "", "graph [\n node [\n id 1 ] ]\n", "GML"),
        ("a.txt", "", "<!DOCTYPE html>\n<html>\n", "HTML"),
        ("a.csv", "", "PK\u{3}\u{4}x", "save the sheet as CSV"),
        ("a.txt", "", "*Vertices 3\n1 \"a\"\n", "Pajek"),
        ("a.graph", "", "3 2\n2\n1 3\n2\n", "METIS"),
        ("a.csv.gz", "", "", "cut short"),
    ]);
    all_are_read(&[
        (
            "a.txt",
            "source=1 target=3 delimiter=space",
            "1 -> 2\n2 -> 3\n",
            "1>2 2>3",
            "",
        ),
        (
            "a.txt",
            "source=1 target=3 delimiter=space",
            "<a> <b> <c> .\n",
            "<a>><c>",
            "",
        ),
        ("a.txt", "source=1 target=2", "1 2 3\n2 1\n", "1>2 2>1", ""),
    ]);
}

#[test]
fn directories_are_read_recursively() {
    let disk = folder(&[
        ("a.csv", b"from,to\nx,y\n"),
        ("b/c.csv", b"from,to\ny,z\n"),
        ("b/d.csv", b"from,to\n"),
        ("Thumbs.db", b"\xd0\xcf\x11\xe0"),
        ("a.csv~", b"old,edges\n"),
        ("a.csv.bak", b"old,edges\n"),
    ]);
    let (edges, notice) = read_all(&disk, &options("")).unwrap();
    assert_eq!(edges, "x>y y>z");
    assert_eq!(
        notice,
        "in/a.csv and 2 more: columns from -> to, header yes, ids text, directed"
    );
    // A part with one line is read as the parts before it.
    let disk = folder(&[
        ("p0.csv", b"user_a,user_b\nann,bob\n"),
        ("p1.csv", b"user_a,user_b\n"),
    ]);
    assert_eq!(read_all(&disk, &options("")).unwrap().0, "ann>bob");
}

#[test]
fn utf_16_is_refused_with_advice() {
    let text: Vec<u8> = "1 2".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let bytes = [&b"\xff\xfe"[..], &text].concat();
    let error = read("a.txt", &bytes, &options("")).unwrap_err();
    assert!(
        error.contains("UTF-16") && error.contains("iconv"),
        "{error}"
    );
}

#[test]
fn skipped_lines_are_counted_not_read() {
    let (edges, _) = read("a.csv", b"1,2\n3\n4,5,6\n7,8\n", &options("skip=1")).unwrap();
    assert_eq!(edges, "1>2 7>8");
}
