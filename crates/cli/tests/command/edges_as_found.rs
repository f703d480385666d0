//! Edges as other programs write them, and texts that are easily misread: each file is read right, or refused with a hint that
//! works. `tests/edges_as_found/README.md` describes the cases.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use crate::call;

/// The directory of the files and of `cases.json`.
fn edges_as_found() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/edges_as_found")
}

/// What `cases.json` holds.
fn cases() -> Value {
    let text = std::fs::read_to_string(edges_as_found().join("cases.json")).expect("the cases");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn found_file_is_read_right_or_refused() {
    let all = cases();
    let cases = list(&all["cases"]);
    let folder = tempfile::tempdir().expect("a folder");
    copy(&edges_as_found(), folder.path());
    let mut failures = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let at = folder_of(case, number, folder.path());
        for step in [case].into_iter().chain(list(&case["then"])) {
            let attempt = Attempt::new(&at, case, step);
            if let Err(problem) = attempt.judge(step, &all["sets"]) {
                failures.push(format!("case {number}: {attempt}: {problem}"));
            }
        }
    }
    for failure in &failures {
        eprintln!("{failure}");
    }
    let (failed, cases) = (failures.len(), cases.len());
    assert!(failures.is_empty(), "{failed} failures in {cases} cases");
}

#[test]
fn found_file_is_small_and_has_a_case() {
    let all = cases();
    let words = |case| {
        let attempt = Attempt::new(Path::new(""), case, case);
        attempt.options.into_iter().chain([attempt.file])
    };
    let known: BTreeSet<&Path> = list(&all["cases"])
        .iter()
        .flat_map(words)
        .map(Path::new)
        .collect();
    let mut files = Vec::new();
    list_files(&edges_as_found(), &mut files);
    let in_a_directory = |file: &&Path| file.components().count() > 1;
    let unknown: Vec<_> = files
        .iter()
        .map(|file| file.strip_prefix(edges_as_found()).expect("a file in it"))
        .filter(in_a_directory)
        .filter(|file| !file.ancestors().any(|path| known.contains(path)))
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    let bytes: u64 = files
        .iter()
        .map(|file| file.metadata().expect("a file").len())
        .sum();
    assert!(bytes < 300 << 10, "{bytes} bytes");
}

/// The directory that a case runs in: that of all files, or its own with the texts that it brings.
fn folder_of(case: &Value, number: usize, files: &Path) -> PathBuf {
    let Some(text) = case["text"].as_str() else {
        return files.to_path_buf();
    };
    let at = files.join(format!("case-{number}"));
    std::fs::create_dir(&at).expect("a folder");
    let beside = case["beside"].as_object().into_iter().flatten();
    let beside = beside.map(|(name, text)| (name.as_str(), text.as_str().expect("a text")));
    for (name, text) in beside.chain([(word(&case["file"]), text)]) {
        std::fs::write(at.join(name), text).expect("a file");
    }
    at
}

/// One file read with some options.
struct Attempt<'a> {
    at: &'a Path,
    file: &'a str,
    options: Vec<&'a str>,
}

impl std::fmt::Display for Attempt<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.file, self.options.join(" "))
    }
}

impl<'a> Attempt<'a> {
    fn new(at: &'a Path, case: &'a Value, step: &'a Value) -> Self {
        let options = step["options"].as_str().unwrap_or_default();
        Self {
            at,
            file: word(&case["file"]),
            options: options.split_whitespace().collect(),
        }
    }

    /// Runs `algorithm` into `out.csv`.
    fn run(&self, algorithm: &str, more: &[&str]) -> Output {
        let mut arguments = vec!["run", algorithm, self.file, "-o", "out.csv"];
        arguments.extend(&self.options);
        arguments.extend(more);
        call(self.at, &arguments)
    }

    /// Checks that the file is read as one of the readings that `step` allows, or refused as it allows.
    fn judge(&self, step: &Value, sets: &Value) -> Result<(), String> {
        for name in ["out.csv", "metrics.json"] {
            let _absent_is_fine = std::fs::remove_file(self.at.join(name));
        }
        let output = self.run("wcc", &["--metrics", "metrics.json"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.code() {
            Some(0) => {
                let readings = list(&step["right"]);
                let judged = readings
                    .iter()
                    .map(|right| self.compare(right, sets, &said));
                let problems: Vec<_> = judged.map_while(Result::err).collect();
                if readings.is_empty() {
                    let found = components(&self.at.join("out.csv"))?;
                    Err(format!("not refused, but read as {found:?}: {said}"))
                } else if problems.len() == readings.len() {
                    Err(problems.join("; or "))
                } else {
                    Ok(())
                }
            }
            Some(1 | 2) if said.contains("error: ") => {
                let wanted = step.get("refused").ok_or(format!("refused: {said}"))?;
                has_all(&said, wanted)?;
                if self.at.join("out.csv").exists() {
                    return Err("refused, but there is a result".into());
                }
                Ok(())
            }
            _ => Err(format!("{}: {said}", output.status)),
        }
    }

    /// Compares what was read with `right`.
    fn compare(&self, right: &Value, sets: &Value, said: &str) -> Result<(), String> {
        let set = right["as"]
            .as_str()
            .map_or(&Value::Null, |name| &sets[name]);
        let fact = |name| right.get(name).or(set.get(name)).unwrap_or(&Value::Null);
        let wanted: BTreeSet<Ids> = list(fact("components")).iter().map(ids).collect();
        let found = components(&self.at.join("out.csv"))?;
        if found != wanted {
            return Err(format!(
                "components {found:?} instead of {wanted:?}: {said}"
            ));
        }
        let metrics =
            std::fs::read(self.at.join("metrics.json")).map_err(|error| error.to_string())?;
        let metrics: Value = serde_json::from_slice(&metrics).map_err(|error| error.to_string())?;
        let edges = &metrics["graph"]["arcs"];
        if edges != fact("edges") {
            return Err(format!(
                "{edges} edges instead of {}: {said}",
                fact("edges")
            ));
        }
        has_all(said, fact("notice"))?;
        let is_notice = |line: &str| ["column", "ids "].iter().all(|part| line.contains(part));
        if edges != 0 && !said.lines().any(is_notice) {
            return Err(format!("nothing says how the file was read: {said}"));
        }
        match fact("distances") {
            Value::Null => Ok(()),
            distances => self.compare_distances(distances, fact("notice")),
        }
    }

    /// Compares the distances from a vertex, by a run from the cache, which repeats the notice.
    fn compare_distances(&self, wanted: &Value, notice: &Value) -> Result<(), String> {
        let source = format!("--source={}", word(&wanted["from"]));
        let output = self.run("sssp", &[&source]);
        let said = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            return Err(format!("sssp: {said}"));
        }
        has_all(&said, notice)?;
        let found: BTreeMap<String, String> = rows(&self.at.join("out.csv"))?.into_iter().collect();
        for (vertex, distance) in wanted["to"].as_object().expect("distances") {
            let near = |found: f64| (found - distance.as_f64().expect("a number")).abs() < 1e-9;
            let found = found.get(vertex).and_then(|found| found.parse().ok());
            if !found.is_some_and(near) {
                return Err(format!(
                    "distance of {vertex}: {found:?} instead of {distance}"
                ));
            }
        }
        Ok(())
    }
}

type Ids = BTreeSet<String>;

/// The components in a result of `wcc`.
fn components(result: &Path) -> Result<BTreeSet<Ids>, String> {
    let mut components = BTreeMap::<String, Ids>::new();
    for (vertex, component) in rows(result)? {
        components.entry(component).or_default().insert(vertex);
    }
    Ok(components.into_values().collect())
}

/// The rows of a result of two columns.
fn rows(result: &Path) -> Result<Vec<(String, String)>, String> {
    let mut reader = csv::Reader::from_path(result).map_err(|error| error.to_string())?;
    let rows = reader.deserialize().collect::<Result<_, _>>();
    rows.map_err(|error| format!("{}: {error}", result.display()))
}

/// Checks that `said` has all `parts`, in letters of either case.
fn has_all(said: &str, parts: &Value) -> Result<(), String> {
    let lower = said.to_lowercase();
    let mut parts = list(parts).iter().map(word);
    match parts.find(|part| !lower.contains(&part.to_lowercase())) {
        Some(part) => Err(format!("nothing says `{part}`: {said}")),
        None => Ok(()),
    }
}

fn ids(component: &Value) -> Ids {
    list(component).iter().map(|id| word(id).into()).collect()
}

fn word(value: &Value) -> &str {
    value.as_str().expect("a text")
}

/// The elements of a list, none if it is left out.
fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn list_files(at: &Path, files: &mut Vec<PathBuf>) {
    for entry in at.read_dir().expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            list_files(&path, files);
        } else {
            files.push(path);
        }
    }
}

fn copy(from: &Path, to: &Path) {
    let mut files = Vec::new();
    list_files(from, &mut files);
    for file in files {
        let target = to.join(file.strip_prefix(from).expect("a file in it"));
        std::fs::create_dir_all(target.parent().expect("a parent")).expect("a folder");
        std::fs::copy(file, target).expect("a copy");
    }
}
