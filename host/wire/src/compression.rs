//! gzip and deflate for both wires. Output is drawn from the memory budget before it is produced,
//! so that an expansion is refused when it exceeds its limit, not when memory is exhausted.

use super::decode_workers::{self, MAX_INLINE};
use bytes::Bytes;
use flate2::Compression;
use flate2::read::{GzEncoder, MultiGzDecoder, ZlibDecoder, ZlibEncoder};
use std::io::{self, Read};
use trtserver_base::budget;
use trtserver_base::budget::{BudgetExhaustion, MemoryReservation, request_memory};
use trtserver_base::error::Error;
use trtserver_base::ledger::MemoryTag;
use trtserver_request::buffer::AlignedBuf;

/// A worker produces at most this many bytes before it serves the next job.
const MAX_STEP: usize = 4 << 20;

/// Longer output is produced in a block of the pool. In the heap it would be freed by another
/// thread long after, between live allocations: the trims that return such memory to the system
/// hold the allocator's locks for tens of milliseconds (`heap.rs`). Shorter output is produced on
/// network threads.
const MAX_HEAP: usize = 2 * MAX_INLINE;

/// A content coding. Deflate is the zlib format, as HTTP defines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    Gzip,
    Deflate,
}

/// Why data was not compressed or decompressed.
#[derive(Debug)]
pub enum CodingError {
    /// The output exceeds its limit.
    TooLong,
    /// The input is malformed.
    Malformed(io::Error),
    /// The memory budget cannot provide the output's bytes.
    Exhausted(BudgetExhaustion),
    /// The system has no memory for this many bytes.
    OutOfMemory(usize),
    Failed(Error),
}

impl CodingError {
    /// The refusal for lack of memory, or an internal error; `None` if the input is at fault.
    pub fn own_fault(&self, what: &str) -> Option<Error> {
        match self {
            Self::TooLong | Self::Malformed(_) => None,
            Self::Exhausted(exhausted) => Some(exhausted.refuse()),
            Self::OutOfMemory(bytes) => Some(budget::out_of_memory(what, *bytes)),
            Self::Failed(error) => Some(error.clone()),
        }
    }
}

impl Coding {
    pub fn name(self) -> &'static str {
        match self {
            Coding::Gzip => "gzip",
            Coding::Deflate => "deflate",
        }
    }

    /// The coding that `data` begins with.
    pub fn detect(data: &[u8]) -> Self {
        if data.starts_with(&[0x1f, 0x8b]) { Coding::Gzip } else { Coding::Deflate }
    }

    /// Decompresses `len` bytes of `data` to at most `limit` bytes, which are entered under `tag`.
    pub async fn decompress(
        self,
        data: impl Read + Send + 'static,
        len: usize,
        limit: usize,
        tag: MemoryTag,
    ) -> Result<Bytes, CodingError> {
        let output: Box<dyn Read + Send> = match self {
            Coding::Gzip => Box::new(MultiGzDecoder::new(data)),
            Coding::Deflate => Box::new(ZlibDecoder::new(data)),
        };
        CoderOutput::new(output, limit, tag).read(len <= MAX_INLINE).await
    }

    /// Compresses `len` bytes of `data`. The output is entered under `tag`.
    pub async fn compress(
        self,
        data: impl Read + Send + 'static,
        len: u64,
        tag: MemoryTag,
    ) -> Result<Bytes, CodingError> {
        self.compress_at(Compression::default(), data, len, tag).await
    }

    /// As [`Coding::compress`], at another level.
    pub async fn compress_at(
        self,
        level: Compression,
        data: impl Read + Send + 'static,
        len: u64,
        tag: MemoryTag,
    ) -> Result<Bytes, CodingError> {
        let output: Box<dyn Read + Send> = match self {
            Coding::Gzip => Box::new(GzEncoder::new(data, level)),
            Coding::Deflate => Box::new(ZlibEncoder::new(data, level)),
        };
        let inline = len <= MAX_INLINE as u64;
        CoderOutput::new(output, usize::MAX - 1, tag).read(inline).await
    }
}

/// What a coder has produced so far, and the memory that pays for it.
struct CoderOutput {
    coder: Box<dyn Read + Send>,
    data: CoderBuffer,
    /// Bytes of `data` that were produced.
    len: usize,
    limit: usize,
    reservation: MemoryReservation,
}

/// What was produced of refused output is unmapped: the pool would keep as much as was refused.
impl Drop for CoderOutput {
    fn drop(&mut self) {
        if let CoderBuffer::Block(block) =
            std::mem::replace(&mut self.data, CoderBuffer::Heap(Vec::new()))
        {
            block.discard();
        }
    }
}

enum CoderBuffer {
    Heap(Vec<u8>),
    Block(AlignedBuf),
}

enum CoderProgress {
    Complete(Bytes),
    /// `data` is full.
    Full,
}

impl CoderOutput {
    fn new(coder: Box<dyn Read + Send>, limit: usize, tag: MemoryTag) -> Self {
        let reservation = request_memory().empty(tag);
        Self { coder, data: CoderBuffer::Heap(Vec::new()), len: 0, limit, reservation }
    }

    /// Reads all output. The first [`MAX_INLINE`] bytes are produced on this thread if `inline`,
    /// everything else on decode workers.
    async fn read(mut self, inline: bool) -> Result<Bytes, CodingError> {
        loop {
            if self.len > self.limit {
                return Err(CodingError::TooLong);
            }
            let more = self.reserve().await?;
            let inline =
                inline && self.len + more <= MAX_HEAP && decode_workers::may_decode_inline();
            let step = decode_workers::run_if(!inline, move || {
                let before = self.len;
                let progress = self.fill(more);
                if inline {
                    decode_workers::spent_inline(self.len - before);
                }
                (self, progress)
            });
            let (output, stepped) = step.await.map_err(CodingError::Failed)?;
            self = output;
            if let CoderProgress::Complete(bytes) = stepped? {
                return Ok(bytes);
            }
        }
    }

    /// Reserves memory for the next step and returns its size. One byte beyond the limit shows that
    /// it is exceeded.
    async fn reserve(&mut self) -> Result<usize, CodingError> {
        let len = self.len;
        let more = len.clamp(MAX_INLINE, MAX_STEP).min(self.limit + 1 - len);
        // The first bytes are not drawn individually, as those of any small message.
        if len > 0 {
            let missing = (len + more).saturating_sub(self.reservation.bytes());
            self.reservation.grow(missing).await.map_err(CodingError::Exhausted)?;
        }
        Ok(more)
    }

    /// Produces `more` bytes of output, or all that is left.
    fn fill(&mut self, more: usize) -> Result<CoderProgress, CodingError> {
        let end = self.len + more;
        let data =
            self.data.grow(end, self.reservation.tag()).ok_or(CodingError::OutOfMemory(end))?;
        while self.len < end {
            match self.coder.read(&mut data[self.len..end]) {
                Ok(0) => return self.complete().map(CoderProgress::Complete),
                Ok(read) => self.len += read,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(CodingError::Malformed(e)),
            }
        }
        Ok(CoderProgress::Full)
    }

    /// The output, all of which was produced.
    fn complete(&mut self) -> Result<Bytes, CodingError> {
        let len = self.len;
        if len > self.limit {
            return Err(CodingError::TooLong);
        }
        let mut reservation = self.reservation.split(usize::MAX);
        reservation.shrink_to(len);
        Ok(match std::mem::replace(&mut self.data, CoderBuffer::Heap(Vec::new())) {
            CoderBuffer::Heap(mut data) => {
                data.truncate(len);
                data.shrink_to_fit();
                budget::charge_bytes(data, reservation)
            }
            CoderBuffer::Block(mut block) => {
                block.resize(len);
                if let Some(paid) = block.reservation() {
                    paid.merge(reservation);
                }
                block.into_bytes().slice(..len)
            }
        })
    }
}

impl CoderBuffer {
    /// Grows to at least `len` bytes and keeps the present ones; `None` if out of memory.
    fn grow(&mut self, len: usize, tag: MemoryTag) -> Option<&mut [u8]> {
        if let Self::Heap(data) = self {
            if len <= MAX_HEAP {
                data.try_reserve_exact(len - data.len()).ok()?;
                data.resize(len, 0);
            } else {
                let mut block = AlignedBuf::try_for_input(None, len, tag)?;
                block.as_mut()[..data.len()].copy_from_slice(data);
                *self = Self::Block(block);
            }
        }
        match self {
            Self::Heap(data) => Some(data),
            Self::Block(block) => (block.len() >= len || block.resize(len)).then(|| block.as_mut()),
        }
    }
}

#[cfg(test)]
#[path = "compression_tests.rs"]
mod tests;
