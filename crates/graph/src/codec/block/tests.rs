use super::encode::BlockEncoder;
use super::group::Group;
use super::layout::{BLOCK_EDGES_MAX, Codec, HEADER};
use super::view::{BlockView, GroupWalk};
use graphmill_storage::SplitMix64;

/// Sorted keys of one block: `sources` source groups of about `edges / sources` edges.
fn keys(
    random: &mut SplitMix64,
    edges: usize,
    sources: u64,
    src_span: u64,
    dst_span: u64,
    local: bool,
) -> Vec<u64> {
    let sources: Vec<u64> = (0..sources).map(|_| random.below(src_span)).collect();
    let mut keys: Vec<u64> = (0..edges)
        .map(|_| {
            let source = sources[random.below(sources.len() as u64) as usize];
            let near = (source + random.below(20)) % dst_span;
            source << 32 | if local { near } else { random.below(dst_span) }
        })
        .collect();
    keys.sort_unstable();
    keys
}

fn decode(view: &BlockView<'_>) -> Vec<u64> {
    let mut scratch = [0; BLOCK_EDGES_MAX];
    let mut sources = [0; BLOCK_EDGES_MAX];
    let groups = view.sources(&mut sources);
    assert_eq!(groups, view.groups());
    let mut found = Vec::new();
    view.for_each_edge(&mut scratch, |group, destination, edge| {
        assert_eq!(edge, found.len());
        found.push(u64::from(sources[group]) << 32 | u64::from(destination));
    });
    let mut by_group = Vec::new();
    view.for_each_group(
        &mut scratch,
        &sources[..groups],
        |_| true,
        |group, destinations, first| {
            assert_eq!(first, by_group.len());
            by_group.extend(
                destinations
                    .iter()
                    .map(|d| u64::from(sources[group]) << 32 | u64::from(*d)),
            );
        },
    );
    assert_eq!(found, by_group);
    let mut sought = Vec::new();
    let mut walk = GroupWalk::default();
    for (group, &source) in sources[..groups].iter().enumerate() {
        for _ in 0..2 {
            let found = view.group_by(&mut walk, Group::Unknown, source);
            assert_eq!((found, walk.looked()), (Some(group), group as u64 + 1));
        }
        assert_eq!(view.group_range(group).start, sought.len());
        view.edges_of(group, source, |destination, edge| {
            assert_eq!(edge, sought.len());
            sought.push(u64::from(source) << 32 | u64::from(destination));
        });
    }
    assert_eq!(found, sought);
    found
}

#[test]
fn block_round_trips_by_every_reader() {
    let mut random = SplitMix64::new(1);
    let mut encoder = BlockEncoder::default();
    let mut seen = [false; 2];
    for round in 0..400u64 {
        let edges = [1, 2, 63, 64, 65, 100, 1000, 4095, 4096][round as usize % 9];
        let dst_bits = (round % 33) as u32;
        let src_bits = random.below(32);
        let src_span = 1 + random.below(1 << src_bits);
        let sources = 1 + random.below(edges as u64);
        let keys = keys(
            &mut random,
            edges,
            sources,
            src_span,
            1 << dst_bits,
            round % 2 == 0,
        );
        let offset = [0, 12_345, -77, 1 << 40, -(1 << 40)][round as usize % 5];
        let mut bytes = vec![9; 3];
        encoder.encode(&keys, dst_bits, offset, &mut bytes);
        let whole = bytes.len();
        bytes.extend_from_slice(&[0xff; 5]);
        for cut in [3, 18, whole - 1] {
            assert!(BlockView::parse(&bytes[3..cut], offset).unwrap().is_none());
        }
        let (view, used) = BlockView::parse(&bytes[3..], offset).unwrap().unwrap();
        assert_eq!(used, whole - 3);
        seen[usize::from(view.codec() == Codec::Gap)] = true;
        assert_eq!(decode(&view), keys, "round {round}");
    }
    assert_eq!(seen, [true, true], "both codecs are tried");
}

#[test]
fn first_edge_is_in_first_group_without_its_bit() {
    let mut bytes = Vec::new();
    let keys: Vec<u64> = (0..70).map(|destination| 3 << 32 | destination).collect();
    BlockEncoder::default().encode(&keys, 9, 0, &mut bytes);
    bytes[HEADER] = 0;
    let (view, _) = BlockView::parse(&bytes, 0).unwrap().unwrap();
    assert_eq!(view.codec(), Codec::Gap);
    let mut scratch = [u32::MAX; BLOCK_EDGES_MAX];
    view.for_each_edge(&mut scratch, |group, destination, edge| {
        assert_eq!((group, destination), (0, edge as u32));
    });
}

#[test]
fn group_beyond_last_edge_is_empty_and_last() {
    let mut bytes = Vec::new();
    BlockEncoder::default().encode(&[5, 6, 7], 9, 0, &mut bytes);
    // One group and three edges: no sources, then the bitmap.
    bytes[HEADER..HEADER + 8].copy_from_slice(&(1u64 << 40).to_le_bytes());
    let (view, _) = BlockView::parse(&bytes, 0).unwrap().unwrap();
    let mut scratch = [0; BLOCK_EDGES_MAX];
    view.for_each_group(
        &mut scratch,
        &[0],
        |_| true,
        |_, destinations, first| assert_eq!((destinations.len(), first), (0, 3)),
    );
}

#[test]
fn block_offsets_at_i64_limits_do_not_overflow() {
    let mut random = SplitMix64::new(4);
    let keys = keys(&mut random, 500, 90, 1000, 1 << 10, true);
    let mut bytes = Vec::new();
    BlockEncoder::default().encode(&keys, 10, 0, &mut bytes);
    for offset in [i64::MIN, i64::MAX] {
        let (view, _) = BlockView::parse(&bytes, offset).unwrap().unwrap();
        assert_eq!(view.codec(), Codec::Gap);
        let mut scratch = [0; BLOCK_EDGES_MAX];
        view.for_each_edge(&mut scratch, |_, destination, _| {
            assert!(destination < 1 << 10)
        });
    }
}

#[test]
fn block_of_any_bytes_stays_in_bounds() {
    let mut random = SplitMix64::new(2);
    let mut encoder = BlockEncoder::default();
    for round in 0..3000 {
        let keys = keys(
            &mut random,
            1 + round % 300,
            40,
            1000,
            1 << 12,
            round % 2 == 0,
        );
        let mut bytes = Vec::new();
        encoder.encode(&keys, 12, 5, &mut bytes);
        for _ in 0..1 + random.below(4) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.next_u64() as u8;
        }
        let Ok(Some((view, used))) = BlockView::parse(&bytes, 5) else {
            continue;
        };
        assert!(used <= bytes.len());
        // What another block left there.
        let mut scratch = [u32::MAX; BLOCK_EDGES_MAX];
        let mut sources = [0; BLOCK_EDGES_MAX];
        let groups = view.sources(&mut sources);
        let bound = 1u64 << view.dst_bits;
        let mut edges = 0;
        view.for_each_edge(&mut scratch, |group, destination, _| {
            assert!(group < BLOCK_EDGES_MAX && u64::from(destination) < bound);
            edges += 1;
        });
        assert!(edges <= BLOCK_EDGES_MAX);
        view.for_each_group(&mut scratch, &sources[..groups], |_| true, |_, _, _| ());
        for group in [0, groups / 2, groups - 1] {
            view.edges_of(group, sources[group], |destination, edge| {
                assert!(u64::from(destination) < bound && edge < BLOCK_EDGES_MAX);
            });
        }
    }
}
