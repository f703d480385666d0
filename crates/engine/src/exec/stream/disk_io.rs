//! The service's operations of this rank's disk: reads of chunks, and writes of update chunks.

use std::time::Duration;

use graphmill_fabric::protocol_error;
use graphmill_graph::ChunkPart;
use graphmill_storage::{Buffer, Completion, Operation};

use crate::error::{EngineError, ensure};
use crate::exec::stream::protocol::ChunkHeader;
use crate::exec::stream::service::{
    Arrived, ChunkContent, ChunkService, KEPT, Reading, ServiceState, WRITE,
};
use crate::exec::stream::storage_engine::ChunkRef;
use crate::exec::stream::updates::{self, UpdateId};
use crate::memory::stream::SLOT_HEADER_BYTES;

impl ChunkService<'_> {
    /// Reads a chunk of this rank's storage engine, for a rank that asked for it or for this one.
    pub(super) fn read(
        &self,
        state: &mut ServiceState,
        (batch, chunk, asked_by): (usize, ChunkRef, Option<usize>),
        buffer: Buffer,
    ) -> Result<(), EngineError> {
        let reading = Reading {
            batch,
            chunk,
            asked_by,
            began: self.context.clock.now(),
            end: SLOT_HEADER_BYTES,
            has_more: false,
        };
        match chunk {
            ChunkRef::Arcs(_) => self.read_part(state, reading, ChunkPart::Arcs, buffer),
            ChunkRef::Updates(update) => {
                let file = state.engine.updates()?.file.clone();
                let range = SLOT_HEADER_BYTES..SLOT_HEADER_BYTES + update.bytes;
                let end = range.end;
                let read = Operation::Read {
                    file,
                    offset: update.offset,
                    buffer,
                    range,
                };
                state.submit(Reading { end, ..reading }, read);
                Ok(())
            }
        }
    }

    /// Reads the arcs of a chunk, or their data behind them.
    pub(super) fn read_part(
        &self,
        state: &mut ServiceState,
        reading: Reading,
        part: ChunkPart,
        buffer: Buffer,
    ) -> Result<(), EngineError> {
        let ChunkRef::Arcs(chunk) = reading.chunk else {
            return Err(EngineError::Broken);
        };
        let pages = self.graph.chunk_read(&chunk, part)?;
        let range = reading.end..reading.end + pages.bytes;
        let reading = Reading {
            end: range.end,
            has_more: self.reads_data && part == ChunkPart::Arcs,
            ..reading
        };
        let read = Operation::Read {
            file: pages.file,
            offset: pages.offset,
            buffer,
            range,
        };
        state.submit(reading, read);
        Ok(())
    }

    /// Takes a finished operation of the disk.
    pub(super) fn complete(
        &self,
        state: &mut ServiceState,
        done: Completion,
    ) -> Result<(), EngineError> {
        let bytes = done.result? as u64;
        let buffer = done.buffer.ok_or(EngineError::Broken)?;
        if done.token >= KEPT {
            state.moved[1] += bytes;
            match &mut state.peers {
                Some(peers) if done.token == KEPT => peers.keep.push(buffer),
                _ => state.spare_bins.push(buffer),
            }
            return Ok(());
        }
        state.moved[0] += bytes;
        let reading = state.reading.remove(&done.token);
        let reading = reading.ok_or(EngineError::Broken)?;
        if reading.has_more {
            return self.read_part(state, reading, ChunkPart::Data, buffer);
        }
        let Reading { batch, chunk, .. } = reading;
        if let Some(rank) = reading.asked_by {
            let header = ChunkHeader {
                batch: batch as u32,
                phase: self.fabric_phase(),
                has_chunk: true,
                parts: self.parts(&chunk, &buffer)?,
                service: micros(self.context.clock.now().saturating_sub(reading.began)),
            };
            let peers = state.peers.as_mut().ok_or(EngineError::Broken)?;
            peers.answer_get(rank, header, buffer);
            return Ok(());
        }
        let requests = state.requests.get_mut(&batch);
        let requests = requests.ok_or(EngineError::Broken)?;
        requests.in_flight -= 1;
        requests.arrived.push_back(Arrived {
            batch,
            content: ChunkContent::Own(chunk),
            buffer,
        });
        Ok(())
    }

    /// Checks the pages of a chunk that was read here; returns where it is, and the data of its edges.
    pub(super) fn parts(
        &self,
        chunk: &ChunkRef,
        buffer: &[u8],
    ) -> Result<[[u32; 2]; 2], EngineError> {
        let mut at = SLOT_HEADER_BYTES;
        let chunk = match chunk {
            ChunkRef::Arcs(chunk) => chunk,
            ChunkRef::Updates(update) => {
                return Ok([[at as u32, (at + update.bytes) as u32], [0; 2]]);
            }
        };
        let mut part = |part| -> Result<[u32; 2], EngineError> {
            let read = self.graph.chunk_read(chunk, part)?;
            let range = self
                .graph
                .check_chunk(&read, &buffer[at..at + read.bytes])?;
            let found = [at + range.start, at + range.end].map(|at| at as u32);
            at += read.bytes;
            Ok(found)
        };
        let arcs = part(ChunkPart::Arcs)?;
        Ok(match self.reads_data {
            true => [arcs, part(ChunkPart::Data)?],
            false => [arcs, [0; 2]],
        })
    }

    /// Writes an update chunk to this rank's storage engine.
    pub(super) fn write(
        &self,
        state: &mut ServiceState,
        (batch, bytes, buffer): (usize, usize, Buffer),
        token: u64,
    ) -> Result<(), EngineError> {
        ensure(batch < self.context.batches.len(), protocol_error)?;
        state.write(batch, bytes, buffer, token)
    }
}

/// Returns the microseconds of a time, at most as many as a header holds.
fn micros(time: Duration) -> u32 {
    time.as_micros().try_into().unwrap_or(u32::MAX)
}

impl ServiceState {
    /// Writes a bin to this rank's storage engine between two phases.
    ///
    /// It exchanges the bin's buffer for an empty one.
    pub(crate) fn put_own(
        &mut self,
        batch: usize,
        phase: u64,
        bin: &mut Buffer,
        (count, capacity, width): (usize, usize, usize),
    ) -> Result<(), EngineError> {
        let bytes = updates::seal(bin, UpdateId { batch, phase }, count, capacity, width);
        let spare = self.spare_bins.pop().ok_or(EngineError::Broken)?;
        let buffer = std::mem::replace(bin, spare);
        self.write(batch, bytes, buffer, WRITE)?;
        // Between phases no other operation is on its way.
        let done = self.queue.wait().ok_or(EngineError::Broken)?;
        self.moved[1] += done.result? as u64;
        self.spare_bins.extend(done.buffer);
        Ok(())
    }

    pub(super) fn write(
        &mut self,
        batch: usize,
        bytes: usize,
        buffer: Buffer,
        token: u64,
    ) -> Result<(), EngineError> {
        let updates = self.engine.updates()?;
        let (file, chunk) = (updates.file.clone(), updates.append(batch, bytes)?);
        let write = Operation::Write {
            file,
            offset: chunk.offset,
            buffer,
            range: 0..chunk.bytes,
        };
        self.queue.submit(write, token);
        Ok(())
    }

    pub(super) fn submit(&mut self, reading: Reading, read: Operation) {
        let token = self.next_token;
        self.next_token = (self.next_token + 1) % KEPT;
        self.reading.insert(token, reading);
        self.queue.submit(read, token);
    }
}
