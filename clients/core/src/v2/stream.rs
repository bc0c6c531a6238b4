//! A stream of inference requests and responses over gRPC, for sequences and decoupled models.

use super::encode;
use super::request::InferRequest;
use super::response::InferResponse;
use crate::error::{Error, Kind, Result};
use crate::message::decode;
use crate::transport::grpc::{RpcReceiver, RpcSender};
use trtserver_proto::v2::ModelStreamInferResponse;

/// Both halves of a stream. Dropping the receiver cancels what is outstanding.
pub struct Stream {
    sender: Option<StreamSender>,
    receiver: StreamReceiver,
}

/// Sends requests. When it is dropped, the stream ends after the outstanding responses.
pub struct StreamSender(RpcSender);

/// Receives responses.
pub struct StreamReceiver(RpcReceiver);

impl Stream {
    pub(super) fn new(sender: RpcSender, receiver: RpcReceiver) -> Self {
        Self { sender: Some(StreamSender(sender)), receiver: StreamReceiver(receiver) }
    }

    /// See [`StreamSender::send`].
    pub async fn send(&self, request: &InferRequest) -> Result<()> {
        match &self.sender {
            Some(sender) => sender.send(request).await,
            None => Err(Error::invalid("the stream's requests were closed")
                .asked_of(|| self.receiver.0.asked().to_owned())),
        }
    }

    /// No more requests follow; the outstanding responses still come.
    pub fn close_requests(&mut self) {
        self.sender = None;
    }

    /// See [`StreamReceiver::next`].
    pub async fn next(&mut self) -> Option<Result<InferResponse>> {
        self.receiver.next().await
    }

    /// The sender is `None` after [`close_requests`](Self::close_requests).
    #[must_use]
    pub fn split(self) -> (Option<StreamSender>, StreamReceiver) {
        (self.sender, self.receiver)
    }
}

impl StreamSender {
    /// Queues a request. Requests reach the server in the order in which they are sent.
    ///
    /// # Errors
    /// The request is wrong, or the stream has ended.
    pub async fn send(&self, request: &InferRequest) -> Result<()> {
        request.check()?;
        self.0.send(encode::request(request, true)).await
    }
}

impl StreamReceiver {
    /// The next response; `None` when the stream has ended. An error of one request ([`Error::is_from_server`], with the
    /// request's id in [`Error::id`]) leaves the stream open; after any other error it has ended.
    pub async fn next(&mut self) -> Option<Result<InferResponse>> {
        let message = match self.0.next().await {
            Ok(message) => message?,
            Err(error) => return Some(Err(error)),
        };
        let asked = self.0.asked();
        Some(decode(message).and_then(response).map_err(|e| e.asked_of(|| asked.to_owned())))
    }
}

fn response(message: ModelStreamInferResponse) -> Result<InferResponse> {
    let mut response = encode::response(message.infer_response.unwrap_or_default())?;
    if message.error_message.is_empty() {
        response.check_streamed()?;
        return Ok(response);
    }
    // The code is not sent on streams.
    Err(Error::new(Kind::Unknown, message.error_message)
        .refused_by_server(Kind::Unknown.grpc_code())
        .with_id(response.id))
}
