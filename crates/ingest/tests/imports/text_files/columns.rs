//! The columns of a line: header, names, separator, number.

use super::*;

#[test]
fn columns_are_found_by_header_and_name() {
    all_are_read(&[
        (
            "a.csv",
            "",
            "record_a,record_b\nann,bob\nbob,cy\n",
            "ann>bob bob>cy",
            "columns record_a -> record_b, header yes, ids text, directed; if \"record_a,record_b\" is data: --header no",
        ),
        (
            "a.csv",
            "header=no",
            "record_a,record_b\nann,bob\n",
            "record_a>record_b ann>bob",
            "columns 1 -> 2, header no",
        ),
        (
            "a.csv",
            "",
            "ann,bob\nbob,cy\n",
            "ann>bob bob>cy",
            "header no, ids text, directed",
        ),
        (
            "a.csv",
            "",
            "ann,bob\ncy,dan\n",
            "ann>bob cy>dan",
            "if \"ann,bob\" names the columns: --header yes",
        ),
        (
            "a.csv",
            "header=yes",
            "ann,bob\ncy,dan\n",
            "cy>dan",
            "columns ann -> bob, header yes",
        ),
        (
            "a.csv",
            "",
            "start_id,end_id\n-5,7\n7,8\n",
            "-5>7 7>8",
            "columns start_id -> end_id, header yes, ids int (some negative)",
        ),
        (
            "a.csv",
            "",
            "start_id,end_id\n1.0,2.0\n",
            "1.0>2.0",
            "header yes, ids text",
        ),
        (
            "a.csv",
            "",
            "x,y\n1,2\n",
            "1>2",
            "columns x -> y, header yes, ids int",
        ),
        (
            "a.csv",
            "",
            ",source,target\n0,7,8\n1,8,9\n",
            "7>8 8>9",
            "columns source -> target, header yes, ids int, directed; 1 column ignored",
        ),
        ("a.csv", "", ",0,1\n0,7,8\n1,8,9\n", "7>8 8>9", "header yes"),
        (
            "a.csv",
            "",
            "Id,Source,Target\n0,a,b\n1,b,c\n",
            "a>b b>c",
            "columns Source -> Target",
        ),
        (
            "a.csv",
            "weights=1",
            "Source,Target,Type,Id,Label,timeset,Weight\n1,2,Directed,0,,,3.5\n",
            "1>2:3.5",
            "columns Source -> Target, weights Weight, header yes",
        ),
        (
            "a.csv",
            "",
            "match_weight,match_probability,unique_id_l,unique_id_r\n3.2,0.9,a1,b1\n",
            "a1>b1",
            "columns unique_id_l -> unique_id_r",
        ),
        (
            "a.csv",
            "",
            ":START_ID(Person),since:int,:END_ID(Person),:TYPE\n1,1999,2,KNOWS\n",
            "1>2",
            "columns :START_ID(Person) -> :END_ID(Person)",
        ),
        (
            "a.csv",
            "source=b target=c",
            "a,b,c\nx,y,z\n",
            "y>z",
            "columns b -> c, header yes",
        ),
        (
            "a.csv",
            "source=3 target=1",
            "1,2,3\n4,5,6\n",
            "3>1 6>4",
            "columns 3 -> 1, header no",
        ),
        (
            "a.csv",
            "source=2 target=3",
            "a,b,c\n1,2,3\n",
            "2>3",
            "columns b -> c",
        ),
        (
            "a.csv",
            "weight=w2",
            "s,t,w1,w2\n1,2,3,4\n",
            "1>2:4",
            "weights w2",
        ),
        (
            "a.csv",
            "header=yes",
            "from,to\nto,x\n",
            "to>x",
            "columns from -> to, header yes",
        ),
        (
            "a.csv",
            "",
            "node1,node2\n1,2\nnode1,node2\n3,4\n",
            "1>2 3>4",
            "header yes",
        ),
        (
            "a.csv",
            "",
            "1,2\n3,4\n",
            "1>2 3>4",
            "a.csv: columns 1 -> 2, header no, ids int, directed",
        ),
        (
            "a.csv",
            "",
            "source,target\n",
            "",
            "columns source -> target, header yes",
        ),
        (
            "a.txt",
            "",
            "source target\n1 2\n",
            "1>2",
            "columns source -> target, header yes",
        ),
        (
            "a.csv",
            "",
            "id1,id2,note\n1,2,\"one\nwith, comma\"\n3,4,x\n",
            "1>2 3>4",
            "1 column ignored",
        ),
        (
            "a.csv",
            "",
            "#source,target\n1,2\n",
            "1>2",
            "columns source -> target, header yes",
        ),
    ]);
    all_are_refused(&[
        (
            "a.csv",
            "source=x target=t",
            "s,t\n1,2\n",
            "--source-column x: there is no such column; it has s, t",
        ),
        (
            "a.csv",
            "source=x target=t header=no",
            "s,t\n1,2\n",
            "it has no header",
        ),
        (
            "a.csv",
            "",
            "match_weight,p,record_a,record_b\n3.2,0.9,a1,b1\n",
            "--source-column and --target-column",
        ),
        ("a.csv", "source=1 target=1", "1,2\n", "one column"),
        (
            "a.csv",
            "source=5 target=6",
            "a,b\nx,y\n",
            "columns where 6 are needed",
        ),
    ]);
}

#[test]
fn separator_is_one_per_file() {
    all_are_read(&[
        (
            "a.el",
            "",
            "1 2\n3 4\n",
            "1>2 3>4",
            "columns 1 -> 2, header no, ids int",
        ),
        ("a.txt", "", "1\t2\n3\t4\n", "1>2 3>4", ""),
        ("a.txt", "", "1, 2\n3, 4\n", "1>2 3>4", "separated by ,"),
        ("a.txt", "", "a, b\nc, d\n", "a>b c>d", "separated by ,"),
        (
            "a.txt",
            "",
            "Portland,_Oregon\tOregon\n",
            "Portland,_Oregon>Oregon",
            "",
        ),
        ("a.txt", "", "AT&T, Bell\tx\n", "AT&T, Bell>x", ""),
        (
            "a.txt",
            "",
            "New York\tLos Angeles\nRome\tNew York\n",
            "New York>Los Angeles Rome>New York",
            "",
        ),
        ("a.csv", "", "1 2\n3 4\n", "1>2 3>4", "separated by space"),
        (
            "a.csv",
            "",
            "1;2;0,5\n3;4;1,5\n",
            "1>2 3>4",
            "separated by ;",
        ),
        ("a.csv", "", "source|target\na|b\n", "a>b", "separated by |"),
        (
            "a.csv",
            "",
            "sep=;\r\na;b\r\nc;d\r\n",
            "a>b c>d",
            "separated by ;",
        ),
        (
            "a.txt",
            "delimiter=space",
            "http://x/a,b c\n",
            "http://x/a,b>c",
            "",
        ),
        (
            "a.txt",
            "delimiter=space",
            "1,234 5,678\n",
            "1,234>5,678",
            "ids text",
        ),
        ("a.el", "", "  1   2  \n\t3 4\n", "1>2 3>4", ""),
        (
            "a.el",
            "weights=1",
            "1 2 0.5\n3 4 7\n",
            "1>2:0.5 3>4:7",
            "weights 3",
        ),
        (
            "a.edgelist",
            "",
            "1 2 {'weight': 3, 'x': 1}\n2 3 {}\n",
            "1>2 2>3",
            "",
        ),
        ("a.tsv", "", "a b\tc d\n", "a b>c d", ""),
        ("a.csv", "", "x ,y\nx,y\n", "x >y x>y", ""),
        ("a.csv", "", "1, 2\n", "1>2", "ids int"),
    ]);
    all_are_refused(&[
        (
            "a.txt",
            "weights=1",
            "1 2 0,5\n",
            "line 1, \"1 2 0,5\": the weight in column 3",
        ),
        (
            "a.csv",
            "weights=1",
            "1;2;0,5\n3;4;0,7\n",
            "the weight in column 3 is no finite number, with a point",
        ),
        ("a.txt", "", "http://x/a,b c\n", "--delimiter"),
        ("a.txt", "", "1,234 5,678\n", "--delimiter"),
        (
            "a.el",
            "",
            "1 2\n3,4\n",
            "line 2, \"3,4\": 1 column where 2 are needed (--delimiter",
        ),
        ("a.txt", "", "a b\nNew York Rome\n", "columns"),
        ("a.csv", "", "a,b\nBell, Inc,c\n", "columns"),
        ("a.csv", "", "a,b\nc;d\n", "where 2 are needed"),
        ("a.el", "", "1 2 3\n2 1\n3 1 2 4\n", "adjacency list"),
    ]);
}

#[test]
fn line_with_more_columns_is_an_error() {
    let many: String = (0..50_000).map(|i| format!("{i} {}\n", i + 1)).collect();
    let error = read("a.el", format!("{many}7 8 9\n").as_bytes(), &options("")).unwrap_err();
    assert!(
        error.contains("line 50001, \"7 8 9\": 3 columns where the first lines have 2"),
        "{error}"
    );
    let names: String = (0..50_000).map(|i| format!("n{i},m{i}\n")).collect();
    let error = read(
        "a.csv",
        format!("{names}Bell, Inc,x\n").as_bytes(),
        &options(""),
    )
    .unwrap_err();
    assert!(error.contains("line 50001"), "{error}");
}

#[test]
fn line_with_other_columns_is_an_error_anywhere() {
    for (name, words, plain, odd, says) in [
        (
            "a.csv",
            "",
            "1,2,3",
            "4,5",
            "2 columns where the first lines have 3",
        ),
        (
            "a.csv",
            "",
            "1,2,3",
            "4,5,6,7",
            "4 columns where the first lines have 3",
        ),
        (
            "a.csv",
            "weights=f64",
            "1,2,3",
            "4,5,1,5",
            "4 columns where the first lines have 3",
        ),
        ("a.csv", "", "1,2,x", "4,5", "2 columns"),
        ("a.csv", "", "1,2,x,y", "4,5,x", "3 columns"),
        ("a.txt", "", "1 2 3", "4 5", "2 columns"),
        ("a.txt", "", "1 2 3", "4 5 6 7", "4 columns"),
        ("a.txt", "", "1 2  3", "4 5 \t6 7 ", "4 columns"),
        ("a.tsv", "weights=f64", "1\t2\t3\tx", "1\t2\t3", "3 columns"),
    ] {
        let many = format!("{plain}\n").repeat(3000);
        for end in ["\n", "\r\n", "\r"] {
            for after in ["", &many] {
                let text = format!("{many}{odd}\n{after}").replace('\n', end);
                let error = read(name, text.as_bytes(), &options(words)).unwrap_err();
                assert!(error.contains("line 3001"), "{odd:?} {end:?}: {error}");
                assert!(error.contains(says), "{odd:?} {end:?}: {error}");
            }
        }
    }
    // Columns behind those that are wanted are any text.
    for line in ["4 5  6 ", "4 5 6\t", "4 5 {'a': 1, 'b': 2}"] {
        let text = format!("{}{line}\n", "1 2 3\n".repeat(3000));
        let (edges, _) = read("a.txt", text.as_bytes(), &options("")).unwrap();
        assert!(edges.ends_with("1>2 4>5"), "{line:?}");
    }
}
