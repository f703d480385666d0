//! A BVGraph with the default codes, read from front to back (Boldi and Vigna, The WebGraph framework I, section 4).

use std::collections::VecDeque;

/// Lists that a list may copy from, and the shortest interval, as in the graph's properties.
const WINDOW: usize = 7;
const INTERVAL_MIN: u64 = 4;
/// The k of the zeta code of residuals.
const ZETA: u32 = 3;

/// The arcs of a `.graph` file of `vertices` vertices.
pub(crate) fn arcs(graph: &[u8], vertices: u64) -> Vec<(u64, u64)> {
    let mut bits = Bits {
        bytes: graph,
        at: 0,
    };
    let mut window: VecDeque<Vec<u64>> = VecDeque::new();
    let mut arcs = Vec::new();
    for vertex in 0..vertices {
        let list = successors(&mut bits, vertex, &window);
        arcs.extend(list.iter().map(|successor| (vertex, *successor)));
        window.push_front(list);
        window.truncate(WINDOW);
    }
    arcs
}

fn successors(bits: &mut Bits<'_>, vertex: u64, window: &VecDeque<Vec<u64>>) -> Vec<u64> {
    let degree = bits.gamma() as usize;
    let mut list = Vec::with_capacity(degree);
    if degree == 0 {
        return list;
    }
    let reference = bits.unary() as usize;
    if reference > 0 {
        // Blocks of the list referred to are copied and skipped in turn; the rest is copied after an even number of blocks.
        let mut rest = &window[reference - 1][..];
        let blocks = bits.gamma();
        for block in 0..blocks {
            let length = bits.gamma() as usize + usize::from(block > 0);
            let (front, back) = rest.split_at(length);
            if block.is_multiple_of(2) {
                list.extend(front);
            }
            rest = back;
        }
        if blocks.is_multiple_of(2) {
            list.extend(rest);
        }
    }
    if list.len() < degree {
        let mut next = None;
        for _ in 0..bits.gamma() {
            let code = bits.gamma();
            let start = next.map_or_else(|| around(vertex, code), |end: u64| end + 1 + code);
            let end = start + bits.gamma() + INTERVAL_MIN;
            list.extend(start..end);
            next = Some(end);
        }
    }
    let mut last = None;
    while list.len() < degree {
        let code = bits.zeta();
        let residual = last.map_or_else(|| around(vertex, code), |last: u64| last + 1 + code);
        list.push(residual);
        last = Some(residual);
    }
    list.sort_unstable();
    list
}

/// Codes one after the other, the highest bit of a byte first.
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn bit(&mut self) -> u64 {
        let bit = self.bytes[self.at / 8] >> (7 - self.at % 8) & 1;
        self.at += 1;
        bit.into()
    }

    fn bits(&mut self, count: u32) -> u64 {
        (0..count).fold(0, |number, _| number << 1 | self.bit())
    }

    /// The zeros before the next one.
    fn unary(&mut self) -> u32 {
        (0..).find(|_| self.bit() == 1).expect("a one")
    }

    fn gamma(&mut self) -> u64 {
        let count = self.unary();
        (1 << count | self.bits(count)) - 1
    }

    fn zeta(&mut self) -> u64 {
        let low = self.unary() * ZETA;
        let number = self.bits(low + ZETA - 1);
        if number < 1 << low {
            number + (1 << low) - 1
        } else {
            (number << 1 | self.bit()) - 1
        }
    }
}

/// A vertex at a distance to either side of `vertex`: even codes are ahead, odd ones back.
fn around(vertex: u64, code: u64) -> u64 {
    if code.is_multiple_of(2) {
        vertex + code / 2
    } else {
        vertex - code.div_ceil(2)
    }
}
