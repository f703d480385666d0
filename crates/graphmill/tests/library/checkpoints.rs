//! Programs of one's own that are killed, and resume to the same bytes.
//!
//! The killed process is this test binary, which runs a test that only works where a folder is named.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use graphmill::advanced::run_on_ranks;
use graphmill::prelude::*;
use graphmill::{
    CancelToken, CheckpointConfig, CheckpointInterval, Error, ImportConfig, Machine, ProgramName,
    Session, unwatched,
};
use tempfile::TempDir;

use crate::common::{config, import, values};

/// The variable that names the folder of the process to be killed, and its ranks.
const FOLDER: &str = "GRAPHMILL_TEST_KILLED";
const ROUNDS: u64 = 40;

/// A walker's score, with sums of floats: a round that is done twice or never changes the bytes.
struct Spread;

impl EdgeProgram for Spread {
    type SignalRows = (Read<f64>, OutDegree);
    type ApplyRows = Write<f64>;
    type Edge = ();
    type Message = f64;
    type EdgeMessage = f64;
    type Accumulator = f64;
    type Sum = f64;
    const IDENTITY: f64 = -0.0;
    const APPLY_TO: ApplyTo = ApplyTo::All;

    fn signal(&self, _: u64, (score, degree): (&f64, u64)) -> Option<f64> {
        Some(score / degree as f64)
    }
    fn on_edge(&self, share: f64, (): ()) -> f64 {
        share
    }
    fn fold(&self, sum: &mut f64, share: f64) {
        *sum += share;
    }
    fn merge(&self, sum: &mut f64, later: f64) {
        *sum += later;
    }
    fn apply(&self, _: u64, score: &mut f64, sum: f64) -> (f64, Activate) {
        let before = std::mem::replace(score, 0.1 + 0.9 * sum);
        ((*score - before).abs(), Activate::No)
    }
}

/// Some rounds, sets and files; `pause` passes between two rounds.
fn program(session: &mut Session, folder: &Path, pause: Duration) -> Result<(), Error> {
    let score = session.vertex_array::<f64>("score")?;
    session.process_vertices(score.write(), None, |v, score| *score = v as f64)?;
    let seeds = session.read_values(&folder.join("seeds.csv"), score)?;
    let output = Output {
        column: "score",
        values: OutputValues::F64(score),
        nullable: false,
    };
    let all = session.full_set()?;
    let (mut change, mut rounds) = (f64::MAX, 0);
    while rounds < ROUNDS && change > 0.0 {
        let rows = (score.read(), OutDegree);
        (change, _) =
            session.process_edges(&Spread, rows, score.write(), &all, Direction::Forward)?;
        rounds += 1;
        if rounds == ROUNDS / 2 {
            // A result on the way: the run that wrote it has rows that a later one has not.
            session.write(&output, &folder.join("half.csv"), |_| ())?;
        }
        std::thread::sleep(pause);
    }
    let mut high = session.select_vertices(score.read(), None, |_, score| *score > 1.0)?;
    high.intersect(&seeds)?;
    let count = high.len();
    session.process_vertices(score.write(), Some(&high), |_, score| {
        *score += count as f64
    })?;
    session.write(&output, &folder.join("scores.csv"), |_| ())?;
    Ok(())
}

fn checkpoints(folder: &Path) -> CheckpointConfig {
    CheckpointConfig {
        folder: Some(folder.join("checkpoints")),
        every: CheckpointInterval::Calls(1),
        keep: 1,
        resume: true,
    }
}

/// Runs the program on some ranks, with checkpoints if it is to have some.
fn run(folder: &Path, ranks: usize, is_kept: bool, pause: Duration) -> Result<(), Error> {
    let rank = |machine: &Machine| {
        let graph = machine.graph(&folder.join("graph"))?;
        let (name, kept) = (
            ProgramName::new("spread").option("rounds", ROUNDS),
            checkpoints(folder),
        );
        let options = Default::default();
        let mut session = match is_kept {
            true => machine.checkpointed_session(&graph, options, &name, &kept, &unwatched())?,
            false => machine.session(&graph, options, &unwatched())?,
        };
        program(&mut session, folder, pause)?;
        session.finish()
    };
    let stop = CancelToken::new();
    run_on_ranks(&config(64 << 20, ranks), ranks, &stop, rank, rank)
}

fn folder() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let edge = |v: u64| format!("{v} {}\n{v} {}\n", v * v % 401, (v * 7 + 1) % 401);
    let edges: String = (0..401).map(edge).collect();
    import(folder.path(), &edges, ImportConfig::default());
    let seeds: String = (0..401)
        .step_by(3)
        .map(|v| format!("{v} {}\n", v % 10))
        .collect();
    std::fs::write(folder.path().join("seeds.csv"), seeds).expect("room");
    folder
}

fn results(folder: &Path) -> [Vec<u8>; 2] {
    ["half.csv", "scores.csv"].map(|name| std::fs::read(folder.join(name)).expect("a result"))
}

/// The process that is killed.
#[test]
fn killed_process_of_own_program() {
    let Ok(told) = std::env::var(FOLDER) else {
        return;
    };
    let (ranks, folder) = told.split_once(' ').expect("ranks and a folder");
    let ranks = ranks.parse().expect("a number");
    run(Path::new(folder), ranks, true, Duration::from_millis(20)).expect("a run");
}

/// The numbers of the checkpoints of rank 0.
fn numbers(folder: &Path) -> Vec<u64> {
    let Ok(there) = std::fs::read_dir(folder.join("checkpoints/rank-00000")) else {
        return Vec::new();
    };
    let number = |entry: std::io::Result<std::fs::DirEntry>| -> Option<u64> {
        let name = entry.ok()?.file_name();
        name.to_str()?.strip_prefix("checkpoint-")?.parse().ok()
    };
    there.filter_map(number).collect()
}

/// Runs the program in a process that is killed after its next checkpoint.
///
/// Returns true if it came to its end.
fn killed(folder: &Path, ranks: usize, while_after: Duration) -> bool {
    let before = numbers(folder);
    let (oldest, newest_before) = (before.iter().min(), before.iter().max());
    let mut child = Command::new(std::env::current_exe().expect("a test"))
        .args([
            "--exact",
            "checkpoints::killed_process_of_own_program",
            "-q",
        ])
        .env(FOLDER, format!("{ranks} {}", folder.display()))
        .stdout(Stdio::null())
        .spawn()
        .expect("a process");
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a process") {
            assert!(status.success(), "{status}");
            return true;
        }
        assert!(began.elapsed() < Duration::from_secs(300), "no checkpoint");
        let newest = numbers(folder).into_iter().max();
        if newest.is_some() {
            // Another rank may lack the newest one, but all have the oldest one that rank 0 keeps.
            assert!(newest.as_ref() >= oldest, "{newest:?} after {before:?}");
        }
        if newest.as_ref() > newest_before {
            std::thread::sleep(while_after);
            child.kill().expect("a process");
            child.wait().expect("a process");
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn own_program_killed_ten_times_ends_with_the_same_bytes() {
    for ranks in [1, 3] {
        let folder = folder();
        let folder = folder.path();
        run(folder, ranks, false, Duration::ZERO).expect("a run");
        let expected = results(folder);
        for name in ["half.csv", "scores.csv"] {
            std::fs::remove_file(folder.join(name)).expect("a file");
        }
        let mut kills = 0;
        while kills < 10 {
            // Some are killed right after a checkpoint, some in the calls after it.
            let is_done = killed(folder, ranks, Duration::from_millis(kills * 5));
            assert!(!is_done, "the program is too short for {kills} kills");
            kills += 1;
        }
        run(folder, ranks, true, Duration::ZERO).expect("a run");
        assert!(results(folder) == expected, "{ranks} ranks");
        assert!(
            !folder.join("checkpoints").exists(),
            "a finished run leaves checkpoints"
        );
    }
}

#[test]
fn checkpoints_of_another_program_are_refused() {
    let folder = folder();
    let folder = folder.path();
    assert!(!killed(folder, 1, Duration::ZERO));
    let machine = Machine::open(&config(64 << 20, 1), Default::default()).expect("a machine");
    let graph = machine.graph(&folder.join("graph")).expect("a graph");
    for (name, kept, wrong) in [
        (
            ProgramName::new("other"),
            checkpoints(folder),
            "program spread, not program other",
        ),
        (
            ProgramName::new("spread").option("rounds", 3),
            checkpoints(folder),
            "--rounds 40, not 3",
        ),
        (
            ProgramName::new("spread").option("rounds", ROUNDS),
            CheckpointConfig {
                resume: false,
                ..checkpoints(folder)
            },
            "there are checkpoints of a run of program spread already",
        ),
    ] {
        let opened =
            machine.checkpointed_session(&graph, Default::default(), &name, &kept, &unwatched());
        let said = opened.expect_err("another run").to_string();
        assert!(said.contains(wrong), "{said}");
    }
}

#[test]
fn result_with_another_path_is_not_taken_as_written() {
    let folder = folder();
    let folder = folder.path();
    let machine = Machine::open(&config(64 << 20, 1), Default::default()).expect("a machine");
    let graph = machine.graph(&folder.join("graph")).expect("a graph");
    let (program, kept) = (ProgramName::new("writes"), checkpoints(folder));
    let run = |name: &str, is_killed: bool| -> Result<(), Error> {
        let mut session = machine.checkpointed_session(
            &graph,
            Default::default(),
            &program,
            &kept,
            &unwatched(),
        )?;
        let array = session.vertex_array::<u64>("array")?;
        session.process_vertices(array.write(), None, |v, row| *row = v)?;
        let output = Output {
            column: "array",
            values: OutputValues::U64(array),
            nullable: false,
        };
        session.write(&output, &folder.join(name), |_| ())?;
        session.process_vertices(array.write(), None, |_, row| *row += 1)?;
        session.process_vertices(array.write(), None, |_, row| *row += 1)?;
        if is_killed { Ok(()) } else { session.finish() }
    };
    run("a.csv", true).expect("a run");
    std::fs::remove_file(folder.join("a.csv")).expect("a result");
    let said = run("b.csv", false).expect_err("another call").to_string();
    assert!(said.contains("the program makes other calls"), "{said}");
    run("a.csv", false).expect("a run");
    assert!(!folder.join("a.csv").exists(), "it was written before");
}

#[test]
fn rows_are_read_after_the_last_pass() {
    let folder = folder();
    let folder = folder.path();
    let machine = Machine::open(&config(64 << 20, 1), Default::default()).expect("a machine");
    let graph = machine.graph(&folder.join("graph")).expect("a graph");
    let (name, kept) = (ProgramName::new("reads"), checkpoints(folder));
    let mut session = machine
        .checkpointed_session(&graph, Default::default(), &name, &kept, &unwatched())
        .expect("a session");
    let mut work = || -> Result<(), Error> {
        let array = session.vertex_array::<u64>("array")?;
        session.process_vertices(array.write(), None, |v, row| *row = v)?;
        let set = session.full_set()?;
        // A resumed run has other rows and members there than the one before.
        assert!(session.read_batch(&array, 0, &mut Vec::new()).is_err());
        assert!(set.for_each(|_| ()).is_err());
        assert!(set.contains(3)?);
        session.end_passes()?;
        session.read_batch(&array, 0, &mut Vec::new())?;
        set.for_each(|_| ())?;
        assert!(set.contains(3)?);
        assert_eq!(values(&mut session, array)?.len(), 401);
        let late = session.process_vertices(array.write(), None, |_, row| *row += 1);
        let said = late.expect_err("a late pass").to_string();
        assert!(said.contains("it has ended its passes"), "{said}");
        Ok(())
    };
    work().expect("rows");
    session.finish().expect("an end");
    assert!(!folder.join("checkpoints").exists());
}
