//! A killed import resumes from its steps, and an import outlives its interrupted run.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::interrupt::start;
use crate::kill_and_resume::words;
use crate::resume::{end_in_pass, files};
use crate::{call, graphmill, names, succeed};

#[test]
fn resume_of_killed_import_uses_its_steps() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let rule = "generate kronecker 17 12 --weights f32 -q -o numbers.wel";
    succeed(folder, &words(rule, ""));
    let numbers = std::fs::read_to_string(folder.join("numbers.wel")).expect("edges");
    let named: String = numbers
        .lines()
        .map(|line| format!("v{}\n", line.replacen(' ', " v", 1)))
        .collect();
    std::fs::write(folder.join("names.wel"), named).expect("it is written");
    let mut went_on = BTreeSet::new();
    for (import, what) in [
        (
            "import names.wel --memory 24M --threads 1 --reverse --weights f32",
            "names",
        ),
        (
            "import numbers.wel --memory 24M --threads 1 --order degree",
            "degree",
        ),
        (
            "import names.wel --memory 96M --threads 4 --ranks 4",
            "ranks",
        ),
    ] {
        let wanted = format!("{import} --checkpoints 0 -q -o wanted-{what}");
        let started = Instant::now();
        succeed(folder, &words(&wanted, ""));
        // Later and later, until it ends before the kill.
        let step = started.elapsed() / 12;
        let mut ended = None;
        for kill in 1..40 {
            let mut child = graphmill()
                .args(words(import, "--checkpoint-every 0s -o found"))
                .current_dir(folder)
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .expect("the command starts");
            let deadline = Instant::now() + step * kill;
            let is_last = kill == 39;
            while child.try_wait().expect("it is a child").is_none()
                && (is_last || Instant::now() < deadline)
            {
                std::thread::sleep(Duration::from_millis(1));
            }
            child.kill().expect("it is killed");
            let done = child.wait_with_output().expect("it ends");
            let said = String::from_utf8_lossy(&done.stderr);
            for step in ["distribute", "write", "column files"] {
                if said.contains(&format!("\"{step}\"")) || said.contains(&format!(" {step} are")) {
                    went_on.insert(step);
                }
            }
            ended = done.status.success().then_some(kill);
            if ended.is_some() {
                break;
            }
            let is_named = folder.join("found").exists();
            if is_named {
                // It was killed while it removed what it worked with.
                break;
            }
        }
        assert!(
            ended.is_none_or(|kill| kill > 1),
            "{what}: nothing was killed"
        );
        let wanted = folder.join(format!("wanted-{what}"));
        assert!(files(&folder.join("found")) == files(&wanted), "{what}");
        if ended.is_some() {
            let left: Vec<String> = names(folder);
            assert!(
                !left.iter().any(|name| name.starts_with('.')),
                "{what}: {left:?}"
            );
        }
        std::fs::remove_dir_all(folder.join("found")).expect("it is removed");
    }
    // At which steps it is killed is a matter of chance.
    assert!(!went_on.is_empty(), "no import resumed");
}

#[test]
fn import_stays_when_its_run_is_interrupted() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let rule = "generate kronecker 15 8 -q -o edges.el";
    succeed(folder, &words(rule, ""));
    let run = "run pagerank edges.el --iterations 100000000 --threads 1 -o found.csv";
    let said = end_in_pass(start(folder, &words(run, "")), &["TERM"]);
    assert!(said.contains("interrupted"), "{said}");
    let output = call(folder, &words("run wcc edges.el", ""));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("imported before"), "{said}");
}
