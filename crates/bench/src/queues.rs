//! The message queues of vertices, as vertex-target frameworks have them.

use graphmill_raw::prefetch;

/// Values of a chunk of a list: one chunk takes half a cache line.
const CHUNK_VALUES: usize = 6;

/// The queues of all vertices of a rank.
pub(crate) trait Queues: Sized {
    const NAME: &'static str;
    /// Makes empty queues for vertices that get as many values as `degrees` says.
    fn new(degrees: &[u32]) -> Self;
    /// Starts to load the end of the queue of a vertex.
    fn prefetch(&self, vertex: u32);
    fn push(&mut self, vertex: u32, value: f32);
    /// Adds up the queue of each vertex, and empties it.
    fn gather(&mut self, sums: &mut [f32]);
    fn bytes(&self) -> usize;
}

#[derive(Clone, Copy)]
#[repr(C, align(32))]
struct QueueChunk {
    /// The chunk before this one, from 1 on.
    earlier: u32,
    count: u32,
    values: [f32; CHUNK_VALUES],
}

/// A list of chunks for each vertex.
pub(crate) struct ChunkLists {
    /// The last chunk of each vertex, from 1 on.
    last: Vec<u32>,
    chunks: Vec<QueueChunk>,
}

impl Queues for ChunkLists {
    const NAME: &'static str = "chunk lists";

    fn new(degrees: &[u32]) -> Self {
        let chunks = degrees
            .iter()
            .map(|degree| (*degree as usize).div_ceil(CHUNK_VALUES));
        ChunkLists {
            last: vec![0; degrees.len()],
            chunks: Vec::with_capacity(chunks.sum()),
        }
    }

    #[inline(always)]
    fn prefetch(&self, vertex: u32) {
        prefetch(&self.last, vertex as usize);
    }

    #[inline(always)]
    fn push(&mut self, vertex: u32, value: f32) {
        let last = &mut self.last[vertex as usize];
        let has_room = |chunk: &QueueChunk| (chunk.count as usize) < CHUNK_VALUES;
        match self
            .chunks
            .get_mut((*last as usize).wrapping_sub(1))
            .filter(|chunk| has_room(chunk))
        {
            Some(chunk) => {
                chunk.values[chunk.count as usize] = value;
                chunk.count += 1;
            }
            None => {
                let mut values = [0.0; CHUNK_VALUES];
                values[0] = value;
                self.chunks.push(QueueChunk {
                    earlier: *last,
                    count: 1,
                    values,
                });
                *last = self.chunks.len() as u32;
            }
        }
    }

    fn gather(&mut self, sums: &mut [f32]) {
        /// Vertices whose last chunks are loaded ahead.
        const AHEAD: usize = 16;
        for (vertex, sum) in sums.iter_mut().enumerate() {
            if let Some(last) = self.last.get(vertex + AHEAD) {
                prefetch(&self.chunks, (*last as usize).wrapping_sub(1));
            }
            let mut at = std::mem::take(&mut self.last[vertex]);
            while at > 0 {
                let chunk = &self.chunks[at as usize - 1];
                *sum += chunk.values[..chunk.count as usize].iter().sum::<f32>();
                at = chunk.earlier;
            }
        }
        self.chunks.clear();
    }

    fn bytes(&self) -> usize {
        4 * self.last.len() + size_of::<QueueChunk>() * self.chunks.capacity()
    }
}

/// A slice of one array for each vertex, as long as its in-degree.
pub(crate) struct Slices {
    begins: Vec<u32>,
    ends: Vec<u32>,
    values: Vec<f32>,
}

impl Queues for Slices {
    const NAME: &'static str = "slices by in-degree";

    fn new(degrees: &[u32]) -> Self {
        let mut total = 0;
        let mut begins = Vec::with_capacity(degrees.len());
        for degree in degrees {
            begins.push(total);
            total += degree;
        }
        Slices {
            ends: begins.clone(),
            begins,
            values: vec![0.0; total as usize],
        }
    }

    #[inline(always)]
    fn prefetch(&self, vertex: u32) {
        prefetch(&self.ends, vertex as usize);
    }

    #[inline(always)]
    fn push(&mut self, vertex: u32, value: f32) {
        let end = &mut self.ends[vertex as usize];
        self.values[*end as usize] = value;
        *end += 1;
    }

    fn gather(&mut self, sums: &mut [f32]) {
        for ((sum, begin), end) in sums.iter_mut().zip(&self.begins).zip(&mut self.ends) {
            *sum += self.values[*begin as usize..*end as usize]
                .iter()
                .sum::<f32>();
            *end = *begin;
        }
    }

    fn bytes(&self) -> usize {
        4 * (self.begins.len() + self.ends.len() + self.values.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Queues give back the sum of what was put in, more than once.
    fn check<Q: Queues>() {
        let degrees = [0, 1, 20, 7, 6];
        let mut queues = Q::new(&degrees);
        for round in 1..4 {
            for turn in 0..20 {
                for (vertex, degree) in degrees.iter().enumerate() {
                    if turn < *degree {
                        queues.push(vertex as u32, (round * (turn + 1)) as f32);
                    }
                }
            }
            let mut sums = [0.0; 5];
            queues.gather(&mut sums);
            let wanted = degrees.map(|degree| (round * degree * (degree + 1) / 2) as f32);
            assert_eq!(sums, wanted, "{} in round {round}", Q::NAME);
        }
    }

    #[test]
    fn queues_return_all_values() {
        check::<ChunkLists>();
        check::<Slices>();
    }
}
