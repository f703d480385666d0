//! Graphs of a broken program: a file disagrees with the cells, and all checksums match the file.

#[path = "../../tests/stored/model/mod.rs"]
mod model;

use std::path::Path;
use std::sync::Arc;

use graphmill_storage::{CancelToken, Disk, MemoryBudget, SimDisk, SplitMix64};

use crate::cell::directory::{self, CellSizes, FileRoots};
use crate::codec::varint;
use crate::file::page::{DISK_PAGE_BYTES, FileId, FileKind, FileRoot, FileSide};
use crate::file::page_writer::PagedWriter;
use crate::manifest::{ColumnsMeta, EdgeVertices, IdKind, Manifest};
use crate::open::column_set::ColumnSet;
use crate::open::stored_graph::StoredGraph;
use crate::spec::EdgeKind;
use crate::verify::{verify, verify_deep};
use crate::vertex::degree_pages::{DegreePage, put_degrees};
use crate::vertex::ids::id::VertexId;
use crate::vertex::packed::PAGE_VERTICES;
use crate::vertex::page_index::PageIndex;
use crate::weight_range::WeightRange;
use crate::{FormatError, Verified};
use model::{Model, read};

const GRAPH: &str = "graph";

/// A stored graph whose files are changed, and summed up again.
struct Crafted {
    disk: Arc<dyn Disk>,
    budget: MemoryBudget,
}

impl Crafted {
    fn new(model: &Model) -> Crafted {
        let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(3));
        let budget = MemoryBudget::new(64 << 20);
        model.write(&disk, &budget, Path::new(GRAPH)).unwrap();
        Crafted { disk, budget }
    }
    fn open(&self) -> Result<Arc<StoredGraph>, FormatError> {
        StoredGraph::open(&self.disk, &self.budget, Path::new(GRAPH)).map(Arc::new)
    }
    fn graph(&self) -> Arc<StoredGraph> {
        self.open().unwrap()
    }
    fn verify(&self) -> Result<Verified, FormatError> {
        verify(&self.open()?, &self.budget, &CancelToken::new(), |_| {})
    }
    fn verify_deep(&self) -> Result<Verified, FormatError> {
        verify_deep(&self.open()?, &self.budget, &CancelToken::new(), |_| {})
    }

    /// Changes what `graph.json` says.
    fn meta(&self, change: impl FnOnce(&mut Manifest)) {
        let path = Path::new(GRAPH);
        let (mut meta, _cuts) = Manifest::read(&*self.disk, &self.budget, path).unwrap();
        change(&mut meta);
        meta.write(&*self.disk, &self.budget, path).unwrap();
    }
    /// Changes the bytes of a file, and the roots that lead to it.
    fn payload(&self, id: FileId, change: impl FnOnce(&mut Vec<u8>)) {
        let graph = self.graph();
        let path = id.path(Path::new(GRAPH));
        let mut bytes = self.disk.read_small(&path, 1 << 30).unwrap();
        bytes.truncate(graph.paged(id).unwrap().root.payload as usize);
        change(&mut bytes);
        self.replace(&graph, id, &bytes);
    }
    /// Rewrites a file of the graph, and the roots that lead to it.
    fn replace(&self, graph: &StoredGraph, id: FileId, bytes: &[u8]) {
        let root = self.write(graph, id, bytes);
        let of = |columns: &mut ColumnsMeta| match id.kind {
            FileKind::Directory => columns.directory = root,
            FileKind::Degrees => columns.degrees = root,
            _ => columns.fanout = root,
        };
        match id.kind {
            FileKind::Ids => self.meta(|meta| meta.ids.data = root),
            FileKind::IdsIndex => self.meta(|meta| meta.ids.index = root),
            FileKind::Order => self.meta(|meta| meta.order = Some(root)),
            FileKind::Directory | FileKind::Degrees | FileKind::Fanout => {
                self.meta(|meta| match (id.side, &mut meta.reverse) {
                    (FileSide::Reverse, Some(reverse)) => of(reverse),
                    _ => of(&mut meta.columns),
                });
            }
            kind => {
                let at = FileKind::OF_COLUMNS.iter().position(|one| *one == kind);
                let directory = directory_of(graph.side(id.side).unwrap(), |number, roots| {
                    if number == id.number {
                        roots[at.unwrap()] = root;
                    }
                });
                let id = FileId::new(id.side, FileKind::Directory, 0);
                self.replace(graph, id, &directory);
            }
        }
    }
    fn write(&self, graph: &StoredGraph, id: FileId, bytes: &[u8]) -> FileRoot {
        let seed = graph.graph_id();
        self.disk.remove_file(&id.path(Path::new(GRAPH))).unwrap();
        let mut writer = PagedWriter::new(&*self.disk, &self.budget, seed).unwrap();
        let chunk = DISK_PAGE_BYTES as usize;
        let stream = writer
            .add(&*self.disk, Path::new(GRAPH), id, chunk)
            .unwrap();
        writer.append(stream, bytes).unwrap();
        writer.finish().unwrap()[0]
    }
    /// Changes a table over vertices page by page.
    fn pages(&self, kind: FileKind, side: FileSide, change: impl FnOnce(&mut Vec<(u64, Vec<u8>)>)) {
        let graph = self.graph();
        let set = graph.side(side).unwrap();
        let index = match kind {
            FileKind::Degrees => &set.degree_pages,
            _ => &set.fanout_pages,
        };
        self.payload(FileId::new(side, kind, 0), |bytes| {
            let places = index
                .positions(0..u64::MAX)
                .map(|position| index.at(position));
            let mut pages: Vec<(u64, Vec<u8>)> = places
                .map(|(number, place)| {
                    (
                        number,
                        bytes[place.start as usize..place.end as usize].to_vec(),
                    )
                })
                .collect();
            change(&mut pages);
            bytes.clear();
            pages.iter().for_each(|(_, page)| bytes.extend(page));
            let list: Vec<(u64, u32)> = (pages.iter())
                .map(|(number, page)| (*number, page.len() as u32))
                .collect();
            let position = bytes.len() as u64;
            PageIndex::put(bytes, position, &list);
        });
    }
    fn degrees(&self, side: FileSide, change: impl FnOnce(&mut [u64; PAGE_VERTICES as usize])) {
        self.pages(FileKind::Degrees, side, |pages| {
            let page = DegreePage::parse(&pages[0].1).unwrap();
            let mut degrees = std::array::from_fn(|i| page.get(i));
            change(&mut degrees);
            pages[0].1.clear();
            put_degrees(&mut pages[0].1, &degrees);
        });
    }
}

/// The bytes of a directory whose roots are changed.
fn directory_of(set: &ColumnSet, mut change: impl FnMut(u32, &mut FileRoots)) -> Vec<u8> {
    let mut bytes = Vec::new();
    varint::put(&mut bytes, set.files.len() as u64);
    for number in 0..set.files.len() as u32 {
        let mut roots = FileRoots::default();
        for (root, kind) in roots.iter_mut().zip(FileKind::OF_COLUMNS) {
            let file = set
                .all_files()
                .find(|file| file.id == FileId::new(set.side(), kind, number));
            *root = file.map_or(FileRoot::default(), |file| file.root);
        }
        change(number, &mut roots);
        let columns = || {
            set.columns()
                .iter()
                .enumerate()
                .filter(|(_, column)| column.file() == number)
        };
        let batches = columns().map(|(batch, _)| batch);
        let batches = batches.clone().min().unwrap()..batches.max().unwrap() + 1;
        let cells: Vec<CellSizes> = columns()
            .flat_map(|(batch, column)| column.cells().iter().map(move |cell| (batch, cell)))
            .map(|(batch, cell)| CellSizes {
                destination_batch: batch as u32,
                source_batch: cell.source_batch() as u32,
                edges: cell.edges(),
                data_bytes: cell.data_bytes(),
                bitmap_lines: (cell.bitmap_bytes() / 64) as u32,
            })
            .collect();
        directory::put_file(&mut bytes, &batches, &roots, &cells);
    }
    bytes
}

/// Three batches; some cells have lists of blocks, some bitmaps, and some neither.
fn example() -> Model {
    let mut model = Model::random(1, 900, 300, 20_000);
    model.edges.retain(|edge| edge.0 < 600 || edge.0 % 50 == 0);
    // A source whose edges are in two blocks.
    model
        .edges
        .extend((0..6000).map(|i| (7, i % 300, f64::from(i as u32 % 9))));
    model.edges.sort_by(|a, b| a.partial_cmp(b).unwrap());
    (model.edge, model.reverse, model.csr_ratio) = (EdgeKind::F32, true, 4);
    model.ids = Some((0..900).map(|id| VertexId::Integer(3 * id)).collect());
    model
}

fn forward(kind: FileKind) -> FileId {
    FileId::new(FileSide::Forward, kind, 0)
}

/// Adds to the little-endian number of four bytes at `at`.
fn add(bytes: &mut [u8], at: usize, more: u32) {
    let word: &mut [u8; 4] = bytes[at..at + 4].first_chunk_mut().unwrap();
    *word = u32::from_le_bytes(*word).wrapping_add(more).to_le_bytes();
}

#[test]
fn deep_verify_accepts_graphs_as_written() {
    let mut models = vec![Model::new(vec![0], Vec::new()), example()];
    let mut symmetric = example();
    symmetric.edges = (symmetric.edges.iter())
        .filter(|edge| edge.0 != edge.1)
        .flat_map(|&(s, d, w)| [(s, d, w), (d, s, w)])
        .collect();
    symmetric.edges.sort_by(|a, b| a.partial_cmp(b).unwrap());
    (symmetric.reverse, symmetric.directed) = (false, false);
    models.push(symmetric.clone());
    for edge in [EdgeKind::None, EdgeKind::F64, EdgeKind::Record(13)] {
        let mut model = Model::random(5, 70_000, 9000, 40_000);
        (model.edge, model.reverse, model.file_batches) = (edge, true, 2);
        let text = |id: u64| VertexId::Text(format!("vertex {id:09}").into_bytes());
        model.ids = Some((0..70_000).map(text).collect());
        model.order = Some((0..70_000).map(|rank| (rank * 3 + 1) % 70_000).collect());
        models.push(model);
    }
    for model in models {
        let crafted = Crafted::new(&model);
        if !model.directed {
            // Each edge of the input is stored twice.
            crafted.meta(|meta| meta.input_edges /= 2);
        }
        let seen = crafted.verify().unwrap();
        assert_eq!(crafted.verify_deep().unwrap(), seen);
    }
}

#[test]
fn deep_verify_finds_crafted_damage() {
    type Change = fn(&Crafted);
    let changes: &[(&str, &str, Change)] = &[
        ("a degree", "the degrees of batch 0", |graph| {
            graph.degrees(FileSide::Forward, |degrees| degrees[3] += 1);
        }),
        ("two degrees", "the degrees of batch 0", |graph| {
            graph.degrees(FileSide::Forward, |degrees| degrees.swap(7, 8));
        }),
        (
            "a degree beyond the last vertex",
            "a page of degrees",
            |graph| {
                graph.degrees(FileSide::Forward, |degrees| degrees[901] = 1);
            },
        ),
        (
            "a degree of the reverse",
            "the degrees of batch 2",
            |graph| {
                graph.degrees(FileSide::Reverse, |degrees| degrees[700] += 1);
            },
        ),
        ("no degrees", "the degrees of batch 0", |graph| {
            graph.pages(FileKind::Degrees, FileSide::Forward, Vec::clear);
        }),
        ("no fan-out", "the fan-out of batch 0", |graph| {
            graph.pages(FileKind::Fanout, FileSide::Forward, Vec::clear);
        }),
        ("a batch less in the fan-out", "fan-out", |graph| {
            graph.pages(FileKind::Fanout, FileSide::Forward, |pages| {
                // The last byte of the first chunk, whose form is a bitmap.
                let end = u32::from_le_bytes(*pages[0].1.first_chunk().unwrap()) as usize;
                let byte = pages[0].1[..end]
                    .iter_mut()
                    .rfind(|byte| **byte > 0)
                    .unwrap();
                *byte &= *byte - 1;
            });
        }),
        ("a batch more in the fan-out", "fan-out", |graph| {
            graph.pages(FileKind::Fanout, FileSide::Reverse, |pages| {
                let chunk = 256 + 8 + 1..pages[0].1.len();
                let byte = pages[0].1[chunk]
                    .iter_mut()
                    .find(|byte| **byte < 255)
                    .unwrap();
                *byte |= *byte + 1;
            });
        }),
        (
            "the first source of a block",
            "the list of blocks",
            |graph| {
                graph.payload(forward(FileKind::Index), |bytes| add(bytes, 0, 1));
            },
        ),
        ("sources before a block", "the list of blocks", |graph| {
            graph.payload(forward(FileKind::Index), |bytes| add(bytes, 64 + 4, 1));
        }),
        ("that a block goes on", "the list of blocks", |graph| {
            graph.payload(forward(FileKind::Index), |bytes| bytes[64 + 7] ^= 128);
        }),
        ("where a block is", "the list of blocks", |graph| {
            graph.payload(forward(FileKind::Index), |bytes| add(bytes, 64 + 8, 8));
        }),
        ("a sample", "the list of blocks", |graph| {
            graph.payload(forward(FileKind::Index), |bytes| add(bytes, 20, 1));
        }),
        ("a source less in a bitmap", "the bitmap", |graph| {
            graph.payload(forward(FileKind::Bitmaps), |bytes| {
                let byte = bytes[8..64].iter_mut().find(|byte| **byte > 0).unwrap();
                *byte &= *byte - 1;
            });
        }),
        ("a source more in a bitmap", "the bitmap", |graph| {
            graph.payload(
                FileId::new(FileSide::Reverse, FileKind::Bitmaps, 0),
                |bytes| {
                    let byte = bytes[8..64].iter_mut().find(|byte| **byte < 255).unwrap();
                    *byte |= *byte + 1;
                },
            );
        }),
        ("sources before a line", "the bitmap", |graph| {
            graph.payload(forward(FileKind::Bitmaps), |bytes| add(bytes, 0, 1));
        }),
        ("the block of a line", "the bitmap", |graph| {
            graph.payload(forward(FileKind::Bitmaps), |bytes| add(bytes, 4, 1));
        }),
        ("a wider block", "a block", |graph| {
            // The bits of a destination of a block by the other codec say nothing.
            graph.payload(forward(FileKind::Data), |bytes| bytes[3] ^= 1);
        }),
        ("lower least weight", "records weights", |graph| {
            graph.meta(|meta| {
                let greatest = meta.weights.unwrap().greatest;
                let least = -1.0;
                meta.weights = Some(WeightRange { least, greatest });
            });
        }),
        ("greater greatest weight", "records weights", |graph| {
            graph.meta(|meta| {
                let least = meta.weights.unwrap().least;
                let greatest = 1e6;
                meta.weights = Some(WeightRange { least, greatest });
            });
        }),
        (
            "weights of the reverse",
            "its reverse has other edges",
            |graph| {
                let weights = FileId::new(FileSide::Reverse, FileKind::Weights, 0);
                graph.payload(weights, |bytes| {
                    let (first, rest) = bytes.split_at_mut(4);
                    let mut others = rest.as_chunks::<4>().0.iter();
                    first.copy_from_slice(others.find(|other| **other != *first).unwrap());
                });
            },
        ),
        ("vertices of edges", "one arc in", |graph| {
            let (count, directed) = (0, true);
            graph.meta(|meta| meta.edge_vertices = Some(EdgeVertices { count, directed }));
        }),
        ("edges of the input", "edges were kept", |graph| {
            graph.meta(|meta| meta.input_edges += 1);
        }),
        ("dropped edges", "edges were kept", |graph| {
            graph.meta(|meta| meta.dropped = [("self_loops".into(), 1)].into());
        }),
        ("directions", "stored both ways", |graph| {
            graph.meta(|meta| meta.directed = false);
        }),
        ("the edges of a strip", "its graph id", |graph| {
            graph.meta(|meta| meta.strip_edges_max += 1000);
        }),
        ("the order of a float sum", "its graph id", |graph| {
            graph.meta(|meta| meta.strip_edges_max /= 2);
        }),
        ("the reverse", "its graph id", |graph| {
            graph.meta(|meta| meta.reverse = None);
        }),
        ("kinds of ids", "does not name graph/ids", |graph| {
            graph.meta(|meta| {
                meta.ids.kind = IdKind::Dense;
                (meta.ids.pages, meta.ids.data, meta.ids.index) = Default::default();
            });
        }),
        ("the order of ids", "a page of ids", |graph| {
            // The second id takes one byte: its distance to the first, minus 1.
            graph.payload(forward(FileKind::Ids), |bytes| bytes[16 + 8] = 200);
        }),
        ("a restart", "a page of ids", |graph| {
            graph.payload(forward(FileKind::Ids), |bytes| {
                let end = bytes.len();
                bytes.swap(end - 2, end - 4);
            });
        }),
        ("the first id of a page", "a page of ids", |graph| {
            graph.payload(forward(FileKind::IdsIndex), |bytes| add(bytes, 2, 1));
        }),
    ];
    let mut missed = Vec::new();
    for (what, said, change) in changes {
        let graph = Crafted::new(&example());
        change(&graph);
        let found = (graph.verify(), graph.verify_deep());
        match &found {
            (Ok(_), Err(error)) if error.to_string().contains(said) => (),
            found => missed.push(format!("{what}: {found:?}")),
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn weights_outside_their_range_are_damage() {
    let graph = Crafted::new(&example());
    graph.payload(forward(FileKind::Weights), |bytes| {
        bytes[..4].copy_from_slice(&(-1_f32).to_le_bytes());
    });
    let error = graph.verify().unwrap_err().to_string();
    assert!(error.contains("columns/00000.weights"), "{error}");
    assert!(error.contains("outside the range"), "{error}");
    let graph = Crafted::new(&example());
    graph.payload(forward(FileKind::Weights), |bytes| {
        bytes[..4].copy_from_slice(&f32::NAN.to_le_bytes());
    });
    assert!(graph.verify().is_err());
    let graph = Crafted::new(&example());
    graph.meta(|meta| meta.weights = None);
    let error = graph.verify().unwrap_err().to_string();
    assert!(error.contains("range of weights"), "{error}");
}

#[test]
fn crafted_byte_is_damage_or_harmless() {
    let mut model = example();
    model.order = Some((0..900).map(|rank| (rank * 7) % 900).collect());
    let (graph, told) = (Crafted::new(&model).graph(), model.told());
    // Another id is another name, which nothing contradicts.
    let files = graph
        .all_files()
        .filter(|file| file.id.kind != FileKind::Ids);
    let files: Vec<(FileId, u64)> = files.map(|file| (file.id, file.root.payload)).collect();
    let mut random = SplitMix64::new(9);
    let mut intact = 0;
    for round in 0..300 {
        let (id, payload) = files[round % files.len()];
        if payload == 0 {
            continue;
        }
        let crafted = Crafted::new(&model);
        let (at, bit) = (random.below(payload) as usize, 1 << random.below(8));
        crafted.payload(id, |bytes| bytes[at] ^= bit);
        if crafted.verify_deep().is_ok() {
            intact += 1;
            let found = read(&crafted.disk, &crafted.budget, Path::new(GRAPH)).unwrap();
            assert!(found == told, "byte {at} of {id}, bit {bit}");
        }
    }
    assert!(intact < 30, "{intact} changes were not noticed");
}
