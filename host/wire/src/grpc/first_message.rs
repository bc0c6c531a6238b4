//! The wait for the first message of a stream.
//!
//! A client may open many streams with a few bytes each. So what a stream needs, queues, buffers
//! and tasks, is made when its first message has arrived; until then it is a small task that holds
//! the body, and a response whose body waits for that task.

use super::body::{MESSAGE, STATUS};
use super::deadline;
use super::unary::{PREFIX, percent_encode};
use crate::http::body::BoxError;
use crate::request_body::RequestBodyError;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use http_body::{Body, Frame};
use std::collections::VecDeque;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use tokio::sync::oneshot;
use tonic::Status;

/// Bytes of a message that arrives in parts that are held before the stream begins; from then on
/// the parts are counted one by one.
const MAX_HELD: usize = 4 << 10;
const MAX_FRAMES: usize = 8;
/// Size of the task that waits.
const MAX_TASK: usize = 1 << 10;

type BeginResult = Result<tonic::body::Body, Status>;

/// The body of the response to a stream: `begin` makes it from the body of the request once the
/// first message, or the end, has arrived. It ends with the status of what came first: the
/// deadline, or the time limit for the first message.
pub fn respond_after_first_message<B, F>(body: B, deadline_ns: u64, begin: F) -> WaitingBody
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    F: FnOnce(BegunBody<B>) -> tonic::body::Body + Send + 'static,
{
    let (to, begun) = oneshot::channel();
    tokio::spawn(small(wait(Box::pin(body), deadline_ns, begin, to)));
    WaitingBody::Waiting(begun)
}

/// The same future, which is small: checked when the server is compiled.
fn small<F>(future: F) -> F {
    const { assert!(size_of::<F>() <= MAX_TASK) };
    future
}

/// The task of a stream until its first message arrives.
async fn wait<B, F>(
    body: Pin<Box<B>>,
    deadline_ns: u64,
    begin: F,
    mut to: oneshot::Sender<BeginResult>,
) where
    B: Body<Data = Bytes, Error: Into<BoxError>>,
    F: FnOnce(BegunBody<B>) -> tonic::body::Body,
{
    let begun = BegunBody { first: VecDeque::new(), end: None, body };
    let mut arrival = pin!(deadline::run_until_deadline(deadline_ns, Arrival(Some(begun))));
    let arrived = tokio::select! {
        arrived = &mut arrival => arrived,
        // The client has reset the stream.
        () = to.closed() => return,
    };
    let _ = to.send(arrived.map(begin));
}

/// A request body of which the first frames were read.
pub struct BegunBody<B> {
    first: VecDeque<Bytes>,
    /// What followed them, if it was not a frame.
    end: Option<Result<(), BoxError>>,
    body: Pin<Box<B>>,
}

impl<B> BegunBody<B> {
    /// The first message has arrived, or as much of it as is held here.
    fn has_message(&self) -> bool {
        let held: usize = self.first.iter().map(Bytes::len).sum();
        let mut prefix = [0; PREFIX];
        for (to, from) in prefix.iter_mut().zip(self.first.iter().flatten()) {
            *to = *from;
        }
        let [_, length @ ..] = prefix;
        let message = PREFIX.saturating_add(u32::from_be_bytes(length) as usize);
        held >= PREFIX && held >= message.min(MAX_HELD) || self.first.len() >= MAX_FRAMES
    }
}

impl<B: Body<Data = Bytes, Error: Into<BoxError>>> Body for BegunBody<B> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(data) = self.first.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        match &mut self.end {
            None => self.body.as_mut().poll_frame(cx).map_err(Into::into),
            Some(end) => Poll::Ready(std::mem::replace(end, Ok(())).err().map(Err)),
        }
    }
}

/// Resolves when the first message has arrived. `None` once it has.
struct Arrival<B>(Option<BegunBody<B>>);

impl<B: Body<Data = Bytes, Error: Into<BoxError>>> Future for Arrival<B> {
    type Output = Result<BegunBody<B>, Status>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        while let Some(begun) = &mut self.0 {
            match ready!(begun.body.as_mut().poll_frame(cx)) {
                Some(Ok(frame)) => {
                    begun.first.extend(frame.into_data().ok().filter(|d| !d.is_empty()))
                }
                Some(Err(e)) => match e.into() {
                    e if is_no_first_message(&e) => {
                        return Poll::Ready(Err(Status::deadline_exceeded(e.to_string())));
                    }
                    e => begun.end = Some(Err(e)),
                },
                None => begun.end = Some(Ok(())),
            }
            if (begun.end.is_some() || begun.has_message())
                && let Some(begun) = self.0.take()
            {
                return Poll::Ready(Ok(begun));
            }
        }
        Poll::Pending
    }
}

fn is_no_first_message(error: &BoxError) -> bool {
    matches!(error.downcast_ref(), Some(RequestBodyError::NoFirstMessage))
}

/// See [`respond_after_first_message`].
pub enum WaitingBody {
    Waiting(oneshot::Receiver<BeginResult>),
    Begun(tonic::body::Body),
    Ended,
}

impl Body for WaitingBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        loop {
            let failed = match &mut *self {
                Self::Begun(body) => return Pin::new(body).poll_frame(cx),
                Self::Ended => return Poll::Ready(None),
                Self::Waiting(begun) => match ready!(Pin::new(begun).poll(cx)) {
                    Ok(Ok(body)) => {
                        *self = Self::Begun(body);
                        continue;
                    }
                    Ok(Err(status)) => status,
                    Err(_) => Status::internal("the server has ended the stream"),
                },
            };
            *self = Self::Ended;
            return Poll::Ready(Some(Ok(Frame::trailers(trailers(&failed)))));
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Waiting(_) => false,
            Self::Begun(body) => body.is_end_stream(),
            Self::Ended => true,
        }
    }
}

fn trailers(status: &Status) -> HeaderMap {
    let mut trailers = HeaderMap::with_capacity(2);
    trailers.insert(STATUS, HeaderValue::from(status.code() as i32));
    if let Ok(message) = HeaderValue::from_str(&percent_encode(status.message())) {
        trailers.insert(MESSAGE, message);
    }
    trailers
}

#[cfg(test)]
#[path = "first_message_tests.rs"]
mod tests;
