//! What a killed import leaves is cleaned by the next import.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Case, From, GRAPH, Heard, beside, edges, on, options, power_cut};
use crate::common::Bench;
use graphmill_graph::VertexId;
use graphmill_ingest::{Ids, ImportOptions};
use graphmill_storage::{Fault, FaultKind, On};

#[test]
fn import_without_a_step_is_cleaned_by_the_next() {
    let close = edges(Ids::Integer, 4000, VertexId::Integer);
    for (ranks, step) in [(1, 1), (3, 7)] {
        let case = |output: &str| Case {
            name: "nothing kept",
            from: From::Edges(&close),
            options: ImportOptions {
                keep_every: Some(Duration::from_secs(3600)),
                output: output.into(),
                ..options()
            },
            ranks,
            own_disks: false,
        };
        let fresh = case(GRAPH).bench(1);
        for done in case(GRAPH).import(&fresh, &Heard::default()) {
            done.unwrap();
        }
        let (mut named, mut were_left) = (0, 0);
        for nth in (1..=fresh[0].sim.operations()).step_by(step) {
            let benches = case(GRAPH).bench(1);
            benches[0].sim.inject(power_cut(nth));
            let _ = case(GRAPH).import(&benches, &Heard::default());
            let left = [on(benches[0].sim.after_power_cut(nth))];
            let is_named = left[0].disk.exists(Path::new(GRAPH)).unwrap();
            named += u64::from(is_named);
            were_left += u64::from(beside(&left).len() > usize::from(is_named));
            for done in case("/data/other").import(&left, &Heard::default()) {
                done.unwrap();
            }
            let mut wanted = vec![Path::new("/data/other")];
            if is_named {
                wanted.insert(0, Path::new(GRAPH));
            }
            assert_eq!(beside(&left), wanted, "{ranks} ranks, at {nth}");
        }
        assert!(
            named > 0 && were_left > 30,
            "{named} named, {were_left} left"
        );
    }
}

#[test]
fn steps_of_more_ranks_are_cleaned_by_fewer() {
    let names = edges(Ids::Text, 4000, |id| {
        VertexId::Text(format!("vertex {id}").into_bytes())
    });
    let case = |ranks| Case {
        name: "fewer ranks",
        from: From::Edges(&names),
        options: options(),
        ranks,
        own_disks: false,
    };
    let fresh = case(1).bench(1);
    case(1).import(&fresh, &Heard::default()).remove(0).unwrap();
    let wanted = case(1).files(&fresh);
    let by_three = case(3).bench(1);
    for done in case(3).import(&by_three, &Heard::default()) {
        done.unwrap();
    }
    let operations = by_three[0].sim.operations();
    let mut were_left = 0;
    for nth in (1..operations).step_by(operations as usize / 40) {
        let benches = case(3).bench(1);
        benches[0].sim.inject(power_cut(nth));
        let _ = case(3).import(&benches, &Heard::default());
        let left = [on(benches[0].sim.after_power_cut(nth))];
        if left[0].disk.exists(Path::new(GRAPH)).unwrap() {
            left[0].disk.remove_dir_all(Path::new(GRAPH)).unwrap();
        }
        were_left += u64::from(beside(&left).len() > 3);
        case(1).import(&left, &Heard::default()).remove(0).unwrap();
        assert!(case(1).files(&left) == wanted, "at {nth}");
    }
    assert!(were_left > 10, "{were_left} left");
}

/// True if an import has left a checkpoint.
fn is_any_kept(benches: &[Bench]) -> bool {
    let is = |path: &PathBuf, what: &str| path.to_string_lossy().contains(what);
    let mut folders = beside(benches);
    folders.retain(|path| is(path, ".graphmill-import-"));
    let files = folders
        .iter()
        .flat_map(|folder| benches[0].disk.list(folder).unwrap());
    let mut records = files.filter(|path| is(path, ".step"));
    records.any(|record| !record.ends_with("job.step"))
}

#[test]
fn steps_of_another_import_are_cleaned() {
    let names = edges(Ids::Text, 4000, |id| {
        VertexId::Text(format!("vertex {id}").into_bytes())
    });
    for (before, ranks, step) in [(1, 1, 3), (3, 3, 8), (3, 1, 5)] {
        let case = |output: &str, batch_size, ranks| Case {
            name: "another import",
            from: From::Edges(&names),
            options: ImportOptions {
                output: output.into(),
                batch_size: Some(batch_size),
                ..options()
            },
            ranks,
            own_disks: false,
        };
        let fresh = case(GRAPH, 64, before).bench(1);
        for done in case(GRAPH, 64, before).import(&fresh, &Heard::default()) {
            done.unwrap();
        }
        // Columns of the first have been kept.
        let late = fresh[0].sim.operations() * 9 / 10;
        let kept = case(GRAPH, 64, before).bench(1);
        kept[0].sim.inject(power_cut(late));
        let _ = case(GRAPH, 64, before).import(&kept, &Heard::default());
        let left = on(kept[0].sim.after_power_cut(late));
        let (mut were_left, mut went) = (0, 0);
        for nth in (1..400).step_by(step) {
            let again = [on(left.sim.copied(nth))];
            again[0].sim.inject(power_cut(nth));
            let _ = case(GRAPH, 65, ranks).import(&again, &Heard::default());
            let left = [on(again[0].sim.after_power_cut(nth))];
            were_left += u64::from(beside(&left).len() > 1);
            for done in case("/data/other", 64, ranks).import(&left, &Heard::default()) {
                done.unwrap();
            }
            let is_alone = beside(&left) == [Path::new("/data/other")];
            assert!(
                is_alone || is_any_kept(&left),
                "{before} ranks, then {ranks}, at {nth}: {:?}",
                beside(&left)
            );
            went += u64::from(is_alone);
            // Whatever is left is no obstacle for either of them.
            for done in case(GRAPH, 64 + nth % 2, ranks).import(&left, &Heard::default()) {
                done.unwrap();
            }
            assert_eq!(beside(&left), [Path::new(GRAPH), Path::new("/data/other")]);
        }
        assert!(were_left > 40 && went > 0, "{were_left} left, {went} went");
    }
}

#[test]
fn first_record_unwritable_leaves_nothing() {
    let names = edges(Ids::Text, 4000, |id| {
        VertexId::Text(format!("vertex {id}").into_bytes())
    });
    for ranks in [1, 3] {
        let case = Case {
            name: "full",
            from: From::Edges(&names),
            options: options(),
            ranks,
            own_disks: false,
        };
        let fresh = case.bench(1);
        for done in case.import(&fresh, &Heard::default()) {
            done.unwrap();
        }
        let (mut failed, mut gone) = (0, 0);
        // The disk is full from some write on, so that the import fails soon after the record.
        for nth in (1..fresh[0].sim.operations() / 4).step_by(if ranks == 1 { 1 } else { 5 }) {
            let full = case.bench(1);
            full[0].sim.inject(Fault {
                kind: FaultKind::Enospc,
                on: On::Write,
                nth,
                for_good: true,
            });
            let done = case.import(&full, &Heard::default());
            if done.iter().all(Result::is_ok) {
                break;
            }
            failed += 1;
            let is_empty = beside(&full).is_empty();
            assert!(
                is_empty || is_any_kept(&full),
                "{ranks} ranks, at {nth}: {:?}",
                beside(&full)
            );
            gone += u64::from(is_empty);
        }
        assert!(failed > 5 && gone > 2, "{failed} failed, {gone} gone");
    }
}

#[test]
fn graph_of_another_rank_is_cleaned_by_the_next() {
    let names = edges(Ids::Text, 4000, |id| {
        VertexId::Text(format!("vertex {id}").into_bytes())
    });
    let case = Case {
        name: "other hosts",
        from: From::Edges(&names),
        options: ImportOptions {
            reverse: false,
            ..options()
        },
        ranks: 4,
        own_disks: true,
    };
    let two = || case.bench(1).into_iter().take(2).collect::<Vec<_>>();
    // Two ranks on either host, and three on the second.
    let on_hosts = |hosts: &[Bench], ranks: [usize; 4]| -> Vec<Bench> {
        ranks
            .iter()
            .map(|host| on(hosts[*host].sim.clone()))
            .collect()
    };
    let fresh = two();
    for done in case.import(&on_hosts(&fresh, [0, 0, 1, 1]), &Heard::default()) {
        done.unwrap();
    }
    let operations = fresh[1].sim.operations();
    let mut were_left = 0;
    for nth in (1..operations).step_by(operations as usize / 20) {
        let hosts = two();
        hosts[1].sim.inject(power_cut(nth));
        let _ = case.import(&on_hosts(&hosts, [0, 0, 1, 1]), &Heard::default());
        let left = [
            on(hosts[0].sim.copied(nth)),
            on(hosts[1].sim.after_power_cut(nth)),
        ];
        for host in &left {
            if host.disk.exists(Path::new(GRAPH)).unwrap() {
                host.disk.remove_dir_all(Path::new(GRAPH)).unwrap();
            }
        }
        were_left += u64::from(!beside(&left[1..]).is_empty());
        for done in case.import(&on_hosts(&left, [0, 1, 1, 1]), &Heard::default()) {
            done.unwrap();
        }
        for host in left {
            let mut there = beside(&[host]);
            there.retain(|path| !path.to_string_lossy().contains(".graphmill-import-"));
            // Of the rank that has moved, temporary files stay until it works there again.
            assert_eq!(there, [Path::new(GRAPH)], "at {nth}");
        }
    }
    assert!(were_left > 10, "{were_left} left");
}
