//! Jobs of Open MPI's `mpirun` on this machine, and their ends: shared by the tests of the fabric and of the command.

use std::collections::BTreeSet;
use std::io::Read;
use std::process::{Child, Command, ExitStatus};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// `mpirun` for ranks that share the processors of this machine, as any user.
pub(crate) fn mpirun() -> Command {
    let mut mpirun = Command::new("mpirun");
    mpirun
        .args(["--oversubscribe", "--bind-to", "none"])
        .args(["--mca", "mpi_yield_when_idle", "1"])
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    mpirun
}

/// The ranks of a job on this machine.
pub(crate) fn ranks_of(mpirun: u32) -> Vec<u32> {
    let children = Command::new("pgrep")
        .args(["-P", &mpirun.to_string()])
        .output();
    let said = children.map(|output| output.stdout).unwrap_or_default();
    let said = String::from_utf8_lossy(&said).into_owned();
    said.lines().filter_map(|line| line.parse().ok()).collect()
}

/// How a job ended.
pub(crate) struct Ended {
    /// `None` if `mpirun` did not end after its ranks had.
    ///
    /// Open MPI 4.1 with PMIx 4.2 sometimes waits for a lock of its own (`PMIx_server_finalize`) if a rank was killed while
    /// others finished.
    pub(crate) status: Option<ExitStatus>,
    /// The text on stdout, then on stderr, of those that are pipes.
    pub(crate) said: String,
    /// From the call to the end of the last rank.
    pub(crate) took: Duration,
}

impl Ended {
    pub(crate) fn has_succeeded(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }
}

/// Reads a pipe to its end, beside the others.
fn read(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<std::io::Result<String>> {
    std::thread::spawn(move || {
        let mut said = Vec::new();
        if let Some(mut pipe) = pipe {
            pipe.read_to_end(&mut said)?;
        }
        Ok(String::from_utf8_lossy(&said).into_owned())
    })
}

/// Start of a process in ticks of its machine; `None` if it has ended.
///
/// Other processes may get its number later.
fn start_of(process: u32) -> Option<u64> {
    let said = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, facts) = said.rsplit_once(") ")?;
    let mut facts = facts.split(' ');
    let has_ended = facts.next()?.starts_with(['Z', 'X']);
    (!has_ended).then(|| facts.nth(18)?.parse().ok())?
}

/// True if a rank with a known start has not ended.
fn lives(&(process, start): &(u32, u64)) -> bool {
    start_of(process) == Some(start)
}

/// Kills a job that does not end in two minutes: that is a failure.
fn end_late(began: Instant, ranks: &BTreeSet<(u32, u64)>, mpirun: Option<u32>) {
    if began.elapsed() > Duration::from_secs(120) {
        let living = ranks.iter().filter(|rank| lives(rank)).map(|rank| rank.0);
        let processes = living.chain(mpirun).map(|process| process.to_string());
        let _ = Command::new("kill").arg("-9").args(processes).status();
        panic!("the job does not end");
    }
}

/// Waits for the end of a job.
pub(crate) fn end_of(mut mpirun: Child) -> Ended {
    let said = [read(mpirun.stdout.take()), read(mpirun.stderr.take())];
    let (began, mut gone) = (Instant::now(), None);
    let mut ranks = BTreeSet::new();
    let status = loop {
        let there = ranks_of(mpirun.id()).into_iter();
        ranks.extend(there.filter_map(|rank| Some((rank, start_of(rank)?))));
        let status = mpirun.try_wait().expect("it is a child");
        if status.is_some() {
            break status;
        }
        match gone {
            _ if ranks.is_empty() || ranks.iter().any(lives) => gone = None,
            None => gone = Some(Instant::now()),
            Some(gone) if gone.elapsed() > Duration::from_secs(10) => {
                println!("all ranks had ended, and mpirun did not: it was killed");
                mpirun.kill().and_then(|()| mpirun.wait()).expect("it ends");
                break None;
            }
            Some(_) => {}
        }
        end_late(began, &ranks, Some(mpirun.id()));
        std::thread::sleep(Duration::from_millis(20));
    };
    // Some outlive `mpirun` by a little.
    while ranks.iter().any(lives) {
        gone = None;
        end_late(began, &ranks, None);
        std::thread::sleep(Duration::from_millis(20));
    }
    Ended {
        status,
        said: said
            .map(|said| said.join().expect("no panic").expect("a pipe"))
            .concat(),
        took: gone.unwrap_or_else(Instant::now) - began,
    }
}
