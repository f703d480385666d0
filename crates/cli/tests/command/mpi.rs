//! Ranks that `mpirun` starts: the graph and the bytes of one process; a rank that is killed, that hangs, or whose disk is full ends the
//! job, and nothing looks whole that is not. Skipped without Open MPI.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use crate::ranks::{each_does_its_share, metrics};
use crate::{call, names, succeed};

/// The plugin, compiled here; nothing where there is no MPI.
fn plugin(folder: &Path) -> bool {
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

/// `mpirun` as all tests need it.
fn mpirun(folder: &Path) -> Command {
    let mut mpirun = Command::new("mpirun");
    mpirun
        .args(["--oversubscribe", "--bind-to", "none"])
        .args(["--mca", "mpi_yield_when_idle", "1"])
        .current_dir(folder)
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("GRAPHMILL_MPI", folder.join("plugin.so"));
    mpirun
}

/// A job of so many ranks, ready to start.
fn job(folder: &Path, ranks: usize, arguments: &[&str]) -> Command {
    let mut mpirun = mpirun(folder);
    mpirun
        .args(["-n", &ranks.to_string()])
        .arg(env!("CARGO_BIN_EXE_graphmill"))
        .args(arguments);
    mpirun
}

fn run(folder: &Path, ranks: usize, arguments: &[&str]) -> Output {
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
fn a_job_makes_the_graph_and_the_results_of_one_process() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    if !plugin(at) {
        return;
    }
    let generate = ["generate", "kronecker", "12", "8", "--weights", "f32"];
    succeed(at, &[&generate[..], &["-o", "k.wel"]].concat());
    let import = ["import", "k.wel", "--weights", "f32", "--undirected", "-q"];
    let import = [&import[..], &["--batch-size", "100"]].concat();
    for more in [&[][..], &["--ids", "string", "--order", "degree"]] {
        let one = succeed(at, &[&import[..], more, &["-o", "one"]].concat());
        let all = ran(at, 3, &[&import[..], more, &["-o", "all"]].concat());
        // One rank tells it: the name, and the account of every line.
        let account = |said: &str| {
            said.lines()
                .skip(1)
                .filter(|l| !l.contains(" s, "))
                .collect::<Vec<_>>()
                .join("\n")
        };
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
            for ranks in [1, 2, 4, 8] {
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
fn a_job_with_all_on_disk_gives_the_bytes_of_one_process() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    if !plugin(at) {
        return;
    }
    let generate = ["generate", "kronecker", "20", "8", "--batch-size", "32768"];
    succeed(at, &[&generate[..], &["-o", "graph"]].concat());
    for asked in [
        &["pagerank", "--iterations", "3"][..],
        &["wcc", "--method", "labels"],
    ] {
        let (algorithm, options) = asked.split_first().expect("an algorithm");
        let run = ["run", algorithm, "graph", "-q", "-o", "r.csv"];
        let run = [&run[..], options].concat();
        succeed(at, &run);
        let wanted = std::fs::read(at.join("r.csv")).expect("a result");
        for dispatch in ["push", "pull", "none"] {
            let small = [
                "--memory",
                "24M",
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
            for what in ["rows_resident", "messages_resident"] {
                assert_eq!(told[what], false, "{asked:?}: {what}");
            }
            let steps = told["supersteps"].as_array().expect("passes");
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
fn a_run_on_a_file_of_edges_has_all_ranks_import_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    if !plugin(at) {
        return;
    }
    let generate = ["generate", "kronecker", "16", "8", "-o", "k.el", "-q"];
    succeed(at, &generate);
    let run = ["run", "wcc", "k.el", "-q", "-o", "r.csv"];
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
fn another_mpi_makes_the_same_graph_and_results() {
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
fn tasks_of_slurm_that_do_not_know_of_each_other_are_refused() {
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
        said.contains("8 tasks without MPI") && said.contains("--mpi=pmix"),
        "{said}"
    );
    assert!(!folder.path().join("result.csv").exists());
    // What each may do by itself.
    assert!(task(&["info", "graph"]).status.success());
}

#[test]
fn what_one_rank_meets_all_tell() {
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

/// The ranks of a job on this machine.
fn ranks_of(mpirun: u32) -> Vec<u32> {
    let children = Command::new("pgrep")
        .args(["-P", &mpirun.to_string()])
        .output();
    let said = children.map(|output| output.stdout).unwrap_or_default();
    let said = String::from_utf8_lossy(&said).into_owned();
    said.lines().filter_map(|line| line.parse().ok()).collect()
}

/// The process of a rank, once a file whose name begins so is there.
fn rank_once(mpirun: u32, rank: usize, folder: &Path, begins: &str) -> u32 {
    let started = Instant::now();
    let variable = format!("OMPI_COMM_WORLD_RANK={rank}");
    let is_rank = |process: &u32| {
        let environment = std::fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        let mut environment = environment.split(|byte| *byte == 0);
        environment.any(|found| found == variable.as_bytes())
    };
    loop {
        assert!(started.elapsed() < Duration::from_secs(60), "ranks start");
        if names(folder).iter().any(|name| name.starts_with(begins))
            && let Some(found) = ranks_of(mpirun).into_iter().find(is_rank)
        {
            return found;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// How a job ended.
struct Ended {
    /// None where `mpirun` did not end after its ranks had: that of Open MPI 4.1 with PMIx 4.2 waits for a lock of its own now and
    /// then, where a rank was killed while others finished (`pmix_rte_finalize`).
    status: Option<ExitStatus>,
    said: String,
    /// From the call to the end of the last rank.
    took: Duration,
}

/// Waits for the end of a job that was started with stderr in a pipe.
fn end_of(mut mpirun: Child) -> Ended {
    let mut errors = mpirun.stderr.take().expect("a pipe");
    let said = std::thread::spawn(move || {
        let mut said = String::new();
        errors.read_to_string(&mut said).map(|_| said)
    });
    let lives = |process: &u32| {
        let state = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        let state = state.rsplit_once(") ").map(|after| after.1.to_string());
        state.is_some_and(|state| !state.starts_with('Z'))
    };
    let (began, mut gone) = (Instant::now(), None);
    let mut ranks = Vec::new();
    let status = loop {
        ranks.extend(ranks_of(mpirun.id()));
        ranks.sort_unstable();
        ranks.dedup();
        let status = mpirun.try_wait().expect("it is a child");
        if status.is_some() {
            break status;
        }
        match gone {
            _ if ranks.iter().any(lives) => gone = None,
            None => gone = Some(Instant::now()),
            Some(gone) if gone.elapsed() > Duration::from_secs(10) => {
                println!("all ranks had ended, and mpirun did not: it was killed");
                mpirun.kill().and_then(|()| mpirun.wait()).expect("it ends");
                break None;
            }
            Some(_) => {}
        }
        assert!(began.elapsed() < Duration::from_secs(60), "ranks end");
        std::thread::sleep(Duration::from_millis(20));
    };
    // Some outlive `mpirun` by a little.
    while ranks.iter().any(lives) {
        gone = None;
        assert!(began.elapsed() < Duration::from_secs(60), "ranks end");
        std::thread::sleep(Duration::from_millis(20));
    }
    Ended {
        status,
        said: said.join().expect("a text").expect("text"),
        took: gone.unwrap_or_else(Instant::now) - began,
    }
}

/// Stops a rank as if it hung, and gives back what the job said when it ended.
fn said_without(at: &Path, silent: usize, begins: &str, arguments: &[&str]) -> String {
    let mut mpirun = job(at, 4, arguments);
    let mpirun = mpirun.stdout(Stdio::null()).stderr(Stdio::piped());
    let mpirun = mpirun.spawn().expect("mpirun starts");
    let hung = rank_once(mpirun.id(), silent, at, begins).to_string();
    let stopped = Command::new("kill").args(["-STOP", &hung]).status();
    assert!(stopped.expect("kill starts").success());
    let Ended { status, said, took } = end_of(mpirun);
    assert!(!status.is_some_and(|status| status.success()), "{said}");
    assert!(took < Duration::from_secs(30), "{took:?}: {said}");
    println!(
        "{arguments:?} ended {:.1} s after rank {silent} was stopped",
        took.as_secs_f64()
    );
    said
}

#[test]
fn a_rank_that_hangs_is_named_by_the_others_and_ends_the_job() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    if !plugin(at) {
        return;
    }
    succeed(at, &["generate", "kronecker", "14", "16", "-o", "graph"]);
    succeed(
        at,
        &["generate", "kronecker", "18", "16", "-o", "k.el", "-q"],
    );
    let run = ["run", "pagerank", "graph", "--iterations", "1000000", "-q"];
    let import = ["import", "k.el", "-q", "--undirected", "-o"];
    for (silent, begins, arguments) in [
        (1, ".graphmill-run", [&run[..], &["-o", "r.csv"]].concat()),
        (0, ".graphmill-run", [&run[..], &["-o", "r.csv/"]].concat()),
        (2, ".graphmill-import", [&import[..], &["new"]].concat()),
        (0, ".graphmill-import", [&import[..], &["new"]].concat()),
    ] {
        let said = said_without(at, silent, begins, &arguments);
        for rank in (0..4).filter(|rank| *rank != silent) {
            let told =
                format!("rank {rank}: error: rank {silent} is lost: nothing was heard of it");
            assert!(said.contains(&told), "{arguments:?}: {said}");
        }
        // All but the one that hung has cleaned up; what that one left goes with the next job.
        let mut left = names(at);
        left.retain(|name| {
            let is_left = name.starts_with(".graphmill");
            if is_left {
                // Or the next rank would be stopped by the sight of it, before MPI has started.
                std::fs::remove_dir_all(at.join(name)).expect("it goes");
            }
            !is_left
        });
        assert_eq!(left, ["graph", "k.el", "plugin.so"]);
    }
}

/// A job of four, of which one is started by other means.
fn with_one_by(at: &Path, one: usize, by: &[&str], arguments: &[&str], of_one: &[&str]) -> Command {
    let mut mpirun = mpirun(at);
    for rank in 0..4 {
        if rank > 0 {
            mpirun.arg(":");
        }
        mpirun.args(["-n", "1"]);
        if rank == one {
            mpirun.args(by);
        }
        mpirun.arg(env!("CARGO_BIN_EXE_graphmill")).args(arguments);
        if rank == one {
            mpirun.args(of_one);
        }
    }
    mpirun
}

/// A job that has to fail, since a rank could not write: all ranks have to say which, and where.
fn fails_since(mut job: Command, full: usize, what: &str) {
    let output = job.output().expect("mpirun starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "rank {full}: {said}");
    assert!(output.status.signal().is_none(), "{said}");
    for rank in 0..4 {
        let told = match rank == full {
            true => format!("rank {rank}: error: cannot "),
            false => format!("rank {rank}: error: rank {full} is lost: cannot "),
        };
        let line = said.lines().find(|line| line.contains(&told));
        assert!(
            line.is_some_and(|line| line.contains(what)),
            "{told}: {said}"
        );
    }
}

/// A file system that goes with the test.
struct Mounted(std::path::PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(&self.0).status();
        assert!(unmounted.is_ok_and(|status| status.success()));
    }
}

#[test]
fn a_full_disk_of_one_rank_is_told_by_all_and_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    if !plugin(at) {
        return;
    }
    succeed(at, &["generate", "kronecker", "14", "16", "-o", "graph"]);
    succeed(
        at,
        &["generate", "kronecker", "15", "16", "-o", "k.el", "-q"],
    );
    let known = names(at);
    let import = ["import", "k.el", "-o", "new", "-q", "--batch-size", "1000"];
    let run = ["run", "bfs", "graph", "--source", "0", "-q", "-o"];
    let too_large = "File too large";
    for (full, bytes) in [(0, "4096"), (1, "131072"), (3, "65536")] {
        let limited = ["prlimit", &format!("--fsize={bytes}")];
        fails_since(
            with_one_by(at, full, &limited, &import, &[]),
            full,
            too_large,
        );
        assert_eq!(names(at), known, "rank {full}, {bytes} bytes");
    }
    for full in [0, 3] {
        let limited = ["prlimit", "--fsize=0"];
        let run = [&run[..], &["r.csv/"]].concat();
        fails_since(with_one_by(at, full, &limited, &run, &[]), full, too_large);
        assert_eq!(names(at), known, "rank {full}");
    }
    // The first rank writes the one file.
    let run = [&run[..], &["r.csv"]].concat();
    fails_since(
        with_one_by(at, 0, &["prlimit", "--fsize=0"], &run, &[]),
        0,
        too_large,
    );
    assert_eq!(names(at), known);

    // A disk of its own that is full.
    std::fs::create_dir(at.join("small")).expect("a folder");
    let mount = ["-t", "tmpfs", "-o", "size=64k", "none", "small"];
    let mounted = Command::new("mount").args(mount).current_dir(at).output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        println!("skipped: a small disk, which only root may mount");
        return;
    }
    let job = with_one_by(at, 1, &[], &import, &["--tmp", "small"]);
    let mounted = Mounted(at.join("small"));
    fails_since(job, 1, "No space left on device");
    let left = names(&mounted.0);
    drop(mounted);
    assert!(left.is_empty(), "{left:?}");
    std::fs::remove_dir(at.join("small")).expect("it goes");
    assert_eq!(names(at), known);
}

#[test]
fn parts_are_all_there_or_none_wherever_a_rank_is_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    if !plugin(at) {
        return;
    }
    succeed(
        at,
        &["generate", "kronecker", "16", "8", "-o", "graph", "-q"],
    );
    let run = ["run", "wcc", "graph", "-q", "-o"];
    succeed(at, &[&run[..], &["one.csv"]].concat());
    let (mut whole, mut none) = (0, 0);
    for kill in 0..12 {
        let mut mpirun = job(at, 3, &[&run[..], &["r.csv/"]].concat());
        let mpirun = mpirun.stdout(Stdio::null()).stderr(Stdio::piped());
        let mpirun = mpirun.spawn().expect("mpirun starts");
        let victim = rank_once(mpirun.id(), kill % 3, at, ".graphmill-result").to_string();
        std::thread::sleep(Duration::from_millis(kill as u64 * 3));
        // It may be gone by now.
        let killed = Command::new("kill").args(["-9", &victim]).output();
        assert!(killed.is_ok());
        end_of(mpirun);
        if names(at).contains(&"r.csv".to_string()) {
            whole += 1;
            succeed(at, &["validate", "r.csv", "one.csv", "--rule", "exact"]);
            std::fs::remove_dir_all(at.join("r.csv")).expect("it goes");
        } else {
            none += 1;
        }
    }
    println!("{whole} whole, {none} not there");
    succeed(at, &[&run[..], &["r.csv/"]].concat());
    assert_eq!(names(at), ["graph", "one.csv", "plugin.so", "r.csv"]);
}

#[test]
fn a_rank_that_is_killed_ends_the_job_and_leaves_no_result() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    if !plugin(at) {
        return;
    }
    let kills = std::env::var("GRAPHMILL_KILLS").ok();
    let kills = kills.and_then(|kills| kills.parse().ok()).unwrap_or(4);
    succeed(at, &["generate", "kronecker", "14", "16", "-o", "graph"]);
    let mut longest = Duration::ZERO;
    for kill in 0..kills {
        // Long enough to be killed at any point of it.
        let asked = ["run", "pagerank", "graph", "--iterations", "100000", "-q"];
        let output = ["r.csv", "r.csv/"][kill as usize % 2];
        let asked = [&asked[..], &["--place", "edges=stream", "-o", output]].concat();
        let mut mpirun = job(at, 3, &asked);
        let mpirun = mpirun.stdout(Stdio::null()).stderr(Stdio::piped());
        let mpirun = mpirun.spawn().expect("mpirun starts");
        let started = Instant::now();
        let ranks = loop {
            let ranks = ranks_of(mpirun.id());
            if ranks.len() == 3 {
                break ranks;
            }
            assert!(started.elapsed() < Duration::from_secs(60), "ranks start");
            std::thread::sleep(Duration::from_millis(5));
        };
        // Earlier or later, by a rule that has no regard to what goes on.
        std::thread::sleep(Duration::from_millis(37 * (kill * 7 % 41)));
        let victim = ranks[kill as usize % 3].to_string();
        let killed = Command::new("kill").args(["-9", &victim]).status();
        assert!(killed.expect("kill starts").success());
        let Ended { status, said, took } = end_of(mpirun);
        assert!(took < Duration::from_secs(30), "kill {kill}: {took:?}");
        if let Some(status) = status {
            assert!(!status.success() && status.signal().is_none(), "{status}");
            assert!(said.contains("rank") && said.contains("signal 9"), "{said}");
        }
        longest = longest.max(took);
        assert!(!names(at).iter().any(|name| name.starts_with("r.csv")));
    }
    let seconds = longest.as_secs_f64();
    println!("{kills} kills, at most {seconds:.1} s from a kill to the end of the last rank");
    // What the killed left goes with the next run.
    let output = call(at, &["run", "pagerank", "graph", "-q", "-o", "r.csv"]);
    assert!(output.status.success());
    assert!(!names(at).iter().any(|name| name.starts_with(".graphmill")));
}
