//! A file of edges is imported once, and again when it changes, however it changes.

use std::fs::File;
use std::path::Path;

use crate::{call, folder_with_edges, names};

/// Runs an algorithm on `input` and says whether its edges were imported for that.
fn imports(at: &Path, input: &str) -> bool {
    let output = call(at, &["run", "wcc", input, "-o", "parts.csv"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let imports = said.contains("importing ");
    assert_ne!(imports, said.contains("imported before"), "{said}");
    imports
}

/// Puts the time of modification of one file on another.
fn copy_time(from: &Path, to: &Path) {
    let time = from.metadata().and_then(|facts| facts.modified());
    let to = File::options().write(true).open(to).expect("a file");
    to.set_modified(time.expect("a time")).expect("a new time");
}

/// Another text of the same size and time of modification, written in place or renamed over the file.
fn change(file: &Path, text: &str, in_place: bool) {
    let other = file.with_extension("other");
    std::fs::copy(file, &other).expect("a copy");
    copy_time(file, &other);
    if in_place {
        std::fs::write(file, text).expect("a file");
        copy_time(&other, file);
        std::fs::remove_file(other).expect("no file");
    } else {
        std::fs::write(&other, text).expect("a file");
        copy_time(file, &other);
        std::fs::rename(other, file).expect("another name");
    }
}

#[test]
fn skipped_lines_are_reported_by_every_run() {
    let folder = folder_with_edges("1 2\n2\n2 3\n");
    let at = folder.path();
    for _ in 0..2 {
        let run = ["run", "wcc", "edges.txt", "--on-error", "skip", "-q"];
        let said = String::from_utf8(call(at, &run).stderr).expect("text");
        assert!(
            said.contains("malformed lines skipped when it was imported: 1"),
            "{said}"
        );
    }
}

#[test]
fn cache_detects_change_of_same_size_and_time() {
    let folder = folder_with_edges("1 2\n2 3\n");
    let at = folder.path();
    let parts = || std::fs::read_to_string(at.join("parts.csv")).expect("a result");
    assert!(imports(at, "edges.txt"));
    assert!(!imports(at, "edges.txt"));
    assert!(parts().contains("\n3,1\n"), "{}", parts());
    change(&at.join("edges.txt"), "1 2\n4 3\n", true);
    assert!(imports(at, "edges.txt"));
    assert!(parts().contains("\n3,3\n"), "{}", parts());
    change(&at.join("edges.txt"), "1 2\n2 9\n", false);
    assert!(imports(at, "edges.txt"));
    assert!(parts().contains("\n9,1\n"), "{}", parts());
    assert!(!imports(at, "edges.txt"));
    assert_eq!(
        names(&at.join("edges.txt.graphmill")).len(),
        1,
        "old graphs go"
    );
}

#[test]
fn cache_detects_change_in_any_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    std::fs::create_dir(at.join("edges")).expect("a folder");
    for name in ["a.txt", "b.txt"] {
        std::fs::write(at.join("edges").join(name), "1 2\n").expect("a file");
    }
    assert!(imports(at, "edges"));
    assert!(!imports(at, "edges"));
    change(&at.join("edges/b.txt"), "1 3\n", true);
    assert!(imports(at, "edges"));
}

#[test]
fn cache_finds_file_by_another_path() {
    let folder = folder_with_edges("1 2\n");
    let at = folder.path();
    assert!(imports(at, "edges.txt"));
    assert!(!imports(at, "./edges.txt"));
    let whole = at.join("edges.txt");
    assert!(!imports(at, whole.to_str().expect("a path in UTF-8")));
}
