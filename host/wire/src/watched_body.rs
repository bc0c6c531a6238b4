//! The body of a response whose end the connection waits for.

use super::disconnect::DisconnectWatch;
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};

pin_project_lite::pin_project! {
    /// The body of a response. On HTTP/1 notifies the connection when it is dropped.
    pub struct WatchedBody<B> {
        #[pin]
        body: B,
        watch: Option<DisconnectWatch>,
    }

    impl<B> PinnedDrop for WatchedBody<B> {
        fn drop(this: Pin<&mut Self>) {
            if let Some(watch) = this.project().watch {
                watch.response_taken();
            }
        }
    }
}

impl<B> WatchedBody<B> {
    pub fn new(body: B, watch: Option<DisconnectWatch>) -> Self {
        Self { body, watch }
    }
}

impl<B: Body> Body for WatchedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        self.project().body.poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
