//! Runs by the bucket executor: the same results as over columns, and the refusals.

use std::net::UdpSocket;
use std::path::Path;
use std::process::Stdio;

use graphmill_raw::SplitMix64;

use crate::memory::does_with_what_it_asks_for;
use crate::ranks::metrics;
use crate::stream::{assert_same, edges, words};
use crate::{call, folder_with_edges, graphmill, is_soak, succeed, told};

/// Algorithms that give the same bytes.
const EXACT: [&str; 8] = [
    "bfs --source 1",
    "bfs --source 1 --parents",
    "sssp --source 1",
    "wcc",
    "mis",
    "scc",
    "cdlp",
    "pagerank --precision fixed",
];

/// The ways of the executor: ranks, threads and links.
const WAYS: [&str; 8] = [
    "--threads 1",
    "--threads 2 --link udp",
    "--ranks 2 --threads 2",
    "--ranks 3 --threads 9 --bucket-threads 1,1,1 --link udp",
    "--ranks 4 --threads 8 --link udp --plain-datagrams",
    "--ranks 8 --threads 40 --link local",
    "--ranks 2 --threads 2 --combine never --sparse always",
    "--ranks 3 --threads 3 --combine always --link udp --link-rate 100M",
];

/// Compares a run in some ways with the run over columns.
fn compare<'w>(at: &Path, run: &str, ways: impl Iterator<Item = &'w str>, is_exact: bool) {
    let of = |more: &str| succeed(at, &words(&format!("run {run} -o - {more}")));
    let wanted = of("");
    for way in ways {
        let found = of(&format!("--executor bucket {way}"));
        assert_same(&found, &wanted, is_exact, &format!("{run} {way}"));
    }
}

#[test]
fn bucket_answers_are_those_over_columns() {
    let folder = folder_with_edges(&edges());
    let at = folder.path();
    for (graph, more) in [
        ("one", "--reverse --batch-size 1"),
        ("some", "--undirected --batch-size 64"),
        ("whole", "--reverse"),
    ] {
        let import = format!("import edges.txt --weights f32 {more} -q -o {graph}");
        succeed(at, &words(&import));
        let exact = EXACT.iter().map(|run| (*run, true));
        let all = exact.chain([("pagerank", false), ("spmv", false)]);
        // Each run in each way of one graph, and in every third of the others; GRAPHMILL_SOAK=1: of all.
        let step = if graph == "some" || is_soak() { 1 } else { 3 };
        for (number, (run, is_exact)) in all.enumerate() {
            let ways = WAYS.iter().copied().skip(number % step).step_by(step);
            compare(at, &format!("{run} {graph}"), ways, is_exact);
        }
    }
}

#[test]
fn plain_datagrams_are_warned_of() {
    let folder = folder_with_edges(&edges());
    let run = "run bfs edges.txt --source 1 --executor bucket --plain-datagrams -o rows.csv";
    let said = told(folder.path(), &words(run));
    assert!(said.contains("read and change messages"), "{said}");
}

#[test]
fn bucket_misuse_is_refused() {
    let folder = folder_with_edges(&edges());
    let at = folder.path();
    for (graph, more) in [("columns", ""), ("chunks", "--layout stream")] {
        let import = format!("import edges.txt --weights f32 {more} -q -o {graph}");
        succeed(at, &words(&import));
    }
    for (run, cause) in [
        ("run pagerank columns --link udp", "--executor bucket"),
        (
            "run pagerank columns --executor bucket --steal inf",
            "--executor stream",
        ),
        (
            "run pagerank columns --executor bucket --bucket-threads 1,0,1",
            "from 1 to 255",
        ),
        (
            "run wcc columns --executor bucket",
            "import it with --reverse",
        ),
        (
            "run cdlp columns --executor bucket",
            "import it with --reverse",
        ),
        (
            "run wcc columns --method afforest --executor bucket",
            "leave the option out",
        ),
        ("run pagerank columns --combine always", "--executor bucket"),
        (
            "run pagerank columns --executor bucket --link dpdk --ranks 2",
            "start them with mpirun",
        ),
        (
            "run pagerank columns --executor bucket --dpdk-device memif",
            "--link dpdk",
        ),
        (
            "run pagerank chunks --executor bucket",
            "its layout is stream",
        ),
        (
            "run pagerank columns --executor bucket --memory 1M",
            "give --memory",
        ),
        ("estimate columns --combine never", "--executor bucket"),
    ] {
        let out = call(at, &words(run));
        assert!(!out.status.success(), "{run}");
        let said = String::from_utf8_lossy(&out.stderr).replace('\n', " ");
        assert!(said.contains(cause), "{run}: {said}");
    }
}

#[test]
fn least_memory_of_runs_in_buckets_is_enough() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let generate = "generate kronecker 14 16 --weights f32 -q -o edges.wel";
    succeed(at, &words(generate));
    // Enough for the directories, and too little.
    for (batch, memory) in [("64", "10M"), ("4096", "7M")] {
        let import =
            format!("import edges.wel -o graph --weights f32 --reverse --batch-size {batch}");
        succeed(at, &words(&import));
        for run in [
            "pagerank --threads 1",
            "pagerank --threads 3 --combine never --link udp",
            "sssp --source 1 --ranks 2 --threads 4",
            "cdlp --threads 2",
            "cdlp --ranks 3 --threads 3",
            "scc --threads 2 --bucket-threads 1,1,1",
            "mst --threads 2",
        ] {
            let run = format!("run {run} graph -o rows.csv --executor bucket");
            println!("{run}, batches of {batch}");
            // Ranks share the budget.
            let memory = if run.contains("--ranks") {
                "20M"
            } else {
                memory
            };
            does_with_what_it_asks_for(at, &words(&run), memory);
            std::fs::remove_file(at.join("rows.csv")).expect("rows");
        }
        std::fs::remove_dir_all(at.join("graph")).expect("a graph");
    }
}

/// The UDP ports of a process.
fn ports(process: u32) -> Vec<u16> {
    let of_process = |name: &str| format!("/proc/{process}/{name}");
    let files = std::fs::read_dir(of_process("fd")).into_iter().flatten();
    let targets = files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
    let sockets: Vec<String> = targets.map(|target| target.display().to_string()).collect();
    let table = std::fs::read_to_string(of_process("net/udp")).unwrap_or_default();
    let port = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let socket = format!("socket:[{}]", fields.get(9)?);
        let (_, port) = fields[1].split_once(':')?;
        let port = u16::from_str_radix(port, 16).ok()?;
        sockets.contains(&socket).then_some(port)
    };
    table.lines().skip(1).filter_map(port).collect()
}

#[test]
fn flood_of_datagrams_changes_no_result() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let generate = "generate kronecker 14 16 --undirected -q -o graph";
    succeed(at, &words(generate));
    let run = "run pagerank graph --precision fixed --iterations 200 -q -o";
    succeed(at, &words(&format!("{run} wanted.csv")));
    for more in ["", "--plain-datagrams"] {
        let in_buckets =
            "--executor bucket --link udp --ranks 2 --threads 2 --memory 64M --metrics run.json";
        let mut child = graphmill()
            .args(words(&format!("{run} found.csv {in_buckets} {more}")))
            .current_dir(at)
            .stderr(Stdio::null())
            .spawn()
            .expect("the command starts");
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let (mut random, mut datagram) = (SplitMix64::new(1), [0; 1472]);
        let status = loop {
            if let Some(status) = child.try_wait().expect("a child") {
                break status;
            }
            let ports = ports(child.id());
            for _ in 0..256 {
                datagram.fill_with(|| random.next_u64() as u8);
                // Half of them begin as a bucket does.
                if random.below(2) == 0 {
                    datagram[..8].copy_from_slice(&[0x47, 0x42, 1, 0, 1, 0, 0, 0]);
                }
                for port in &ports {
                    let length = [1472, random.below(1473) as usize][random.below(2) as usize];
                    // A full socket drops it.
                    let _ = socket.send_to(&datagram[..length], ("127.0.0.1", *port));
                }
            }
        };
        assert!(status.success(), "{more}: {status}");
        let [found, wanted] = ["found.csv", "wanted.csv"].map(|name| std::fs::read(at.join(name)));
        assert!(found.expect("rows") == wanted.expect("rows"), "{more}");
        let metrics = metrics(at);
        println!("{more}: {}", metrics["datagrams"]);
        let refused = metrics["datagrams"]["refused"].as_object().expect("counts");
        let refused: u64 = refused.values().filter_map(serde_json::Value::as_u64).sum();
        assert!(refused > 0, "{metrics}");
        let peak = metrics["peak_memory"].as_u64().expect("bytes");
        assert!(peak <= 64 << 20, "{metrics}");
    }
}
