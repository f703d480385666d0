//! Datagrams for a lane: by a stranger, or by a broken rank, which has the right seal.
//!
//! The first byte of an input chooses the width of values. Then each datagram has a byte of options, a length in a byte, and bytes that
//! change a header that is right.

#![no_main]

use std::time::Duration;

use graphmill_fabric::bucket::{
    BUCKET_BYTES, BucketExchange, BucketHeader, BucketKind, BucketLink, BucketSeal, ExchangeShape,
    LocalLink,
};
use graphmill_fuzz as _;
use graphmill_raw::{AlignedBuffer, lock};
use libfuzzer_sys::fuzz_target;

const JOB: u64 = 7;
const SUPERSTEP: u32 = 1;

fuzz_target!(|input: &[u8]| {
    let [options, bytes @ ..] = input else { return };
    let width = if options & 1 == 0 { 4 } else { 3000 };
    let lanes = [1, 2];
    let link = LocalLink::new(&lanes, 64);
    let shape = ExchangeShape {
        rank: 0,
        lanes: lanes.to_vec(),
        workers: 1,
        senders: 1,
        bucket_bytes: BUCKET_BYTES,
        window: 4,
        written_bytes: 0,
    };
    let memory = AlignedBuffer::zeroed(shape.bytes()).expect("memory");
    let exchange = BucketExchange::new(shape, BucketSeal::plain(JOB), link.ports(0, 1, 1), memory);
    let exchange = exchange.expect("memory for all buckets");
    let mut ports = link.ports(1, 1, 2);
    exchange.begin(SUPERSTEP, width);
    let (mut rest, mut number) = (bytes, 0);
    while let [options, length, more @ ..] = rest {
        let (changes, later) = more.split_at(usize::from(*length).min(more.len()));
        rest = later;
        let header = BucketHeader {
            kind: BucketKind::Messages,
            from: 1,
            to: 0,
            number,
            thread: 0,
            lane: 0,
            is_last: false,
            goes_on: false,
            acknowledged: None,
            count: 1,
            part: 0,
            superstep: SUPERSTEP,
            width,
        };
        number += 1;
        let mut datagram = vec![0; BUCKET_BYTES];
        header.write(&mut datagram);
        for (byte, change) in datagram.iter_mut().zip(changes) {
            *byte ^= change;
        }
        match options & 3 {
            0 => datagram.truncate(changes.len()),
            1 => (),
            _ => {
                if let Ok(header) = BucketHeader::parse(&datagram) {
                    let _ = BucketSeal::plain(JOB).seal(&header, &mut datagram);
                }
            }
        }
        let sent = ports.senders[0].send(0, 0, &[&datagram]);
        assert_eq!(sent.ok(), Some(1));
        let mut fold = |messages: &[u8]| {
            assert!(messages.len() <= BUCKET_BYTES.max(4 + width as usize));
            messages.first().is_none_or(|byte| *byte < 200)
        };
        let state = &exchange.state;
        let now = Duration::from_millis(number);
        lock(&exchange.lanes[0])
            .step(state, now, &mut fold)
            .expect("a lane");
        lock(&exchange.senders[0])
            .step(state, now)
            .expect("a sender");
        let _ = exchange.is_complete();
        if options & 4 != 0 {
            exchange.end();
            exchange.begin(SUPERSTEP, width ^ 4);
        }
    }
});
