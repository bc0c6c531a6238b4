//! The body of `/generate_stream`: a server-sent event for each response. Responses that the client
//! has not read are limited by bytes (`wire/src/unread`), as on gRPC streams.

use super::response::{self, BodyForm};
use super::responses::Responses;
use bytes::Bytes;
use http::StatusCode;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio_stream::Stream;
use trtserver_base::error::{Error, Result};
use trtserver_request::InferResponse;
use trtserver_wire::chunks::Chunk;
use trtserver_wire::http::collect::StreamConnection;
use trtserver_wire::status_code;

/// An event being written.
type EventFuture = Pin<Box<dyn Future<Output = (Responses, Result<Bytes>)> + Send>>;

/// Response body that turns each response to a generate request into a server-sent event.
pub struct EventBody {
    source: EventSource,
    connection: StreamConnection,
    /// The first event.
    first: Option<Bytes>,
    began: bool,
}

enum EventSource {
    Waiting(Responses),
    Writing(EventFuture),
    Ended,
}

impl EventBody {
    /// Waits for the first response, which decides the status.
    pub async fn begin(responses: Responses, connection: StreamConnection) -> (StatusCode, Self) {
        let source = EventSource::Waiting(responses);
        let mut events = Self { source, connection, first: None, began: false };
        let status = match poll_fn(|cx| events.source.poll_next(cx)).await {
            None => StatusCode::OK,
            Some(Ok(event)) => {
                events.first = Some(event);
                StatusCode::OK
            }
            Some(Err(error)) => {
                events.first = Some(response::error_event(&error.message));
                status_code::to_http_status(error.code)
            }
        };
        (status, events)
    }
}

impl EventSource {
    /// The next event. Nothing follows an error.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        loop {
            match self {
                Self::Waiting(responses) => match ready!(responses.poll_next(cx)) {
                    None => *self = Self::Ended,
                    Some(Err(error)) => return self.fail(error),
                    Some(Ok(response)) => {
                        let Self::Waiting(responses) = std::mem::replace(self, Self::Ended) else {
                            return Poll::Ready(None);
                        };
                        *self = Self::Writing(Box::pin(write(responses, response)));
                    }
                },
                Self::Writing(writing) => match ready!(writing.as_mut().poll(cx)) {
                    (responses, Ok(event)) => {
                        *self = Self::Waiting(responses);
                        return Poll::Ready(Some(Ok(event)));
                    }
                    (_, Err(error)) => return self.fail(error),
                },
                Self::Ended => return Poll::Ready(None),
            }
        }
    }

    /// Ends the stream; if the request is still executed, cancels it.
    fn fail(&mut self, error: Error) -> Poll<Option<Result<Bytes>>> {
        *self = Self::Ended;
        Poll::Ready(Some(Err(error)))
    }
}

async fn write(responses: Responses, response: InferResponse) -> (Responses, Result<Bytes>) {
    let event = response::encode_generate_response(&responses, response, BodyForm::Event).await;
    (responses, event)
}

impl Stream for EventBody {
    type Item = Chunk;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Chunk>> {
        if !self.began {
            self.began = true;
            self.connection.response_began();
        }
        let event = match self.first.take() {
            Some(event) => event,
            None => match ready!(self.source.poll_next(cx)) {
                Some(Ok(event)) => event,
                Some(Err(error)) => response::error_event(&error.message),
                None => {
                    self.connection.response_ended();
                    return Poll::Ready(None);
                }
            },
        };
        Poll::Ready(Some(Chunk::counted(event, self.connection.unread.as_ref())))
    }
}
