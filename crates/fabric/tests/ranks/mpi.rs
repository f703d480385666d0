//! Ranks of an MPI job: this file runs itself under `mpirun`, where that is installed.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::mpirun::{self, Ended};
use graphmill_fabric::{
    Channel, Fabric, FabricCompletion, FabricError, FabricOperation, MpiFabric, all_gather, barrier,
};
use graphmill_raw::AlignedBuffer;

/// In the environment of ranks: the plugin.
const PLUGIN: &str = "GRAPHMILL_TEST_PLUGIN";

/// The plugin, compiled against the MPI of this machine.
///
/// Its second rank stops on the last step if the test wants that.
fn plugin(folder: &Path, stops_last: bool) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/mpi/plugin.c");
    let (plugin, changed) = (folder.join("plugin.so"), folder.join("plugin.c"));
    let mut text = std::fs::read_to_string(source).unwrap();
    if stops_last {
        let finish = "int graphmill_mpi_finish(void) {";
        assert!(text.contains(finish));
        let stop = "int rank; MPI_Comm_rank(world, &rank); if (rank == 1) raise(SIGSTOP);";
        text = text.replace(finish, &format!("#include <signal.h>\n{finish}\n{stop}"));
    }
    std::fs::write(&changed, text).unwrap();
    let arguments = ["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror"];
    let built = Command::new("mpicc")
        .args(arguments)
        .arg("-o")
        .args([&plugin, &changed])
        .status();
    match built {
        Ok(status) => {
            assert!(status.success(), "the plugin compiles");
            Some(plugin)
        }
        Err(error) => {
            println!("skipped: mpicc: {error}");
            None
        }
    }
}

/// Runs the ranks of one of the tests below.
fn ranks(count: usize, name: &str) -> Option<Ended> {
    ranks_by(count, name, false)
}

fn ranks_by(count: usize, name: &str, stops_last: bool) -> Option<Ended> {
    let folder = tempfile::tempdir().unwrap();
    let plugin = plugin(folder.path(), stops_last)?;
    let started = mpirun::mpirun()
        .args(["-n", &count.to_string()])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &format!("mpi::{name}")])
        .args(["--nocapture", "--ignored"])
        .env(PLUGIN, plugin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    Some(mpirun::end_of(started.unwrap()))
}

fn succeed(count: usize, name: &str) {
    if let Some(ended) = ranks(count, name) {
        assert!(ended.has_succeeded(), "{}", ended.said);
    }
}

fn fabric() -> MpiFabric {
    MpiFabric::start(Path::new(&std::env::var_os(PLUGIN).unwrap())).unwrap()
}

fn patient() -> Result<(), FabricError> {
    Ok(())
}

fn frame(bytes: usize, with: u8) -> AlignedBuffer {
    let mut buffer = AlignedBuffer::zeroed(bytes).unwrap();
    buffer.fill(with);
    buffer
}

fn next(fabric: &dyn Fabric) -> FabricCompletion {
    loop {
        if let Some(completion) = fabric.wait(Duration::from_secs(1)) {
            return completion;
        }
    }
}

#[test]
fn all_gather_reaches_all_ranks() {
    for count in [1, 2, 3, 5] {
        succeed(count, "rank_gathers");
    }
}

#[test]
#[ignore = "one rank of another test"]
fn rank_gathers() {
    let fabric = fabric();
    assert!(!fabric.library().is_empty());
    let said = |rank: usize| vec![rank as u8; rank * 100_000];
    for _ in 0..20 {
        let heard = all_gather(&fabric, &said(fabric.rank()), &patient).unwrap();
        let expected: Vec<Vec<u8>> = (0..fabric.ranks()).map(said).collect();
        assert_eq!(heard, expected);
    }
    fabric.leave();
}

#[test]
fn frames_arrive_in_order_and_whole() {
    succeed(3, "rank_sends_frames");
}

#[test]
#[ignore = "one rank of another test"]
fn rank_sends_frames() {
    let fabric = fabric();
    let (rank, ranks) = (fabric.rank(), fabric.ranks());
    let (bytes, frames) = (1 << 20, 16_u64);
    for peer in (0..ranks).filter(|peer| *peer != rank) {
        for number in 0..frames {
            let channel = (number % 2) as Channel;
            let with = (rank as u64 * frames + number) as u8;
            let send = FabricOperation::Send {
                to: peer,
                channel,
                buffer: frame(bytes, with),
                range: 4096..bytes,
            };
            fabric.submit(send, u64::MAX);
            let receive = FabricOperation::Receive {
                from: peer,
                channel,
                buffer: frame(bytes, 0),
            };
            fabric.submit(receive, peer as u64 * frames + number);
        }
    }
    while fabric.in_flight() > 0 {
        let done = next(&fabric);
        assert_eq!(done.result, Ok(bytes - 4096));
        if done.token != u64::MAX {
            let buffer = done.buffer.unwrap();
            let whole = &buffer[..bytes - 4096];
            assert!(whole.iter().all(|byte| u64::from(*byte) == done.token));
        }
    }
    barrier(&fabric, &patient).unwrap();
    fabric.leave();
}

#[test]
fn frame_too_long_is_an_error() {
    succeed(2, "rank_sends_too_much");
}

#[test]
#[ignore = "one rank of another test"]
fn rank_sends_too_much() {
    let fabric = fabric();
    let operation = match fabric.rank() {
        0 => FabricOperation::Send {
            to: 1,
            channel: 0,
            buffer: frame(100, 1),
            range: 0..100,
        },
        _ => FabricOperation::Receive {
            from: 0,
            channel: 0,
            buffer: frame(99, 0),
        },
    };
    fabric.submit(operation, 0);
    let result = next(&fabric).result;
    if fabric.rank() == 1 {
        assert_eq!(result, Err(FabricError::TooLong { from: 0, room: 99 }));
    }
    fabric.leave();
}

#[test]
fn failed_rank_is_named_by_all() {
    let Some(ended) = ranks(3, "rank_hears_of_a_failure") else {
        return;
    };
    assert!(!ended.has_succeeded());
    let said = ended.said;
    for rank in [0, 2] {
        let named = format!("rank {rank}: rank 1 is lost: its disk is full");
        assert!(said.contains(&named), "{said}");
    }
}

#[test]
#[ignore = "one rank of another test"]
fn rank_hears_of_a_failure() {
    let fabric = fabric();
    let met = barrier(&fabric, &patient);
    if fabric.rank() == 1 {
        fabric.fail("its disk is full");
    } else {
        let error = first_failure(&fabric, met);
        println!("rank {}: {error}", fabric.rank());
    }
    // The others have time to say it before mpirun ends them.
    std::thread::sleep(Duration::from_secs(1));
    std::process::exit(1);
}

/// Returns why a rank cannot meet the others a second time.
///
/// A slow rank hears of it the first time, when the others have met.
fn first_failure(fabric: &MpiFabric, met: Result<(), FabricError>) -> FabricError {
    met.and_then(|()| barrier(fabric, &patient)).unwrap_err()
}

/// Stops the process until it is killed, as one that hangs, even if a signal continues it.
fn stop() -> ! {
    let own = std::process::id().to_string();
    loop {
        let stopped = Command::new("kill").args(["-STOP", &own]).status();
        assert!(stopped.unwrap().success());
    }
}

#[test]
fn silent_rank_is_named_by_all() {
    let Some(ended) = ranks(4, "rank_goes_silent") else {
        return;
    };
    assert!(!ended.has_succeeded());
    assert!(ended.took < Duration::from_secs(40));
    let said = ended.said;
    for rank in [0, 2, 3] {
        let named = format!("rank {rank}: rank 1 is lost: nothing was heard of it for 15 s");
        assert!(said.contains(&named), "{said}");
    }
}

#[test]
#[ignore = "one rank of another test"]
fn rank_goes_silent() {
    let fabric = fabric();
    let met = barrier(&fabric, &patient);
    if fabric.rank() == 1 {
        stop();
    }
    let error = first_failure(&fabric, met);
    println!("rank {}: {error}", fabric.rank());
    assert_eq!(fabric.lost(), Some(error.clone()));
    // A rank that fails because of another names that one, and all end together.
    fabric.fail(&error.to_string());
    std::process::exit(1);
}

#[test]
fn stopped_rank_blocks_no_finished_rank() {
    let Some(ended) = ranks_by(3, "rank_leaves", true) else {
        return;
    };
    assert!(!ended.has_succeeded());
    assert!(ended.took < Duration::from_secs(40));
    let said = ended.said;
    for rank in [0, 2] {
        assert!(said.contains(&format!("rank {rank} has left")), "{said}");
    }
}

#[test]
#[ignore = "one rank of another test"]
fn rank_leaves() {
    let fabric = fabric();
    barrier(&fabric, &patient).unwrap();
    fabric.leave();
    println!("rank {} has left", fabric.rank());
    drop(fabric);
    // As soon as one ends so, mpirun ends the others, and continues the stopped one to do so: all have said it before.
    std::thread::sleep(Duration::from_secs(5));
    // Without a word to MPI: mpirun sees that there is no end of it.
    std::process::exit(0);
}
