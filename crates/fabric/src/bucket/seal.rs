//! The seal of a bucket: its header is authenticated, and the rest is encrypted in place.
//!
//! The nonce names the stream and the number, so it is never used twice with one key. A bucket that is sent again has the same bytes.

use graphmill_raw::failpoint;
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};

use crate::bucket::layout::{BucketHeader, BucketKind, HEADER_BYTES, Refusal, TAG_BYTES};

/// Bytes of the secret of a job.
pub const KEY_BYTES: usize = 16;

/// How the buckets of a job are protected.
#[derive(Debug)]
pub enum BucketSeal {
    /// Encrypted and authenticated: AES-128-GCM.
    Sealed(Box<LessSafeKey>),
    /// A word of the job and a checksum: protects from accidents alone.
    Plain(u64),
}

impl BucketSeal {
    /// Returns the seal of a job with a secret key.
    ///
    /// # Errors
    /// The key has another length.
    pub fn sealed(key: &[u8; KEY_BYTES]) -> Option<Self> {
        let key = UnboundKey::new(&AES_128_GCM, key).ok()?;
        Some(BucketSeal::Sealed(Box::new(LessSafeKey::new(key))))
    }

    /// Draws a key, or a word of a job; returns `None` if the system has no randomness.
    pub fn draw_key(key: &mut [u8]) -> Option<()> {
        SystemRandom::new().fill(key).ok()
    }

    /// Returns a checksum in place of a seal, with a word that no other start of a job has.
    #[must_use]
    pub fn plain(job: u64) -> Self {
        BucketSeal::Plain(job)
    }

    /// Seals a bucket whose header is written; returns false if the cipher refuses it.
    #[must_use]
    pub fn seal(&self, header: &BucketHeader, bucket: &mut [u8]) -> bool {
        let end = bucket.len() - TAG_BYTES;
        let (rest, tag) = bucket.split_at_mut(end);
        match self {
            BucketSeal::Sealed(key) => {
                let (head, body) = rest.split_at_mut(HEADER_BYTES);
                let sealed = key.seal_in_place_separate_tag(nonce(header), Aad::from(&*head), body);
                sealed.is_ok_and(|made| {
                    tag.copy_from_slice(made.as_ref());
                    true
                })
            }
            BucketSeal::Plain(job) => {
                tag.copy_from_slice(&checksum(*job, rest));
                true
            }
        }
    }

    /// Opens a bucket in place.
    ///
    /// # Errors
    /// It is not what was sealed.
    pub fn open(&self, header: &BucketHeader, bucket: &mut [u8]) -> Result<(), Refusal> {
        let is_whole = match self {
            BucketSeal::Sealed(key) => {
                let (head, rest) = bucket.split_at_mut(HEADER_BYTES);
                (key.open_in_place(nonce(header), Aad::from(&*head), rest)).is_ok()
            }
            BucketSeal::Plain(job) => {
                let (rest, tag) = bucket.split_at(bucket.len() - TAG_BYTES);
                failpoint!(OldKeyAccepted: job = &tag.first_chunk().map_or(*job, |job| u64::from_le_bytes(*job)));
                *tag == checksum(*job, rest)
            }
        };
        failpoint!(TagNotChecked: is_whole = true);
        is_whole.then_some(()).ok_or(Refusal::Seal)
    }
}

/// The nonce of a bucket: no two have the same.
fn nonce(header: &BucketHeader) -> Nonce {
    let lane = match header.kind {
        BucketKind::Messages => header.lane,
        // A lane numbers its acknowledgements to each rank.
        BucketKind::Acknowledgement => header.acknowledged.map_or(0, |(lane, _)| lane),
    };
    let mut bytes = [0; NONCE_LEN];
    bytes[..2].copy_from_slice(&(header.from as u16).to_le_bytes());
    bytes[2..4].copy_from_slice(&(header.to as u16).to_le_bytes());
    (bytes[4], bytes[5]) = (header.kind as u8, lane);
    bytes[6..].copy_from_slice(&header.number.to_le_bytes()[..6]);
    Nonce::assume_unique_for_key(bytes)
}

/// The word of the job, the checksum of it and of all bytes, and zeros.
fn checksum(job: u64, bytes: &[u8]) -> [u8; TAG_BYTES] {
    let mut tag = [0; TAG_BYTES];
    tag[..8].copy_from_slice(&job.to_le_bytes());
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&tag[..8]);
    hasher.update(bytes);
    tag[8..12].copy_from_slice(&hasher.finalize().to_le_bytes());
    tag
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::layout::BUCKET_BYTES;

    fn header(number: u64) -> BucketHeader {
        BucketHeader {
            kind: BucketKind::Messages,
            from: 1,
            to: 2,
            number,
            thread: 0,
            lane: 3,
            is_last: false,
            goes_on: false,
            acknowledged: None,
            count: 100,
            part: 0,
            superstep: 0,
            width: 4,
        }
    }

    fn seals() -> [BucketSeal; 2] {
        [
            BucketSeal::sealed(&[7; KEY_BYTES]).unwrap(),
            BucketSeal::plain(7),
        ]
    }

    fn bucket(seal: &BucketSeal, header: &BucketHeader) -> Vec<u8> {
        let mut bucket: Vec<u8> = (0..BUCKET_BYTES).map(|at| at as u8).collect();
        header.write(&mut bucket);
        assert!(seal.seal(header, &mut bucket));
        bucket
    }

    #[test]
    fn sealed_bucket_opens() {
        for seal in seals() {
            let header = header(9);
            let mut bucket = bucket(&seal, &header);
            assert_eq!(BucketHeader::parse(&bucket), Ok(header));
            assert_eq!(seal.open(&header, &mut bucket), Ok(()));
            let body = &bucket[HEADER_BYTES..BUCKET_BYTES - TAG_BYTES];
            assert!(
                body.iter()
                    .zip(HEADER_BYTES..)
                    .all(|(byte, at)| *byte == at as u8)
            );
        }
    }

    #[test]
    fn messages_are_not_readable_without_the_key() {
        let [sealed, plain] = seals().map(|seal| bucket(&seal, &header(0)));
        let body = HEADER_BYTES..BUCKET_BYTES - TAG_BYTES;
        let same = sealed[body.clone()]
            .iter()
            .zip(&plain[body])
            .filter(|(a, b)| a == b);
        assert!(same.count() < 50);
    }

    #[test]
    fn any_changed_bit_is_refused() {
        for seal in seals() {
            let header = header(1);
            let whole = bucket(&seal, &header);
            for at in 0..BUCKET_BYTES {
                let mut changed = whole.clone();
                changed[at] ^= 1 << (at % 8);
                let parsed = BucketHeader::parse(&changed);
                let opened = parsed.and_then(|header| seal.open(&header, &mut changed));
                assert!(opened.is_err(), "byte {at}");
            }
        }
    }

    #[test]
    fn bucket_of_another_job_is_refused() {
        let others = [
            BucketSeal::sealed(&[8; KEY_BYTES]).unwrap(),
            BucketSeal::plain(8),
        ];
        for (seal, other) in seals().iter().zip(&others) {
            let mut bucket = bucket(seal, &header(1));
            assert_eq!(other.open(&header(1), &mut bucket), Err(Refusal::Seal));
        }
    }
}
