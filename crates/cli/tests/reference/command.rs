//! The command as the tests call it, and its results as they read them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

/// A folder of its own for one stored graph and its results; removed at the end.
pub(crate) struct Workplace {
    folder: TempDir,
    /// Stands in front of every message, to say which case fails.
    case: String,
}

impl Workplace {
    pub(crate) fn new(case: String) -> Workplace {
        Workplace {
            folder: TempDir::new().expect("a temporary folder"),
            case,
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn graph(&self) -> PathBuf {
        self.folder().join("graph")
    }

    /// `graphmill import EDGES -o GRAPH --vertices VERTICES OPTIONS`
    pub(crate) fn import(&self, edges: &Path, vertices: Option<&Path>, options: &[&str]) {
        let graph = self.graph();
        let mut arguments = vec![
            "import".as_ref(),
            edges.as_os_str(),
            "-o".as_ref(),
            graph.as_os_str(),
        ];
        if let Some(vertices) = vertices {
            arguments.extend(["--vertices".as_ref(), vertices.as_os_str()]);
        }
        arguments.extend(options.iter().map(|option| OsStr::new(*option)));
        self.call(&arguments);
    }

    /// `graphmill run ALGORITHM GRAPH -o FILE.csv OPTIONS`; returns the file.
    pub(crate) fn run(&self, algorithm: &str, options: &[&str]) -> PathBuf {
        let (succeeded, said) = self.try_run(algorithm, options);
        assert!(succeeded, "{}: {algorithm} {options:?}: {said}", self.case);
        self.result()
    }

    /// The memory that such a run asks for when it has too little, as `--memory` takes it.
    pub(crate) fn least(&self, algorithm: &str, options: &[&str]) -> String {
        // Each rank needs some to open the graph.
        let ranks = options.iter().skip_while(|word| **word != "--ranks").nth(1);
        let little = format!("{}M", ranks.unwrap_or(&"1"));
        let (succeeded, said) =
            self.try_run(algorithm, &[options, &["--memory", &little]].concat());
        let asked = said.split_once("give --memory ");
        let least = asked.and_then(|(_, asked)| asked.split_once(" or more"));
        match least {
            Some((least, _)) if !succeeded => least.to_string(),
            _ => panic!("{}: {algorithm} {options:?} in {little}: {said}", self.case),
        }
    }

    /// The file of the last result.
    pub(crate) fn result(&self) -> PathBuf {
        self.folder().join("result.csv")
    }

    /// Whether a run succeeded, and what it said.
    fn try_run(&self, algorithm: &str, options: &[&str]) -> (bool, String) {
        let (graph, result) = (self.graph(), self.result());
        let mut arguments = vec![
            "run".as_ref(),
            algorithm.as_ref(),
            graph.as_os_str(),
            "-o".as_ref(),
            result.as_os_str(),
        ];
        arguments.extend(options.iter().map(|option| OsStr::new(*option)));
        self.try_call(&arguments)
    }

    /// `graphmill validate RESULT REFERENCE OPTIONS`
    pub(crate) fn validate(&self, result: &Path, reference: &Path, options: &[&str]) {
        let mut arguments = vec![
            "validate".as_ref(),
            result.as_os_str(),
            reference.as_os_str(),
        ];
        arguments.extend(options.iter().map(|option| OsStr::new(*option)));
        self.call(&arguments);
    }

    /// Returns the values of a result, which must hold exactly the vertices `ids` in this order.
    ///
    /// `inf` and an empty field are `None`.
    pub(crate) fn values(&self, result: &Path, ids: &[u64]) -> Vec<Option<String>> {
        let text = std::fs::read_to_string(result).expect("a result");
        let mut lines = text.lines();
        let header = lines.next().unwrap_or_default();
        assert!(
            header.starts_with("vertex,"),
            "{}: the header is {header:?}",
            self.case
        );
        let rows = lines.map(|line| {
            line.split_once(',')
                .unwrap_or_else(|| panic!("{}: row {line:?}", self.case))
        });
        let (vertices, values): (Vec<&str>, Vec<&str>) = rows.unzip();
        let expected: Vec<String> = ids.iter().map(u64::to_string).collect();
        assert!(
            vertices == expected,
            "{}: {} vertices, expected {}, or not the same",
            self.case,
            vertices.len(),
            ids.len()
        );
        values
            .into_iter()
            .map(|value| (!["", "inf"].contains(&value)).then(|| value.to_string()))
            .collect()
    }

    fn call(&self, arguments: &[&OsStr]) {
        let (succeeded, said) = self.try_call(arguments);
        assert!(succeeded, "{}: {arguments:?}: {said}", self.case);
    }

    /// Whether the command succeeded, and what it said.
    fn try_call(&self, arguments: &[&OsStr]) -> (bool, String) {
        let mut command = assert_cmd::Command::new(env!("CARGO_BIN_EXE_graphmill"));
        let output = command
            .args(arguments)
            .timeout(Duration::from_secs(300))
            .output();
        let output = output.unwrap_or_else(|error| panic!("{}: {arguments:?}: {error}", self.case));
        let errors = String::from_utf8_lossy(&output.stderr);
        let said = String::from_utf8_lossy(&output.stdout);
        let said = format!("{}\n{errors}{said}", output.status);
        (output.status.success(), said)
    }
}

/// Values as numbers.
pub(crate) fn parsed<T: std::str::FromStr>(values: Vec<Option<String>>) -> Vec<Option<T>> {
    let number = |value: String| {
        value
            .parse()
            .unwrap_or_else(|_| panic!("{value:?} is not a number"))
    };
    values.into_iter().map(|value| value.map(number)).collect()
}

/// Values as numbers that every vertex has.
pub(crate) fn complete<T: std::str::FromStr>(values: Vec<Option<String>>) -> Vec<T> {
    parsed(values)
        .into_iter()
        .map(|value| value.expect("every vertex has a value"))
        .collect()
}

/// Panics at the first value that is not the expected one.
pub(crate) fn assert_same<T: PartialEq + std::fmt::Debug>(what: &str, found: &[T], expected: &[T]) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let differ = found
        .iter()
        .zip(expected)
        .filter(|(found, expected)| found != expected)
        .count();
    if let Some(first) = found
        .iter()
        .zip(expected)
        .position(|(found, expected)| found != expected)
    {
        let (found, expected) = (&found[first], &expected[first]);
        panic!(
            "{what}: {differ} values differ, the first is number {first}: {found:?}, expected {expected:?}"
        );
    }
}

/// Panics at the first value that is further from the expected one than `share` of it.
pub(crate) fn assert_close(what: &str, found: &[f64], expected: &[f64], share: f64) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (number, (found, expected)) in found.iter().zip(expected).enumerate() {
        let close = (found - expected).abs() <= share * expected.abs();
        assert!(
            close,
            "{what}: value {number} is {found}, expected {expected}"
        );
    }
}
