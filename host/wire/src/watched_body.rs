//! The body of a response whose end the connection waits for.

use super::access_log::AccessEntry;
use super::disconnect::DisconnectWatch;
use bytes::Buf;
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

pin_project_lite::pin_project! {
    /// The body of a response. On HTTP/1 notifies the connection when it is dropped.
    pub struct WatchedBody<B: Body> {
        #[pin]
        body: B,
        watch: Option<DisconnectWatch>,
        // `None` unless the request is in the access log.
        access: Option<Box<AccessEntry>>,
    }

    impl<B: Body> PinnedDrop for WatchedBody<B> {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            if let Some(access) = this.access
                && this.body.is_end_stream()
            {
                access.completed();
            }
            if let Some(watch) = this.watch {
                watch.response_taken();
            }
        }
    }
}

impl<B: Body> WatchedBody<B> {
    pub fn new(body: B, watch: Option<DisconnectWatch>, access: Option<Box<AccessEntry>>) -> Self {
        Self { body, watch, access }
    }
}

impl<B: Body> Body for WatchedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.project();
        let frame = this.body.poll_frame(cx);
        match this.access {
            None => frame,
            Some(access) => {
                let frame = ready!(frame);
                match &frame {
                    None => access.completed(),
                    Some(Ok(frame)) => {
                        access.sent(frame.data_ref().map_or(0, Buf::remaining));
                        if let Some(trailers) = frame.trailers_ref() {
                            access.trailers(trailers);
                        }
                    }
                    Some(Err(_)) => {}
                }
                Poll::Ready(frame)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
