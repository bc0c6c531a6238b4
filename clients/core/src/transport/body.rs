//! Bodies of requests: slices that are sent one after the other, without being joined.

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Instant;
use tokio::sync::{Semaphore, mpsc};

/// Smaller slices are copied together: cheaper than a write vector, or an HTTP/2 frame, for each.
const COPIED: usize = 4096;

/// A body under construction.
#[derive(Default)]
pub(crate) struct Segments {
    done: VecDeque<Bytes>,
    tail: Vec<u8>,
    len: usize,
}

impl Segments {
    pub fn with_capacity(bytes: usize) -> Self {
        Self { tail: Vec::with_capacity(bytes), ..Self::default() }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn put(&mut self, bytes: &[u8]) {
        self.len += bytes.len();
        self.tail.extend_from_slice(bytes);
    }

    /// Appends a tensor. A large one is not copied.
    pub fn put_shared(&mut self, bytes: &Bytes) {
        if bytes.len() <= COPIED {
            return self.put(bytes);
        }
        self.flush();
        self.len += bytes.len();
        self.done.push_back(bytes.clone());
    }

    fn flush(&mut self) {
        if !self.tail.is_empty() {
            self.done.push_back(std::mem::take(&mut self.tail).into());
        }
    }

    pub fn finish(mut self) -> VecDeque<Bytes> {
        self.flush();
        self.done
    }

    /// As [`finish`](Self::finish), with these bytes written over what begins at `at` in the first
    /// segment.
    pub fn finish_with_prefix(mut self, prefix: &[u8], at: usize) -> VecDeque<Bytes> {
        if self.done.is_empty() {
            self.tail[at..at + prefix.len()].copy_from_slice(prefix);
            return self.finish();
        }
        let mut segments = self.finish();
        if let Some(first) = segments.pop_front() {
            let mut first = first.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&*shared));
            first[at..at + prefix.len()].copy_from_slice(prefix);
            segments.push_front(first.freeze());
        }
        segments
    }

    /// All bytes in one piece.
    pub fn join(self) -> Vec<u8> {
        if self.done.is_empty() {
            return self.tail;
        }
        let mut all = Vec::with_capacity(self.len);
        for segment in self.finish() {
            all.extend_from_slice(&segment);
        }
        all
    }
}

impl From<Vec<u8>> for Segments {
    fn from(bytes: Vec<u8>) -> Self {
        Self { len: bytes.len(), tail: bytes, done: VecDeque::new() }
    }
}

/// The time at which the last segment was taken to be written.
pub(crate) type Sent = Arc<OnceLock<Instant>>;

pub(crate) enum RequestBody {
    Whole {
        segments: VecDeque<Bytes>,
        left: usize,
        sent: Option<Sent>,
    },
    /// The messages of a gRPC stream; ends when its sender is dropped.
    Stream {
        segments: VecDeque<Bytes>,
        messages: mpsc::UnboundedReceiver<VecDeque<Bytes>>,
        backlog: Arc<Semaphore>,
    },
}

/// Messages of a stream that wait for the connection; a sender waits when there are more.
pub(crate) const STREAM_BACKLOG: usize = 64;

impl RequestBody {
    pub fn whole(segments: Segments, sent: Option<Sent>) -> Self {
        let left = segments.len();
        Self::Whole { segments: segments.finish(), left, sent }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole { segments, left, sent } => {
                let segment = segments.pop_front();
                *left -= segment.as_ref().map_or(0, Bytes::len);
                if let (0, Some(sent)) = (*left, sent) {
                    let _ = sent.set(Instant::now());
                }
                Poll::Ready(segment.map(|s| Ok(Frame::data(s))))
            }
            Self::Stream { segments, messages, backlog } => {
                while segments.is_empty() {
                    match ready!(messages.poll_recv(cx)) {
                        Some(message) => *segments = message,
                        None => return Poll::Ready(None),
                    }
                    // A sender that was cancelled while it waited has taken no permit.
                    if backlog.available_permits() < STREAM_BACKLOG {
                        backlog.add_permits(1);
                    }
                }
                Poll::Ready(segments.pop_front().map(|s| Ok(Frame::data(s))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole { segments, .. } if segments.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole { left, .. } => SizeHint::with_exact(*left as u64),
            Self::Stream { .. } => SizeHint::default(),
        }
    }
}
