//! gzip and deflate for both wires. Output is drawn from the memory budget before it is produced, so that an expansion is
//! refused when it exceeds its limit, not when memory is exhausted.

use super::decode_workers::{self, MAX_INLINE};
use crate::budget::{self, Exhausted, Purpose, Reservation, request_memory};
use crate::error::Error;
use crate::request::buffer::AlignedBuf;
use bytes::Bytes;
use flate2::Compression;
use flate2::read::{GzEncoder, MultiGzDecoder, ZlibDecoder, ZlibEncoder};
use std::io::{self, Read};
use std::ops::Range;

/// A worker produces at most this many bytes before it serves the next job.
const MAX_STEP: usize = 4 << 20;

/// Output of these sizes is copied into a block of the pool when it is complete. In the heap it would be freed by another thread
/// long after, between live allocations: the trims that return such memory to the system hold the allocator's locks for tens of
/// milliseconds (`heap.rs`). Shorter output is produced on network threads, longer output is mapped by the allocator.
const POOLED: Range<usize> = 2 * MAX_INLINE + 1..4 << 20;

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
    Exhausted(Exhausted),
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

    /// Decompresses `len` bytes of `data` to at most `limit` bytes.
    pub async fn decompress(
        self,
        data: impl Read + Send + 'static,
        len: usize,
        limit: usize,
    ) -> Result<Bytes, CodingError> {
        let output: Box<dyn Read + Send> = match self {
            Coding::Gzip => Box::new(MultiGzDecoder::new(data)),
            Coding::Deflate => Box::new(ZlibDecoder::new(data)),
        };
        Output::new(output, limit, Purpose::Request).read(len <= MAX_INLINE).await
    }

    /// Compresses `len` bytes of `data`.
    pub async fn compress(
        self,
        data: impl Read + Send + 'static,
        len: u64,
    ) -> Result<Bytes, CodingError> {
        let level = Compression::default();
        let output: Box<dyn Read + Send> = match self {
            Coding::Gzip => Box::new(GzEncoder::new(data, level)),
            Coding::Deflate => Box::new(ZlibEncoder::new(data, level)),
        };
        let inline = len <= MAX_INLINE as u64;
        Output::new(output, usize::MAX - 1, Purpose::Response).read(inline).await
    }
}

/// What a coder has produced so far, and the memory that pays for it.
struct Output {
    coder: Box<dyn Read + Send>,
    data: Vec<u8>,
    limit: usize,
    purpose: Purpose,
    reservation: Reservation,
}

enum Progress {
    Complete(Bytes),
    /// `data` is full.
    Full,
}

impl Output {
    fn new(coder: Box<dyn Read + Send>, limit: usize, purpose: Purpose) -> Self {
        let reservation = request_memory().empty(purpose);
        Self { coder, data: Vec::new(), limit, purpose, reservation }
    }

    /// Reads all output. The first [`MAX_INLINE`] bytes are produced on this thread if `inline`, everything else on decode
    /// workers.
    async fn read(mut self, inline: bool) -> Result<Bytes, CodingError> {
        loop {
            if self.data.len() > self.limit {
                return Err(CodingError::TooLong);
            }
            let more = self.reserve().await?;
            let heavy = !inline || self.data.len() + more > 2 * MAX_INLINE;
            let step = decode_workers::run_if(heavy, move || {
                let progress = self.fill(more);
                (self, progress)
            });
            let (output, stepped) = step.await.map_err(CodingError::Failed)?;
            self = output;
            if let Progress::Complete(bytes) = stepped? {
                return Ok(bytes);
            }
        }
    }

    /// Reserves memory for the next step and returns its size. One byte beyond the limit shows that it is exceeded.
    async fn reserve(&mut self) -> Result<usize, CodingError> {
        let len = self.data.len();
        let more = len.clamp(MAX_INLINE, MAX_STEP).min(self.limit + 1 - len);
        // The first bytes are not drawn individually, as those of any small message.
        if len > 0 {
            let missing = (len + more).saturating_sub(self.reservation.bytes());
            self.reservation.grow(missing).await.map_err(CodingError::Exhausted)?;
        }
        Ok(more)
    }

    /// Produces output until `data` has grown by `more` bytes. Growing moves what is there, which takes as long as producing it,
    /// and so is part of the step.
    fn fill(&mut self, more: usize) -> Result<Progress, CodingError> {
        let mut at = self.data.len();
        let grown = self.data.try_reserve_exact(more);
        grown.map_err(|_| CodingError::OutOfMemory(at + more))?;
        self.data.resize(self.data.capacity(), 0);
        while at < self.data.len() {
            match self.coder.read(&mut self.data[at..]) {
                Ok(0) => {
                    self.data.truncate(at);
                    return self.complete().map(Progress::Complete);
                }
                Ok(read) => at += read,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(CodingError::Malformed(e)),
            }
        }
        Ok(Progress::Full)
    }

    /// The output, all of which was produced.
    fn complete(&mut self) -> Result<Bytes, CodingError> {
        if self.data.len() > self.limit {
            return Err(CodingError::TooLong);
        }
        let mut data = std::mem::take(&mut self.data);
        let mut reservation = self.reservation.split(usize::MAX);
        if POOLED.contains(&data.len())
            && let Ok(block) = AlignedBuf::try_copy(None, &[&data], self.purpose)
        {
            return Ok(block.into_bytes());
        }
        data.shrink_to_fit();
        reservation.shrink_to(data.capacity());
        Ok(budget::charged(data, reservation))
    }
}

#[cfg(test)]
#[path = "compression_tests.rs"]
mod tests;
