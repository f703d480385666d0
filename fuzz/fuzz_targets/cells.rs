//! Blocks and source indices: of any bytes no panic and no number out of range; of any edges what went in.
//!
//! The first byte of an input says which of the three it is for; the rest are its bytes.

#![no_main]

use graphmill_fuzz as _;
use graphmill_graph::{
    BLOCK_EDGES_MAX, BlockEncoder, BlockView, EdgePosition, Group, GroupWalk, SourceIndex,
    SourceIndexBuilder,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    match input {
        [0, offset @ .., _, _, _, _] if offset.len() < 8 => {}
        [0, rest @ ..] => {
            if let Some((offset, bytes)) = rest.split_first_chunk::<8>() {
                block(bytes, i64::from_le_bytes(*offset));
            }
        }
        [1, rest @ ..] => index(rest),
        [2, ratio, bits, rest @ ..] => edges(rest, u32::from(*ratio), u32::from(*bits) % 33),
        _ => {}
    }
});

/// Readers of any block stay in range; where its bitmap has a bit a group, they agree.
fn block(bytes: &[u8], global_offset: i64) {
    let Ok(Some((block, used))) = BlockView::parse(bytes, global_offset) else {
        return;
    };
    assert!(used <= bytes.len());
    assert!((1..=BLOCK_EDGES_MAX).contains(&block.edges()));
    assert!((1..=block.edges()).contains(&block.groups()));
    let destination_bits = bytes[1];
    let in_range = |destination: u32| u64::from(destination) >> destination_bits == 0;

    // What another block left there.
    let (mut scratch, mut sources) = ([u32::MAX; BLOCK_EDGES_MAX], [0; BLOCK_EDGES_MAX]);
    let groups = block.sources(&mut sources);
    assert_eq!(groups, block.groups());
    let sources = &sources[..groups];
    assert!(sources.is_sorted());
    assert!(sources[groups - 1] <= block.last_source_max());
    let distinct = sources.windows(2).all(|pair| pair[0] < pair[1]);

    let mut all = Vec::new();
    block.for_each_edge(&mut scratch, |group, destination, edge| {
        assert!(group < BLOCK_EDGES_MAX && in_range(destination));
        assert_eq!(edge, all.len());
        all.push((group, destination));
    });
    assert_eq!(all.len(), block.edges());

    let mut by_group = vec![Vec::new(); groups];
    block.for_each_group(
        &mut scratch,
        sources,
        |_| true,
        |group, destinations, first| {
            assert!(first + destinations.len() <= block.edges());
            assert!(destinations.iter().copied().all(in_range));
            by_group[group].extend_from_slice(destinations);
        },
    );
    let mut sought = vec![Vec::new(); groups];
    let mut walk = GroupWalk::default();
    for (group, source) in sources.iter().enumerate() {
        let found = block.group_by(&mut walk, Group::Unknown, *source);
        assert!(!distinct || found == Some(group));
        block.edges_of(group, *source, |destination, edge| {
            assert!(edge < block.edges() && in_range(destination));
            sought[group].push(destination);
        });
    }
    // An index may name any group.
    for group in [groups, BLOCK_EDGES_MAX - 1, u32::MAX as usize] {
        block.edges_of(group, 0, |destination, edge| {
            assert!(edge < block.edges() && in_range(destination));
        });
    }
    let bits_at = 16 + ((groups - 1) * usize::from(bytes[2])).div_ceil(8);
    let bitmap = &bytes[bits_at..bits_at + block.edges().div_ceil(64) * 8];
    let set: usize = bitmap.iter().map(|byte| byte.count_ones() as usize).sum();
    let within: usize = (0..block.edges())
        .map(|bit| usize::from(bitmap[bit / 8] >> (bit % 8) & 1))
        .sum();
    if bitmap[0] & 1 == 1 && set == groups && within == groups {
        let mut expected = vec![Vec::new(); groups];
        all.iter()
            .for_each(|&(group, destination)| expected[group].push(destination));
        assert_eq!(by_group, expected);
        assert_eq!(sought, expected);
    }
}

/// Whatever an index is made of, seeks end.
fn index(bytes: &[u8]) {
    // The number of blocks, then the bitmap.
    let Some((blocks, bytes)) = bytes.split_first() else {
        return;
    };
    let (blocks, bitmap) = bytes.split_at((usize::from(*blocks) * 64).min(bytes.len()));
    let Ok(index) = SourceIndex::parse(blocks, bitmap) else {
        return;
    };
    let sources = (0..500).chain(
        bytes
            .as_chunks::<4>()
            .0
            .iter()
            .map(|b| u32::from_le_bytes(*b)),
    );
    for source in sources {
        if let Some(place) = index.seek(source) {
            assert!(place.block < index.blocks());
            assert_eq!(index.offset(place.block).unwrap_or(0), place.offset);
        }
        index.goes_on(source as usize, source);
    }
}

/// Edges that go through blocks and an index are what they were.
fn edges(bytes: &[u8], ratio: u32, bits: u32) {
    // Runs of edges of one source each: hubs over several blocks, and sources with one edge.
    let mask = (1u64 << bits) - 1;
    let (mut source, mut keys) = (0u64, Vec::new());
    for run in bytes.as_chunks::<6>().0 {
        let [delta, delta_high, start @ .., step, count] = *run;
        source += 1 + u64::from(delta) + (u64::from(delta_high) << 14);
        let start = u64::from(u16::from_le_bytes(start)) << 14;
        let count = u64::from(count & 15) << (count >> 4);
        keys.extend((0..count).map(|i| source << 32 | (start + i * u64::from(step)) & mask));
        if keys.len() > 1 << 14 || source >= 1 << 31 {
            return;
        }
    }
    keys.sort_unstable();
    let span = source + 1;
    let (mut data, mut encoder) = (Vec::new(), BlockEncoder::default());
    let (mut blocks, mut bitmap) = (Vec::new(), Vec::new());
    let mut builder = SourceIndexBuilder::default();
    for chunk in keys.chunks(BLOCK_EDGES_MAX) {
        builder.block(chunk, data.len() as u64, &mut blocks);
        encoder.encode(chunk, bits, 5, &mut data);
    }
    if keys.is_empty() {
        return;
    }
    let of_cell = (span, ratio, data.len() as u64);
    builder.finish(of_cell, &mut bitmap);

    let (mut at, mut back) = (0, Vec::new());
    let (mut scratch, mut sources) = ([0; BLOCK_EDGES_MAX], [0; BLOCK_EDGES_MAX]);
    while at < data.len() {
        let (block, used) = BlockView::parse(&data[at..], 5)
            .expect("a block makes sense")
            .expect("a block is whole");
        block.sources(&mut sources);
        block.for_each_edge(&mut scratch, |group, destination, _| {
            back.push(u64::from(sources[group]) << 32 | u64::from(destination));
        });
        at += used;
    }
    assert!(back == keys);

    let index = SourceIndex::parse(&blocks, &bitmap).expect("an index makes sense");
    let mut expected = keys.chunk_by(|a, b| a >> 32 == b >> 32).peekable();
    let asked = keys
        .chunk_by(|a, b| a >> 32 == b >> 32)
        .map(|run| (run[0] >> 32) as u32);
    let (mut walk, mut last) = (GroupWalk::default(), 0);
    for source in asked.flat_map(|source| [source, source + 1]) {
        while expected
            .next_if(|run| run[0] >> 32 < u64::from(source))
            .is_some()
        {}
        let wanted = expected
            .peek()
            .filter(|run| run[0] >> 32 == u64::from(source))
            .copied()
            .unwrap_or(&[]);
        let mut found = Vec::new();
        let mut place = index.seek(source);
        while let Some(EdgePosition {
            block,
            offset,
            group,
        }) = place.take()
        {
            let (view, _) = BlockView::parse(&data[offset as usize..], 5)
                .expect("a block makes sense")
                .expect("a block is whole");
            if block != last {
                last = block;
                walk.restart();
            }
            let Some(group) = view.group_by(&mut walk, group, source) else {
                break;
            };
            view.edges_of(group, source, |destination, _| {
                found.push(u64::from(source) << 32 | u64::from(destination));
            });
            if group + 1 == view.groups() && index.continues(block + 1) {
                place = index.offset(block + 1).map(|offset| EdgePosition {
                    block: block + 1,
                    offset,
                    group: Group::Number(0),
                });
            }
        }
        assert!(found == wanted, "source {source}");
    }
}
