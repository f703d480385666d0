//! Checks a forest: its edges are in the graph, make no cycle, and are the same as by Kruskal's algorithm.

use crate::check::{Violation, bytes_of, check_shape};
use crate::mst::edge::ForestEdge;
use crate::output::{NO_EDGE, key_weight, weight_key};

/// Accepts rows only if they hold the edges of the minimum spanning forest, in any order.
///
/// Ordinals are vertices here. Directions of arcs do not matter. Of equal weights the edge of the smaller id comes first, then
/// that of the smaller second id.
///
/// # Errors
/// The first [`Violation`] found.
pub fn check_forest(
    vertices: u64,
    arcs: &[(u64, u64, f64)],
    rows: &[ForestEdge],
) -> Result<(), Violation> {
    let ends = arcs.iter().map(|arc| (arc.0, arc.1));
    check_shape(vertices, vertices as usize, ends)?;
    let all = sorted(arcs);
    let mut found: Vec<ForestEdge> = rows.to_vec();
    found.retain(|edge| *edge != NO_EDGE);
    found.sort_unstable();
    let mut trees = Trees::new(vertices as usize);
    for edge in &found {
        let is_edge = all.binary_search(edge).is_ok();
        check_edge(is_edge, edge, "an edge of the graph with its weight")?;
        check_edge(trees.join(edge), edge, "no cycle")?;
    }
    let least = kruskal(vertices as usize, &all);
    for (found, least) in found.iter().zip(&least) {
        check_edge(
            found == least,
            found,
            "the next edge by Kruskal's algorithm",
        )?;
    }
    if let Some(edge) = least.get(found.len()) {
        check_edge(false, edge, "an edge that connects two trees is there")?;
    }
    Ok(())
}

/// Bytes of memory of the checker, without arcs and rows.
#[must_use]
pub fn bytes(vertices: u64, arcs: u64) -> u64 {
    let edge = size_of::<ForestEdge>();
    bytes_of(&[(arcs, edge), (vertices, 2 * edge + 2 * size_of::<usize>())])
}

/// Returns the edges that Kruskal's algorithm takes, in order.
fn kruskal(vertices: usize, sorted: &[ForestEdge]) -> Vec<ForestEdge> {
    let mut trees = Trees::new(vertices);
    let mut taken = Vec::with_capacity(vertices);
    taken.extend(sorted.iter().filter(|edge| trees.join(edge)));
    taken
}

/// Returns the edges that arcs make, in order.
fn sorted(arcs: &[(u64, u64, f64)]) -> Vec<ForestEdge> {
    let edge = |&(u, v, weight): &(u64, u64, f64)| [weight_key(weight), u.min(v), u.max(v)];
    let mut edges: Vec<ForestEdge> = arcs.iter().map(edge).collect();
    edges.sort_unstable();
    edges
}

fn check_edge(
    is_right: bool,
    [key, from, to]: &ForestEdge,
    rule: &'static str,
) -> Result<(), Violation> {
    match is_right {
        true => Ok(()),
        false => Err(Violation::Edge {
            ends: [*from, *to],
            weight: key_weight(*key).to_string(),
            rule,
        }),
    }
}

/// A union-find.
struct Trees {
    parents: Vec<usize>,
}

impl Trees {
    fn new(vertices: usize) -> Self {
        Trees {
            parents: (0..vertices).collect(),
        }
    }

    fn root(&mut self, mut vertex: usize) -> usize {
        while self.parents[vertex] != vertex {
            self.parents[vertex] = self.parents[self.parents[vertex]];
            vertex = self.parents[vertex];
        }
        vertex
    }

    /// Joins the trees of the two ends; false if that is one tree.
    fn join(&mut self, [_, from, to]: &ForestEdge) -> bool {
        let (from, to) = (self.root(*from as usize), self.root(*to as usize));
        self.parents[from] = to;
        from != to
    }
}
