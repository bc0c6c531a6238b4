//! The body of a request, used where it lies or read into one block of exactly the size that its header asks for.

use crate::arena::Arena;
use crate::request::buffer::AlignedBuf;
use bytes::Bytes;
use http_body::Body;
use http_body_util::BodyExt;
use std::pin::Pin;
use std::sync::Arc;

/// Why a body could not be had.
#[derive(Debug, PartialEq)]
pub enum Fault {
    /// So many bytes came or were about to come; of an endless body, as many as were read.
    Size(usize),
    /// No room for so many bytes.
    Memory,
    /// The caller went away.
    Broken,
}

/// Reads a body that must have `expected` bytes, into `arena` if there is one. Without one, what came in one piece stays
/// where it is, which may be aligned to nothing. A longer or shorter body is never buffered beyond that.
pub async fn collect<B: Body<Data = Bytes>>(
    mut body: Pin<&mut B>,
    expected: usize,
    arena: Option<&Arc<Arena>>,
) -> Result<Bytes, Fault> {
    if let Some(declared) = body.size_hint().exact()
        && declared != expected as u64
    {
        return Err(Fault::Size(usize::try_from(declared).unwrap_or(usize::MAX)));
    }
    if expected == 0 && body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let mut first = None;
    if arena.is_none()
        && let Some(frame) = body.frame().await
    {
        match frame.map_err(|_| Fault::Broken)?.into_data() {
            Ok(whole) if whole.len() == expected && body.is_end_stream() => return Ok(whole),
            Ok(part) => first = Some(part),
            Err(_) => {}
        }
    }
    // A header may announce more than there is: asking for it must not end the process. Room that nobody
    // fills costs addresses only.
    let block = AlignedBuf::try_for_input(arena, expected).ok_or(Fault::Memory)?;
    fill(first, body, block).await
}

/// Reads what follows `first` of a body that must fill `block`.
async fn fill<B: Body<Data = Bytes>>(
    first: Option<Bytes>,
    mut body: Pin<&mut B>,
    mut block: AlignedBuf,
) -> Result<Bytes, Fault> {
    let mut end = 0;
    let mut next = first;
    loop {
        if let Some(data) = next.take() {
            match block.as_mut().get_mut(end..end + data.len()) {
                Some(place) => place.copy_from_slice(&data),
                None => return Err(Fault::Size(end + data.len())),
            }
            end += data.len();
        }
        let Some(frame) = body.frame().await else { break };
        next = frame.map_err(|_| Fault::Broken)?.into_data().ok();
    }
    if end == block.len() { Ok(block.into_bytes()) } else { Err(Fault::Size(end)) }
}

#[cfg(test)]
#[path = "upload_tests.rs"]
mod tests;
