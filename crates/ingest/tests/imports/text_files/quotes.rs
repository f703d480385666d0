//! Quotes in lines and in comments.

use super::*;

#[test]
fn quotes_in_comments_are_text() {
    let comment = "# 5\" disks, it is said\n";
    let edges: String = (0..4000)
        .map(|i| format!("\"{i}\",{},x\n", i + 1))
        .collect();
    let wanted = 4000;
    let (found, _) = read(
        "a.csv",
        format!("{comment}{edges}").as_bytes(),
        &options(""),
    )
    .unwrap();
    assert_eq!(found.split(' ').count(), wanted);
    // Comments among edges, over the ends of pieces.
    let mixed: String = edges
        .lines()
        .enumerate()
        .map(|(i, line)| match i % 3 {
            0 => format!("{line}\n{comment}"),
            _ => format!("{line}\n"),
        })
        .collect();
    let (found, _) = read("a.csv", mixed.as_bytes(), &options("comments=#")).unwrap();
    assert_eq!(found.split(' ').count(), wanted);
}

#[test]
fn stray_quote_spoils_its_line_only() {
    let line = |i: u64| match i % 100 {
        7 => format!("5\" {i},{}\n", i + 1),
        50 => format!("\"a\nb\",\"{i}\"\n"),
        60 => format!("\"\"\"{i}\",\"x\"\"\"\n"),
        _ => format!("\"{i}\",\"{}\"\n", i + 1),
    };
    let text: String = (0..4000).map(line).collect();
    let (found, said) = read("a.csv", text.as_bytes(), &options("skip=1")).unwrap();
    assert_eq!(found.split(' ').count(), 3960, "{said}");
}

#[test]
fn csv_quotes_enclose_columns() {
    all_are_read(&[
        (
            "a.csv",
            "",
            "\"a, x\",\"b\"\n\"b\",\"c \"\"d\"\"\"\n",
            "a, x>b b>c \"d\"",
            "ids text",
        ),
        ("a.csv", "", "\"1\",\"2\"\n3,4\n", "1>2 3>4", "ids int"),
        ("a.csv", "", "\"000123\",\"7\"\n", "000123>7", "ids text"),
        (
            "a.csv",
            "",
            "a,b,\"note one\nwith, comma\"\nc,d,x\n",
            "a>b c>d",
            "",
        ),
        (
            "a.csv",
            "",
            "a,b,\"note one\r\nwith, comma\"\r\nc,d,x\r\n",
            "a>b c>d",
            "",
        ),
        ("a.csv", "", "\"x \",y\nx,y\n", "x >y x>y", ""),
        ("a.tsv", "", "\"a\tb\"\tc\n", "a\tb>c", ""),
        ("a.csv", "quote=none", "5\" pipe,x\n", "5\" pipe>x", ""),
        (
            "a.txt",
            "quote=yes",
            "\"New York\",\"Rome\"\n",
            "New York>Rome",
            "",
        ),
    ]);
    all_are_refused(&[
        (
            "a.csv",
            "",
            "a,\"b\nc,d\n",
            "line 1: the quotes that open here are not closed",
        ),
        ("a.csv", "", "a,b\nx,\"c\"d\n", "line 2"),
        ("a.csv", "", "5\" pipe,x\n", "--quote none"),
        ("a.txt", "", "\"New York\"\t\"Rome\"\n", "--quote"),
    ]);
    // A quoted field over the ends of pieces, and a first quote far down.
    let many: String = (0..3000)
        .map(|i| format!("{i},{},\"x\ny, {i}\n\"\n", i + 1))
        .collect();
    let (edges, _) = read("a.csv", many.as_bytes(), &options("")).unwrap();
    assert_eq!(edges.split(' ').count(), 3000);
    let plain: String = (0..60_000).map(|i| format!("{i},{},x\n", i + 1)).collect();
    let late = format!("{plain}7,8,\"a\n9,9,b\"\n10,11,x\n");
    let (edges, _) = read("a.csv", late.as_bytes(), &options("")).unwrap();
    assert!(
        edges.ends_with("59999>60000 7>8 10>11"),
        "{}",
        &edges[edges.len() - 40..]
    );
}
