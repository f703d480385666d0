//! The service's operations of this rank's disk: reads of chunks, and writes of update chunks.

use graphmill_fabric::protocol_error;
use graphmill_storage::{Buffer, Completion, Operation};

use crate::error::{EngineError, ensure};
use crate::exec::stream::protocol::{MessageHeader, MessageKind};
use crate::exec::stream::service::{
    Arrived, ChunkContent, ChunkService, KEPT, Reading, ServiceState,
};
use crate::exec::stream::storage_engine::ChunkRef;
use crate::memory::stream::SLOT_HEADER_BYTES;

impl ChunkService<'_> {
    /// Reads a chunk of this rank's storage engine, for a rank that asked for it or for this one.
    pub(super) fn read(
        &self,
        state: &mut ServiceState,
        (batch, chunk, asked_by): (usize, ChunkRef, Option<usize>),
        buffer: Buffer,
    ) -> Result<(), EngineError> {
        let (file, offset, bytes) = match chunk {
            ChunkRef::Arcs(chunk) => {
                let read = self.chunks.read(&chunk, self.reads_data)?;
                (read.file, read.offset, read.bytes)
            }
            ChunkRef::Updates(update) => {
                let file = state.engine.updates()?.file.handle.clone();
                (file, update.offset, update.bytes)
            }
        };
        let read = Operation::Read {
            file,
            offset,
            buffer,
            range: SLOT_HEADER_BYTES..SLOT_HEADER_BYTES + bytes,
        };
        let reading = Reading {
            batch,
            chunk,
            asked_by,
            began: self.context.clock.now(),
        };
        let token = state.next_token;
        state.next_token = (token + 1) % KEPT;
        state.reading.insert(token, reading);
        state.queue.submit(read, token);
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
        let Reading { batch, chunk, .. } = reading;
        if let Some(rank) = reading.asked_by {
            let peers = state.peers.as_mut().ok_or(EngineError::Broken)?;
            let took = self.context.clock.now().saturating_sub(reading.began);
            let header = MessageHeader {
                parts: self.parts(&chunk, &buffer)?,
                service: took.as_micros().try_into().unwrap_or(u32::MAX),
                ..peers.header(MessageKind::Chunk, batch)
            };
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
        let parts = match chunk {
            ChunkRef::Updates(update) => [0..update.bytes, 0..0],
            ChunkRef::Arcs(chunk) => {
                let read = self.chunks.read(chunk, self.reads_data)?;
                let pages = &buffer[SLOT_HEADER_BYTES..SLOT_HEADER_BYTES + read.bytes];
                self.chunks.check(&read, pages)?
            }
        };
        let in_buffer = |at: usize| (SLOT_HEADER_BYTES + at) as u32;
        Ok(parts.map(|part| [part.start, part.end].map(in_buffer)))
    }

    /// Writes an update chunk to this rank's storage engine.
    pub(super) fn write(
        &self,
        state: &mut ServiceState,
        (batch, bytes, buffer): (usize, usize, Buffer),
        token: u64,
    ) -> Result<(), EngineError> {
        ensure(batch < self.context.batches.len(), protocol_error)?;
        let updates = state.engine.updates()?;
        let chunk = updates.append(batch, bytes)?;
        let write = updates.file.write(chunk.offset, buffer, chunk.bytes);
        state.queue.submit(write, token);
        Ok(())
    }
}
