//! The response of a handler as hyper's service requires it: without an error, with the headers that
//! the connection adds.

use super::disconnect::DisconnectWatch;
use super::request_id::TracedRequest;
use super::watched_body::WatchedBody;
use http::Response;
use http::header::{CONNECTION, HeaderValue};
use http_body::Body;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

pin_project_lite::pin_project! {
    /// The response as hyper's service requires it. An `async` block would be twice as large, and
    /// is moved for every request.
    pub struct InfallibleResponse<F> {
        #[pin]
        pub response: F,
        // Watch over the client of an HTTP/1 connection.
        pub watch: Option<DisconnectWatch>,
        // After `response`, whose drop may log.
        pub traced: Option<Box<TracedRequest>>,
    }

    impl<F> PinnedDrop for InfallibleResponse<F> {
        fn drop(this: Pin<&mut Self>) {
            if let Some(traced) = this.project().traced {
                traced.enter_for_drop();
            }
        }
    }
}

impl<F: Future<Output = Response<B>>, B: Body> Future for InfallibleResponse<F> {
    type Output = std::result::Result<Response<WatchedBody<B>>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let _entered = this.traced.as_ref().map(|traced| traced.enter());
        let mut response = ready!(this.response.poll(cx));
        if this.watch.as_ref().is_some_and(DisconnectWatch::responded) {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        let mut access = None;
        if let Some(traced) = this.traced {
            traced.add_to(response.headers_mut());
            access = traced.take_access();
            if let Some(access) = &mut access {
                access.responded(&response);
            }
            tracing::trace!("response: {}", response.status().as_u16());
        }
        let watch = this.watch.take();
        Poll::Ready(Ok(response.map(|body| WatchedBody::new(body, watch, access))))
    }
}
