//! Ranks that `mpirun` starts: the graph and the bytes of one process. Skipped without Open MPI.

use std::path::Path;
use std::process::{Command, Output};

use crate::mpirun;
use crate::ranks::{each_does_its_share, metrics};
use crate::{account, names, succeed, told};

/// The plugin, compiled here; nothing where there is no MPI.
pub(crate) fn plugin(folder: &Path) -> bool {
    let has = |program: &str| {
        let started = Command::new(program).arg("--version").output();
        started.is_ok_and(|output| output.status.success())
    };
    if !has("mpicc") || !has("mpirun") {
        println!("skipped: there is no mpicc, or no mpirun");
        return false;
    }
    succeed(folder, &["mpi", "build", "-o", "plugin.so"]);
    true
}

/// `mpirun` with the plugin, in its folder.
pub(crate) fn mpirun(folder: &Path) -> Command {
    let mut mpirun = mpirun::mpirun();
    mpirun
        .current_dir(folder)
        .env("GRAPHMILL_MPI", folder.join("plugin.so"));
    mpirun
}

/// A job of `ranks` ranks, ready to start.
pub(crate) fn job(folder: &Path, ranks: usize, arguments: &[&str]) -> Command {
    let mut mpirun = mpirun(folder);
    mpirun
        .args(["-n", &ranks.to_string()])
        .arg(env!("CARGO_BIN_EXE_graphmill"))
        .args(arguments);
    mpirun
}

pub(crate) fn run(folder: &Path, ranks: usize, arguments: &[&str]) -> Output {
    job(folder, ranks, arguments)
        .output()
        .expect("mpirun starts")
}

fn ran(folder: &Path, ranks: usize, arguments: &[&str]) -> String {
    let output = run(folder, ranks, arguments);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).expect("stdout is text")
}

/// All files of a stored graph.
fn files(graph: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for folder in ["", "columns"] {
        for name in names(&graph.join(folder)) {
            let path = graph.join(folder).join(&name);
            if path.is_file() {
                all.push((name, std::fs::read(path).expect("a file")));
            }
        }
    }
    all
}

#[test]
fn job_equals_one_process() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    if !plugin(at) {
        return;
    }
    let generate = ["generate", "kronecker", "12", "8", "--weights", "f32"];
    succeed(at, &[&generate[..], &["-o", "k.wel"]].concat());
    let import = ["import", "k.wel", "--weights", "f32", "--undirected"];
    let import = [&import[..], &["--batch-size", "100"]].concat();
    for more in [&[][..], &["--ids", "string", "--order", "degree"]] {
        let one = told(at, &[&import[..], more, &["-o", "one"]].concat());
        let all = run(at, 3, &[&import[..], more, &["-o", "all"]].concat());
        let all = String::from_utf8(all.stderr).expect("text");
        // One rank tells it: the account of every line.
        assert_eq!(account(&one), account(&all));
        assert!(files(&at.join("one")) == files(&at.join("all")), "{more:?}");
        for asked in [
            &["pagerank"][..],
            &["wcc"],
            &["bfs", "--source", "3"],
            &["sssp", "--source", "3"],
        ] {
            let run =
                |graph| [&["run", asked[0], graph, "-q", "-o", "r.csv"], &asked[1..]].concat();
            succeed(at, &run("one"));
            let wanted = std::fs::read(at.join("r.csv")).expect("a result");
            for ranks in [1, 2, 3, 4, 8] {
                let measured = ["--metrics", "run.json"];
                ran(at, ranks, &[&run("all")[..], &measured].concat());
                let found = std::fs::read(at.join("r.csv")).expect("a result");
                let what = format!("{asked:?} by {ranks} ranks");
                assert!(wanted == found, "{what}");
                if ranks > 1 {
                    each_does_its_share(&metrics(at), ranks, asked != ["wcc"], &what);
                }
            }
        }
        std::fs::remove_dir_all(at.join("one")).expect("it goes");
        std::fs::remove_dir_all(at.join("all")).expect("it goes");
    }
    assert!(!names(at).iter().any(|name| name.starts_with(".graphmill")));
}

#[test]
fn job_on_disk_equals_one_process() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    if !plugin(at) {
        return;
    }
    let generate = ["generate", "kronecker", "20", "8", "--batch-size", "32768"];
    succeed(at, &[&generate[..], &["-o", "graph"]].concat());
    for asked in [
        &["pagerank", "--iterations", "3"][..],
        &["sssp", "--source", "0", "--method", "bellman-ford"],
    ] {
        let (algorithm, options) = asked.split_first().expect("an algorithm");
        let run = ["run", algorithm, "graph", "-q", "-o", "r.csv"];
        let run = [&run[..], options].concat();
        succeed(at, &run);
        let wanted = std::fs::read(at.join("r.csv")).expect("a result");
        for dispatch in ["push", "pull", "none"] {
            let small = [
                "--memory",
                "18M",
                "--threads",
                "1",
                "--place",
                "edges=stream",
            ];
            let how = ["--dispatch", dispatch, "--metrics", "run.json"];
            ran(at, 3, &[&run[..], &small, &how].concat());
            let found = std::fs::read(at.join("r.csv")).expect("a result");
            assert!(wanted == found, "{asked:?}, {dispatch}");
            let told = metrics(at);
            for what in ["vertex_state_resident", "messages_resident"] {
                assert_eq!(told[what], false, "{asked:?}: {what}");
            }
            let steps = told["passes"].as_array().expect("passes");
            let count = |what: &str| {
                steps
                    .iter()
                    .map(|step| step[what].as_u64().unwrap_or(0))
                    .sum::<u64>()
            };
            assert_eq!(
                count("messages_pushed") > 0,
                dispatch == "push",
                "{asked:?}"
            );
            assert_eq!(
                count("messages_pulled") > 0,
                dispatch == "pull",
                "{asked:?}"
            );
        }
    }
}

#[test]
fn run_on_edges_is_imported_by_all_ranks() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    if !plugin(at) {
        return;
    }
    let generate = ["generate", "kronecker", "16", "8", "-o", "k.el", "-q"];
    succeed(at, &generate);
    let run = [
        "run",
        "wcc",
        "k.el",
        "-q",
        "-o",
        "r.csv",
        "--executor=column",
    ];
    let cached = |how: &str| {
        let kept = names(&at.join("k.el.graphmill"));
        let [name] = &kept[..] else {
            panic!("{how}: {kept:?}");
        };
        let graph = at.join("k.el.graphmill").join(name);
        let made = std::fs::metadata(graph.join("graph.json")).and_then(|facts| facts.modified());
        let result = std::fs::read(at.join("r.csv")).expect("a result");
        (made.expect("a graph"), (result, files(&graph)))
    };
    let mut all = Vec::new();
    for how in ["one", "ranks", "mpirun"] {
        let [first, second] = [0, 1].map(|_| {
            match how {
                "one" => succeed(at, &run),
                "ranks" => succeed(at, &[&run[..], &["--ranks", "3"]].concat()),
                _ => ran(at, 3, &run),
            };
            cached(how)
        });
        assert!(first == second, "{how}: the graph was there");
        all.push(first.1);
        std::fs::remove_dir_all(at.join("k.el.graphmill")).expect("it goes");
    }
    assert!(all.iter().all(|found| *found == all[0]));
    assert!(!names(at).iter().any(|name| name.starts_with(".graphmill")));
}

#[test]
fn mpich_equals_open_mpi() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let mpich = Command::new("mpicc.mpich").arg("--version").output();
    if !mpich.is_ok_and(|output| output.status.success()) {
        println!("skipped: there is no mpicc.mpich");
        return;
    }
    let build = ["mpi", "build", "--cc", "mpicc.mpich", "-o", "mpich.so"];
    succeed(at, &build);
    // Its ranks take all of a processor while they wait: little to do, and few of them.
    let job = |arguments: &[&str]| {
        let output = Command::new("mpirun.mpich")
            .args(["-n", "4", env!("CARGO_BIN_EXE_graphmill")])
            .args(arguments)
            .current_dir(at)
            .env("GRAPHMILL_MPI", at.join("mpich.so"))
            .output();
        let output = output.expect("mpirun.mpich starts");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {errors}");
    };
    let generate = ["generate", "kronecker", "10", "8", "--weights", "f32"];
    succeed(at, &[&generate[..], &["-o", "k.wel"]].concat());
    let import = ["--weights", "f32", "--undirected", "--batch-size", "50"];
    succeed(
        at,
        &[&["import", "k.wel", "-o", "one"], &import[..]].concat(),
    );
    job(&[&["import", "k.wel", "-o", "all"], &import[..]].concat());
    assert!(files(&at.join("one")) == files(&at.join("all")));
    for asked in [
        &["pagerank"][..],
        &["wcc"],
        &["bfs", "--source", "3"],
        &["sssp", "--source", "3"],
    ] {
        let run =
            |graph, output| [&["run", asked[0], graph, "-q", "-o", output], &asked[1..]].concat();
        succeed(at, &run("one", "one.csv"));
        job(&run("all", "all.csv"));
        let [one, all] =
            ["one.csv", "all.csv"].map(|name| std::fs::read(at.join(name)).expect("a result"));
        assert!(one == all, "{asked:?}");
    }
    // A rank that fails ends the others here too.
    std::fs::write(at.join("edges.txt"), "0 1\n1 2\n2 x\n").expect("a file");
    let output = Command::new("mpirun.mpich")
        .args(["-n", "3", env!("CARGO_BIN_EXE_graphmill")])
        .args(["import", "edges.txt", "--ids", "int", "-o", "graph"])
        .current_dir(at)
        .env("GRAPHMILL_MPI", at.join("mpich.so"))
        .output();
    let output = output.expect("mpirun.mpich starts");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(errors.contains("edges.txt, line 3"), "{errors}");
    assert!(!names(at).contains(&"graph".to_string()));
}

#[test]
fn slurm_tasks_without_mpi_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    succeed(
        folder.path(),
        &["generate", "kronecker", "6", "4", "-o", "graph"],
    );
    let task = |command: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_graphmill"))
            .args(command)
            .current_dir(folder.path())
            .envs([("SLURM_STEP_NUM_TASKS", "8"), ("SLURM_PROCID", "3")])
            .output()
            .unwrap()
    };
    let output = task(&["run", "wcc", "graph", "-o", "result.csv"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("8 tasks of srun") && said.contains("--mpi=pmix"),
        "{said}"
    );
    assert!(!folder.path().join("result.csv").exists());
    // What each may do by itself.
    assert!(task(&["info", "graph"]).status.success());
}

#[test]
fn error_of_one_rank_is_reported_by_all() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    if !plugin(at) {
        return;
    }
    std::fs::write(at.join("edges.txt"), "0 1\n1 2\n2 x\n").expect("a file");
    let output = run(
        at,
        2,
        &["import", "edges.txt", "--ids", "int", "-o", "graph"],
    );
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(errors.contains("edges.txt, line 3"), "{errors}");
    let output = run(at, 2, &["info", "graph"]);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.contains("without mpirun"), "{errors}");
    assert_eq!(names(at), ["edges.txt", "plugin.so"]);
}
