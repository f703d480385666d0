//! Ids in programs of one's own: which vertex has an id, and which ids a result names.

use std::collections::BTreeMap;

use graphmill::prelude::*;
use graphmill::{Error, ImportConfig, Order, VertexId};
use tempfile::TempDir;

use crate::common::{import, on_ranks};

/// Two components: a star of five around `hub`, and a path of `a`, `b`, `c`; ids of a kind.
fn edges(id: impl Fn(u64) -> String) -> String {
    let pairs = [(9, 4), (9, 5), (9, 6), (9, 7), (1, 3), (3, 2)];
    let line = |(u, v)| format!("{} {}\n", id(u), id(v));
    pairs.map(line).concat()
}

fn config(order: Order) -> ImportConfig {
    ImportConfig {
        directed: false,
        order,
        batch_size: Some(2),
        ..ImportConfig::default()
    }
}

#[test]
fn ids_and_indices_map_to_each_other() {
    let kinds: [fn(u64) -> String; 3] = [
        |v| v.to_string(),
        |v| format!("{}", v as i64 * 10 - 50),
        |v| format!("lib {v}").replace(' ', ""),
    ];
    for (id, order) in kinds
        .iter()
        .flat_map(|id| [(id, Order::Id), (id, Order::Degree)])
    {
        let folder = TempDir::new().expect("a folder");
        let graph = import(folder.path(), &edges(id), config(order));
        for ranks in [1, 3] {
            on_ranks(&graph, ranks, |mut session| {
                let mut indices = Vec::new();
                for v in [1, 2, 3, 4, 5, 6, 7, 9] {
                    let index = session.index_of(&*id(v))?;
                    assert_eq!(session.id_of(index)?.to_string(), id(v), "{order:?}");
                    indices.push(index);
                }
                indices.sort_unstable();
                assert_eq!(indices, [0, 1, 2, 3, 4, 5, 6, 7]);
                for unknown in ["8", "libc", "", "-1"] {
                    let found = session.index_of(unknown);
                    assert!(matches!(found, Err(Error::NoVertex { .. })), "{found:?}");
                }
                let said = session.id_of(8).expect_err("no vertex").to_string();
                assert_eq!(said, "cannot use vertex index 8: the graph has 8 vertices");
                Ok(())
            })
            .expect("a session");
        }
    }
}

#[test]
fn integer_id_needs_no_text() {
    let folder = TempDir::new().expect("a folder");
    let graph = import(folder.path(), "7 42\n42 1000\n", config(Order::Degree));
    on_ranks(&graph, 1, |mut session| {
        let index = session.index_of(42)?;
        assert_eq!(session.index_of("42")?, index);
        assert_eq!(session.index_of(42_u64)?, index);
        assert_eq!(session.id_of(index)?, VertexId::Integer(42));
        assert!(session.index_of(-42).is_err());
        Ok(())
    })
    .expect("a session");
}

/// Hash-min over indices.
struct HashMin;

impl VertexProgram for HashMin {
    type Value = u64;
    type Message = u64;
    type Edge = ();
    type Aggregate = ();
    const IDENTITY: u64 = u64::MAX;
    const ORDER_INDEPENDENT: bool = true;

    fn compute(&self, me: &mut VertexContext<'_, Self>, least: Option<u64>) {
        let label = match me.superstep() {
            0 => Some(me.index()),
            _ => least.filter(|least| *least < *me.value),
        };
        if let Some(label) = label {
            *me.value = label;
            me.broadcast(label);
        }
        me.vote_to_halt();
    }
    fn combine(&self, least: &mut u64, label: u64) {
        *least = (*least).min(label);
    }
}

#[test]
fn values_that_are_vertices_are_written_as_their_ids() {
    for order in [Order::Id, Order::Degree] {
        let folder = TempDir::new().expect("a folder");
        let id = |v| format!("v{v}");
        let graph = import(folder.path(), &edges(id), config(order));
        let mut results = Vec::new();
        for ranks in [1, 3] {
            let path = folder.path().join("components.csv");
            on_ranks(&graph, ranks, |mut session| {
                let component = session.vertex_array::<u64>("component")?;
                session.pregel(HashMin, component, PregelMode::Pull, None)?;
                let output = Output {
                    column: "component",
                    values: OutputValues::Vertex64(component),
                    nullable: false,
                };
                session.write(&output, &path, |_| ())?;
                Ok(())
            })
            .expect("a run");
            results.push(std::fs::read_to_string(&path).expect("a result"));
        }
        assert_eq!(results[0], results[1]);
        let rows = results[0].lines().skip(1);
        let component: BTreeMap<&str, &str> = rows.filter_map(|row| row.split_once(',')).collect();
        // In order of degree the first vertex of a batch is the one with most edges.
        for members in [&["v4", "v5", "v6", "v7", "v9"][..], &["v1", "v2", "v3"]] {
            let name = component[members[0]];
            assert!(members.contains(&name), "{order:?}: {}", results[0]);
            assert!(members.iter().all(|member| component[member] == name));
        }
        assert_eq!(component.len(), 8);
    }
}

#[test]
fn value_that_is_no_vertex_is_refused() {
    for order in [Order::Id, Order::Degree] {
        let folder = TempDir::new().expect("a folder");
        let graph = import(folder.path(), &edges(|v| v.to_string()), config(order));
        let path = folder.path().join("parents.csv");
        let write = |value: u32, nullable: bool| {
            on_ranks(&graph, 1, |mut session| {
                let parent = session.vertex_array::<u32>("parent")?;
                session.process_vertices(parent.write(), None, |v, parent| {
                    *parent = if v == 3 { value } else { 0 }
                })?;
                let output = Output {
                    column: "parent",
                    values: OutputValues::Vertex32(parent),
                    nullable,
                };
                session.write(&output, &path, |_| ())
            })
        };
        assert!(write(7, false).is_ok() && write(u32::MAX, true).is_ok());
        for (value, nullable) in [(8, true), (u32::MAX, false)] {
            let said = write(value, nullable).expect_err("no vertex").to_string();
            assert!(
                said.contains(&format!(
                    "\"parent\" is {value}, and the graph has 8 vertices"
                )),
                "{said}"
            );
        }
    }
}
