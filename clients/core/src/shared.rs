//! What the clients of both protocol generations have in common, as macros: their types differ,
//! their text does not.

/// Methods of an async client with the fields `transport`, `deadline` and `load_deadline`.
macro_rules! client_methods {
    () => {
        /// The same client with another deadline for every call.
        #[must_use]
        pub fn with_deadline(&self, deadline: Option<std::time::Duration>) -> Self {
            Self { deadline, load_deadline: deadline, ..self.clone() }
        }

        /// The same client with the deadline of calls that load or unload a model.
        pub(crate) fn loading(&self) -> Self {
            Self { deadline: self.load_deadline, ..self.clone() }
        }

        /// The server as errors name it.
        #[must_use]
        pub fn url(&self) -> &str {
            &self.transport.address.shown
        }

        /// The wire.
        #[must_use]
        pub fn protocol(&self) -> crate::Protocol {
            self.transport.protocol()
        }

        /// Ends every connection, also in the middle of a request.
        pub fn close_connections(&self) {
            self.transport.abort();
        }

        /// Waits until no connection reads borrowed memory any more; ends connections that hold on
        /// to it.
        pub async fn settle(&self, borrow: &crate::Borrow) {
            self.transport.settle(borrow).await;
        }

        pub(crate) fn deadline_now(&self) -> Option<std::time::Instant> {
            crate::transport::deadline_after(self.deadline)
        }
    };
}

/// Methods of a blocking client with the fields `driver` and `inner`, whose type is given.
macro_rules! blocking_methods {
    ($client:ty) => {
        /// The server as errors name it.
        #[must_use]
        pub fn url(&self) -> &str {
            self.inner.url()
        }

        /// The wire.
        #[must_use]
        pub fn protocol(&self) -> crate::Protocol {
            self.inner.protocol()
        }

        /// Runs any call with the usual deadline: `client.call(async |c| c.is_ready().await)`.
        pub fn call<T>(
            &self,
            call: impl AsyncFnOnce($client) -> crate::Result<T>,
        ) -> crate::Result<T> {
            self.driver.run_in_runtime(call(self.inner.clone()))
        }

        /// Runs any call with a deadline of its own:
        /// `client.within(limit, async |c| c.is_ready().await)`.
        pub fn within<T>(
            &self,
            deadline: Option<std::time::Duration>,
            call: impl AsyncFnOnce($client) -> crate::Result<T>,
        ) -> crate::Result<T> {
            self.driver.run_in_runtime(call(self.inner.with_deadline(deadline)))
        }
    };
}

/// The halves of a stream, with their requests and responses, and the functions that encode and
/// receive them.
macro_rules! stream_types {
    ($request:ty, $response:ty, $encode:expr, $receive:expr) => {
        /// Both halves of a stream. Dropping the receiver cancels what is outstanding.
        pub struct Stream {
            sender: Option<StreamSender>,
            receiver: StreamReceiver,
        }

        /// Sends requests. When it is dropped, the stream ends after the outstanding responses.
        pub struct StreamSender(crate::transport::grpc::RpcSender);

        /// Receives responses.
        pub struct StreamReceiver(crate::transport::grpc::RpcReceiver);

        impl Stream {
            pub(super) fn new(
                sender: crate::transport::grpc::RpcSender,
                receiver: crate::transport::grpc::RpcReceiver,
            ) -> Self {
                Self { sender: Some(StreamSender(sender)), receiver: StreamReceiver(receiver) }
            }

            /// See [`StreamSender::send`].
            pub async fn send(&self, request: &$request) -> crate::Result<()> {
                match &self.sender {
                    Some(sender) => sender.send(request).await,
                    None => Err(crate::Error::invalid("the stream's requests were closed")
                        .with_asked(|| self.receiver.0.asked().to_owned())),
                }
            }

            /// No more requests follow; the outstanding responses still come.
            pub fn close_requests(&mut self) {
                self.sender = None;
            }

            /// See [`StreamReceiver::next`].
            pub async fn next(&mut self) -> Option<crate::Result<$response>> {
                self.receiver.next().await
            }

            /// The sender is `None` after [`close_requests`](Self::close_requests).
            #[must_use]
            pub fn split(self) -> (Option<StreamSender>, StreamReceiver) {
                (self.sender, self.receiver)
            }
        }

        impl StreamSender {
            /// Queues a request. Requests reach the server in the order in which they are sent;
            /// responses are told apart by the request's id.
            ///
            /// # Errors
            /// The request is wrong, or the stream has ended.
            pub async fn send(&self, request: &$request) -> crate::Result<()> {
                request.check()?;
                self.0.send($encode(request)).await
            }
        }

        impl StreamReceiver {
            /// The next response; `None` when the stream has ended. An error of one request
            /// ([`is_from_server`](crate::Error::is_from_server), with the request's
            /// [`id`](crate::Error::id)) leaves the stream open; after any other error it has
            /// ended.
            pub async fn next(&mut self) -> Option<crate::Result<$response>> {
                let response = $receive(self.0.next().await).transpose()?;
                let asked = self.0.asked();
                Some(response.map_err(|e: crate::Error| e.with_asked(|| asked.to_owned())))
            }
        }
    };
}

pub(crate) use {blocking_methods, client_methods, stream_types};
