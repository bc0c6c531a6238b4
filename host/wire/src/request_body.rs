//! The body of a request, which notifies its connection.

use super::access_log::AccessCall;
use super::connections::{BodyProgress, CallClass, ConnectionPeer, ConnectionState};
use super::disconnect::DisconnectWatch;
use super::unread::ConnectionUnread;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use trtserver_base::error::Result as OrError;

/// Notifies the connection when it ends or is dropped.
pub struct RequestBody {
    body: Incoming,
    wire: BodyWire,
    unread: Arc<ConnectionUnread>,
    /// `None` unless the request is in the access log.
    logged: Option<Arc<AccessCall>>,
}

enum BodyWire {
    Http1 {
        watch: DisconnectWatch,
        /// The body has arrived.
        arrived: bool,
    },
    Http2(BodyProgress),
}

/// Why the rest of a body will not arrive.
#[derive(Debug)]
pub enum RequestBodyError {
    Transport(hyper::Error),
    /// The client sent it too slowly.
    TimedOut,
    /// The client opened a stream and sent no message.
    NoFirstMessage,
}

impl RequestBody {
    /// A body on HTTP/1.
    pub fn http1(body: Incoming, watch: &DisconnectWatch, unread: &Arc<ConnectionUnread>) -> Self {
        let wire = BodyWire::Http1 { watch: watch.clone(), arrived: false };
        let mut body = Self { body, wire, unread: Arc::clone(unread), logged: None };
        if body.is_end_stream() {
            body.arrived();
        }
        body
    }

    /// A body on HTTP/2, where a stream can be reset on its own.
    pub fn http2(
        body: Incoming,
        state: &Arc<ConnectionState>,
        unread: &Arc<ConnectionUnread>,
    ) -> Self {
        let wire = BodyWire::Http2(BodyProgress::new(Arc::clone(state)));
        Self { body, wire, unread: Arc::clone(unread), logged: None }
    }

    /// The access log wants to know its length.
    pub fn count_for_log(&mut self, call: Arc<AccessCall>) {
        self.logged = Some(call);
    }

    /// Counts the call whose body this is, which holds `bytes`, until its response has ended.
    ///
    /// # Errors
    /// It exceeds a limit of open calls.
    pub fn begin_call(&self, class: CallClass, bytes: usize) -> OrError<()> {
        match &self.wire {
            BodyWire::Http1 { .. } => Ok(()),
            BodyWire::Http2(progress) => progress.begin_call(class, bytes),
        }
    }

    /// Where the responses of the connection are counted.
    pub fn unread(&self) -> &Arc<ConnectionUnread> {
        &self.unread
    }

    /// The client that sends it.
    pub fn connection_peer(&self) -> &ConnectionPeer {
        match &self.wire {
            BodyWire::Http1 { watch, .. } => watch.state().connection_peer(),
            BodyWire::Http2(progress) => progress.connection_peer(),
        }
    }

    /// Detects that the client disconnects while it waits for a response. `None` on HTTP/2, and for
    /// an empty body.
    pub fn watch(&self) -> Option<&DisconnectWatch> {
        match &self.wire {
            BodyWire::Http1 { watch, arrived: false } => Some(watch),
            BodyWire::Http1 { .. } | BodyWire::Http2(_) => None,
        }
    }

    /// The body is a stream of messages, whose client may pause for any time between two of them.
    pub fn allow_pauses(&mut self) {
        if let BodyWire::Http2(progress) = &mut self.wire {
            progress.allow_pauses();
        }
    }

    fn arrived(&mut self) {
        match &mut self.wire {
            BodyWire::Http1 { watch, arrived } => {
                if !std::mem::replace(arrived, true) {
                    watch.state().body_arrived();
                }
            }
            BodyWire::Http2(progress) => progress.ended(),
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = RequestBodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, RequestBodyError>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if let Some(logged) = &self.logged
            && let Poll::Ready(Some(Ok(frame))) = &frame
        {
            logged.received(frame.data_ref().map_or(0, Bytes::len));
        }
        if let (BodyWire::Http1 { watch, arrived: false }, Poll::Pending) = (&self.wire, &frame)
            && watch.state().is_body_late()
        {
            // Later polls get the error, too: the watch stays.
            watch.state().body_arrived();
            return Poll::Ready(Some(Err(RequestBodyError::TimedOut)));
        }
        if self.body.is_end_stream() || matches!(frame, Poll::Ready(None | Some(Err(_)))) {
            self.arrived();
        } else if let BodyWire::Http2(progress) = &mut self.wire {
            match &frame {
                Poll::Pending if progress.waits(cx.waker()) => {
                    return Poll::Ready(Some(Err(match progress.awaits_first_message() {
                        true => RequestBodyError::NoFirstMessage,
                        false => RequestBodyError::TimedOut,
                    })));
                }
                Poll::Ready(Some(Ok(frame))) => {
                    progress.received(frame.data_ref().map_or(&[][..], Bytes::as_ref));
                }
                _ => {}
            }
        }
        frame.map_err(RequestBodyError::Transport)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        self.arrived();
    }
}

impl fmt::Display for RequestBodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Transport(e) => e.fmt(f),
            Self::TimedOut => f.write_str("the request body did not arrive in time"),
            Self::NoFirstMessage => f.write_str(
                "the first message of the stream did not arrive in time (--first-message-timeout-secs)",
            ),
        }
    }
}

impl std::error::Error for RequestBodyError {}
