//! Circulant graphs: from each vertex edges at the same distances, around a ring of all vertices.
//!
//! They are the *consecutive* graphs (gap 1) and the *scattered* ones of a study of graph processing in non-volatile
//! memory ("Graphs Selected" and Table 2 there): the two ends of locality, with the same vertices, edges and degrees. Its
//! text leaves open what comes after the last vertex; here it is the first, so that every vertex has the same degree.

/// A circulant graph: vertex i has edges to i + gap, ..., i + degree gap, modulo the vertices.
///
/// The edges of a vertex are in this order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Circulant {
    pub(crate) vertices: u64,
    pub(crate) degree: u64,
    /// Below the number of vertices.
    gap: u64,
}

impl Circulant {
    pub(super) fn new(vertices: u64, degree: u64, gap: u64) -> Self {
        Circulant {
            vertices,
            degree,
            gap: gap.checked_rem(vertices).unwrap_or(0),
        }
    }

    /// Edges number `from` up to `to`.
    pub(super) fn edges(self, from: u64, to: u64) -> impl Iterator<Item = (u64, u64)> {
        let mut source = from.checked_div(self.degree).unwrap_or(0);
        let mut k = from.checked_rem(self.degree).unwrap_or(0);
        let mut destination = self.behind(source, self.distance(k));
        (from..to).map(move |_| {
            destination = self.behind(destination, self.gap);
            let edge = (source, destination);
            k += 1;
            if k == self.degree {
                (source, k) = (source + 1, 0);
                destination = source;
            }
            edge
        })
    }

    /// Returns the distance to neighbour number `k`, from 1, of any vertex.
    pub(crate) fn distance(self, k: u64) -> u64 {
        let distance = u128::from(k) * u128::from(self.gap);
        distance.checked_rem(u128::from(self.vertices)).unwrap_or(0) as u64
    }

    /// Returns the vertex at this distance after `vertex`.
    fn behind(self, vertex: u64, distance: u64) -> u64 {
        // Sums are below 2^64 even where two vertices' are not.
        match vertex.checked_sub(self.vertices - distance) {
            Some(wrapped) => wrapped,
            None => vertex + distance,
        }
    }

    /// Returns the number of different neighbours that a vertex can have.
    ///
    /// After this many multiples of the gap the neighbours repeat, and the last of them is the vertex itself.
    pub(crate) fn period(self) -> u64 {
        let (mut a, mut b) = (self.vertices, self.gap);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        self.vertices.checked_div(a).unwrap_or(0)
    }

    /// Edges from a vertex to itself, of each vertex.
    pub(crate) fn loops(self) -> u64 {
        self.degree.checked_div(self.period()).unwrap_or(0)
    }

    /// True if several arcs join two vertices in one direction.
    ///
    /// Each edge is stored in one direction, or in both if `both_ways`.
    pub(crate) fn repeats(self, both_ways: bool) -> bool {
        let period = self.period();
        // Forth by j and back by k multiples is the same where j + k is the period.
        self.degree > period || both_ways && period > 1 && self.degree >= period.div_ceil(2)
    }
}
