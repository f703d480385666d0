//! Help is complete, grouped, and fits a terminal.

use std::path::Path;

use crate::succeed;

const COMMANDS: [&str; 12] = [
    "import",
    "run",
    "generate",
    "info",
    "verify",
    "validate",
    "estimate",
    "algorithms",
    "cache",
    "mpi",
    "completions",
    "man",
];

/// Returns the names of all algorithms, as the registry has them.
fn algorithms() -> Vec<&'static str> {
    let names = graphmill::algorithms().iter().map(|entry| entry.name);
    names.collect()
}

fn help(arguments: &[&str]) -> String {
    let arguments: Vec<&str> = arguments.iter().copied().chain(["--help"]).collect();
    let text = succeed(Path::new("."), &arguments);
    for line in text.lines() {
        assert!(line.chars().count() <= 110, "{arguments:?}: {line}");
    }
    text
}

#[test]
fn help_names_commands_sizes_and_exit_codes() {
    let text = help(&[]);
    for command in COMMANDS {
        assert!(text.contains(&format!("\n  {command} ")), "{command}");
    }
    assert!(
        text.contains("powers of 1024")
            && text.contains("130 interrupted")
            && text.contains("Examples:")
    );
    let version = succeed(Path::new("."), &["--version"]);
    assert_eq!(
        version,
        format!("graphmill {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn help_of_each_command_groups_options() {
    for command in COMMANDS {
        assert!(help(&[command]).contains("Usage: graphmill"), "{command}");
    }
    let text = help(&["import"]);
    for heading in [
        "Arguments:",
        "Options:",
        "Reading edges:",
        "Edges:",
        "Stored graph:",
        "Machine:",
        "Example:",
    ] {
        assert!(text.contains(&format!("{heading}\n")), "{heading}");
    }
}

#[test]
fn help_short_fits_a_screen_without_experiments() {
    let of_algorithms = algorithms().into_iter().map(|name| vec!["run", name]);
    let of_commands = COMMANDS.map(|name| vec![name]);
    let pages: Vec<_> = of_algorithms.chain(of_commands).chain([vec![]]).collect();
    for arguments in pages {
        let page: Vec<&str> = arguments.iter().copied().chain(["-h"]).collect();
        let text = succeed(Path::new("."), &page);
        assert!(text.lines().count() <= 40, "{arguments:?}:\n{text}");
        for option in [
            "--dispatch",
            "--combiner",
            "--sparse",
            "--place",
            "--simulate-slow-tier",
        ] {
            assert!(!text.contains(option), "{arguments:?}: {option}");
            let is_run = arguments.first() == Some(&"run") && arguments.len() > 1;
            if is_run && option != "--combiner" {
                assert!(help(&arguments).contains(option), "{arguments:?}: {option}");
            }
        }
    }
}

#[test]
fn completions_and_manuals_name_every_command() {
    let at = Path::new(".");
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let text = succeed(at, &["completions", shell]);
        for word in COMMANDS.into_iter().chain(algorithms()) {
            assert!(text.contains(word), "{shell}: {word}");
        }
    }
    let text = succeed(at, &["man"]);
    assert!(text.contains(".TH") && text.contains("graphmill"), "{text}");
    let folder = tempfile::tempdir().expect("a folder");
    succeed(folder.path(), &["man", "-o", "."]);
    let pages = crate::names(folder.path());
    for command in COMMANDS {
        let page = format!("graphmill-{command}.1");
        assert!(pages.contains(&page), "{page}: {pages:?}");
    }
}

#[test]
fn help_of_algorithm_lists_its_options() {
    let all = help(&["run"]);
    for algorithm in algorithms() {
        assert!(all.contains(&format!("\n  {algorithm} ")), "{algorithm}");
        assert!(help(&["run", algorithm]).contains("--memory <SIZE>"));
    }
    let text = help(&["run", "pagerank"]);
    for option in [
        "--iterations <N>",
        "--damping <D>",
        "--tolerance <X>",
        "--dangling",
    ] {
        assert!(text.contains(option), "{option}");
    }
    assert!(text.contains("This algorithm:\n") && !text.contains("--parents"));
    assert!(help(&["run", "bfs"]).contains("--parents"));
    for (algorithm, has_mailboxes) in [
        ("pagerank", true),
        ("sssp", true),
        ("wcc", true),
        ("bfs", false),
    ] {
        let text = help(&["run", algorithm]);
        assert_eq!(text.contains("--combiner"), has_mailboxes, "{algorithm}");
    }
}

#[test]
fn help_of_validate_lists_each_option_once() {
    let text = help(&["validate"]);
    for option in ["--source <ID>", "--parents", "--damping <D>", "--precision"] {
        assert_eq!(
            text.matches(&format!("\n      {option}")).count(),
            1,
            "{option}"
        );
    }
    assert!(text.contains("(bfs, sssp)") && text.contains("--rule epsilon"));
    let text: Vec<&str> = text.split_whitespace().collect();
    let values = "pagerank passes|pregel-pull|pregel-push";
    assert!(text.join(" ").contains(values), "{text:?}");
    assert!(
        text.join(" ")
            .contains("wcc auto|afforest|union-find|labels")
    );
}

#[test]
fn algorithms_are_listed_as_text_and_json() {
    let text = succeed(Path::new("."), &["algorithms"]);
    let json: serde_json::Value =
        serde_json::from_str(&succeed(Path::new("."), &["algorithms", "--json"])).expect("JSON");
    let listed: Vec<&str> = json
        .as_array()
        .expect("an array")
        .iter()
        .filter_map(|entry| entry["name"].as_str())
        .collect();
    assert_eq!(listed, algorithms());
    for known in ["bfs", "pagerank", "sssp", "wcc"] {
        assert!(listed.contains(&known), "{known}");
    }
    for algorithm in algorithms() {
        assert!(text.contains(&format!("{algorithm}: ")), "{algorithm}");
    }
}

#[test]
fn help_examples_of_generate_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut pages = vec![help(&["generate"])];
    for rule in ["kronecker", "uniform", "grid", "consecutive", "scattered"] {
        pages.push(help(&["generate", rule]));
    }
    pages.push(help(&[]));
    pages.push(include_str!("../../../../README.md").to_string());
    let mut examples: Vec<&str> = pages
        .iter()
        .flat_map(|page| page.lines())
        .filter_map(|line| line.trim_start().strip_prefix("graphmill generate "))
        .map(|line| line.split("  ").next().unwrap_or(line))
        .collect();
    examples.sort_unstable();
    examples.dedup();
    assert!(examples.len() > 8, "{examples:?}");
    for example in examples {
        let rule = example.split(' ').chain(["-q"]);
        let words: Vec<&str> = ["generate"].into_iter().chain(rule).collect();
        succeed(folder.path(), &words);
        for name in crate::names(folder.path()) {
            let path = folder.path().join(name);
            match path.is_dir() {
                true => std::fs::remove_dir_all(path).expect("a folder"),
                false => std::fs::remove_file(path).expect("a file"),
            }
        }
    }
}
