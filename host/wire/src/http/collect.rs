//! Collects the body of a request, for both generations: zero-copy if it arrives in one piece, else
//! with one copy into an aligned block.

use crate::connections::ConnectionPeer;
use crate::disconnect::DisconnectWatch;
use crate::request_body::{RequestBody, RequestBodyError};
use crate::unread::ConnectionUnread;
use bytes::{Buf, Bytes};
use http_body::Body;
use http_body_util::BodyExt;
use smallvec::SmallVec;
use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use trtserver_base::arena::Arena;
use trtserver_base::budget;
use trtserver_base::budget::{
    BudgetExhaustion, MemoryReservation, ReservationGrowth, SMALL, request_memory,
};
use trtserver_base::ledger::MemoryTag;
use trtserver_request::buffer::{ALIGN, AlignedBuf, AllocError, InputPool, POOLED_INPUT};
use trtserver_request::thread_block::MAX_PIECE;

/// Chunked bodies in more pieces than this are refused if the pieces are small.
pub const MAX_CHUNKS: usize = 1 << 16;

/// A body is drawn from the memory budget in steps of at least this size.
const PAID_STEP: usize = 256 << 10;

/// What is known of a body before it is read.
#[derive(Clone, Copy, Default)]
pub struct BodySpec<'a> {
    /// The announced length, if there is one. It need not be true.
    pub length: Option<u64>,
    /// A longer body is refused as soon as it exceeds this.
    pub limit: u64,
    /// Offset of the byte that is placed at a multiple of [`ALIGN`] when the body is copied.
    pub aligned_at: usize,
    /// The body has tensors: a small one is copied, so that hyper can read the next request into its
    /// buffer while this one is executed, and so that the tensor is aligned.
    pub has_tensors: bool,
    /// Shared memory of an isolated model: the body is copied into it in any case.
    pub arena: Option<&'a Arc<Arena>>,
    /// Memory for a long body of known length, if it has a block at once.
    pub pool: Option<&'a dyn InputPool>,
    /// What the body is entered under in the ledger.
    pub tag: MemoryTag,
}

/// The body of a request.
pub trait ReceivedBody: Body<Data = Bytes, Error: Error + 'static> {
    /// What a streamed response to the request needs of the connection.
    fn connection(&self) -> StreamConnection {
        StreamConnection::default()
    }

    /// The client that sends it.
    fn connection_peer(&self) -> &ConnectionPeer {
        const { &ConnectionPeer::UNKNOWN }
    }
}

impl ReceivedBody for RequestBody {
    fn connection(&self) -> StreamConnection {
        StreamConnection { unread: Some(Arc::clone(self.unread())), watch: self.watch().cloned() }
    }

    fn connection_peer(&self) -> &ConnectionPeer {
        self.connection_peer()
    }
}

/// The connection of a streamed response. Unit tests have none.
#[derive(Default)]
pub struct StreamConnection {
    /// Where its responses are counted.
    pub unread: Option<Arc<ConnectionUnread>>,
    pub watch: Option<DisconnectWatch>,
}

impl StreamConnection {
    /// The first part of a streamed response is sent.
    pub fn response_began(&self) {
        if let Some(watch) = &self.watch {
            watch.response_stream_began();
        }
    }

    /// The last part was sent.
    pub fn response_ended(&self) {
        if let Some(watch) = &self.watch {
            watch.response_stream_ended();
        }
    }
}

#[cfg(any(test, feature = "testing"))]
impl ReceivedBody for http_body_util::Full<Bytes> {}

#[cfg(any(test, feature = "testing"))]
impl ReceivedBody for hyper::body::Incoming {}

#[cfg(any(test, feature = "testing"))]
impl<S> ReceivedBody for http_body_util::StreamBody<S> where
    Self: Body<Data = Bytes, Error: Error + 'static>
{
}

/// Why a body could not be collected.
#[derive(Debug, PartialEq)]
pub enum BodyError {
    /// The body exceeds its limit or its announced length; the number is of the bytes received so
    /// far.
    TooLong(u64),
    /// No memory for the body.
    OutOfMemory(AllocError),
    /// More than [`MAX_CHUNKS`] small pieces.
    TooManyChunks,
    /// The client disconnected.
    Disconnected,
    /// The client sent the body too slowly.
    TimedOut,
}

/// Reads a body to its end. The result may be shorter than announced.
pub async fn collect_body<B: ReceivedBody>(
    mut body: Pin<&mut B>,
    spec: BodySpec<'_>,
) -> Result<Bytes, BodyError> {
    let pad = (ALIGN - spec.aligned_at % ALIGN) % ALIGN;
    let mut pieces: SmallVec<[Bytes; 1]> = SmallVec::new();
    let mut block: Option<AlignedBuf> = None;
    let mut reservation = request_memory().empty(spec.tag);
    let mut total = 0;
    while let Some(piece) = next_piece(body.as_mut()).await? {
        let end = total + piece.len();
        if end as u64 > spec.limit {
            return Err(BodyError::TooLong(end as u64));
        }
        if block.is_none()
            && let Some(length) = spec.length.filter(|length| *length > piece.len() as u64)
        {
            let len = usize::try_from(length).unwrap_or(usize::MAX).saturating_add(pad);
            // Pages that are never written cost address space only. Unless that is limited, the
            // memory is paid for while it is filled: an announced length alone occupies none of the
            // budget.
            if request_memory().counts_address_space() {
                pay(&mut reservation, len).await.map_err(exhausted)?;
            }
            let pool = spec.pool.filter(|_| len >= POOLED_INPUT);
            let pooled = pool.and_then(|pool| AlignedBuf::try_in_pool(pool, len, spec.tag));
            let allocated = pooled.or_else(|| AlignedBuf::try_for_input(spec.arena, len, spec.tag));
            let mut allocated = allocated.ok_or(BodyError::OutOfMemory(AllocError::System(len)))?;
            if let Some(paid) = allocated.reservation() {
                paid.merge(reservation.split(len));
            }
            block = Some(allocated);
        }
        match &mut block {
            Some(block) => {
                if let Some(reservation) = block.reservation() {
                    pay(reservation, pad + end).await.map_err(exhausted)?;
                }
                match block.as_mut().get_mut(pad + total..pad + end) {
                    Some(target) => target.copy_from_slice(&piece),
                    None => return Err(BodyError::TooLong(end as u64)),
                }
            }
            None => {
                if end > SMALL {
                    pay(&mut reservation, end).await.map_err(exhausted)?;
                }
                pieces.push(piece);
                if pieces.len() > MAX_CHUNKS && end < pieces.len() * 1024 {
                    return Err(BodyError::TooManyChunks);
                }
            }
        }
        total = end;
    }
    if let Some(block) = block {
        return Ok(block.into_bytes().slice(pad..pad + total));
    }
    if spec.arena.is_none() && pieces.len() <= 1 {
        let piece = pieces.pop().unwrap_or_default();
        if spec.has_tensors && !piece.is_empty() && pad + piece.len() <= MAX_PIECE {
            let parts = [&[0; ALIGN][..pad], &piece];
            let copy = AlignedBuf::try_copy(None, &parts, spec.tag);
            let mut copy = copy.map_err(BodyError::OutOfMemory)?.into_bytes();
            copy.advance(pad);
            return Ok(copy);
        }
        return Ok(budget::charge_bytes(piece, reservation));
    }
    let mut parts: Vec<&[u8]> = Vec::with_capacity(pieces.len() + 1);
    parts.push(&[0; ALIGN][..pad]);
    parts.extend(pieces.iter().map(|p| p.as_ref()));
    let joined = AlignedBuf::try_copy(spec.arena, &parts, spec.tag);
    Ok(joined.map_err(BodyError::OutOfMemory)?.into_bytes().slice(pad..))
}

/// Lets a reservation grow to at least `bytes`, in steps that are worth one.
fn pay(reservation: &mut MemoryReservation, bytes: usize) -> ReservationGrowth<'_> {
    match bytes.saturating_sub(reservation.bytes()) {
        0 => ReservationGrowth::done(),
        missing => reservation.grow(missing.max(PAID_STEP)),
    }
}

fn exhausted(budget: BudgetExhaustion) -> BodyError {
    BodyError::OutOfMemory(AllocError::Budget(budget))
}

/// Why a body ended before its end.
fn broken_off(error: &(dyn Error + 'static)) -> BodyError {
    match error.downcast_ref() {
        Some(RequestBodyError::TimedOut) => BodyError::TimedOut,
        _ => BodyError::Disconnected,
    }
}

/// The next data frame that is not empty.
async fn next_piece<B: ReceivedBody>(mut body: Pin<&mut B>) -> Result<Option<Bytes>, BodyError> {
    while !body.is_end_stream()
        && let Some(frame) = body.frame().await
    {
        match frame.map_err(|e| broken_off(&e))?.into_data() {
            Ok(data) if !data.is_empty() => return Ok(Some(data)),
            _ => {}
        }
    }
    Ok(None)
}

#[cfg(test)]
#[path = "collect_tests.rs"]
mod tests;
