//! InferStream, the stream of the builds of mid-2018 (docs/protocol/v1.md §2.6). A request is a
//! header and then its tensors in messages of their own, in pieces of any size; a response is a
//! header and then a message for each of its outputs.
//!
//! What follows is StreamInfer's: requests enter the queues in the order of their arrival,
//! responses are sent in that order.

use super::stream::{self, ResponseStream};
use crate::legacy;
use crate::legacy::WithLegacy;
use crate::request;
use crate::request::RequestedVersion;
use bytes::{Buf, BufMut, Bytes};
use http::{Request, Response};
use prost::DecodeError;
use prost::Message;
use prost::encoding::{self, DecodeContext, WireType};
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll, ready};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::Status;
use trtserver_base::error::{Error, Result};
use trtserver_base::ledger::LedgerHolder;
use trtserver_proto::schema::{self, Described};
use trtserver_proto::v1::{InferRequest, InferRequestStream, InferResponse};
use trtserver_request::buffer::AlignedBuf;
use trtserver_wire::context::FrontendContext;
use trtserver_wire::decode_workers;
use trtserver_wire::decode_workers::MAX_INLINE;
use trtserver_wire::grpc::body::GrpcBody;
use trtserver_wire::grpc::stream_messages::{StreamBody, StreamDecoding};
use trtserver_wire::grpc::stream_response;
use trtserver_wire::grpc::unary;
use trtserver_wire::grpc::unary::MessageLimits;
use trtserver_wire::status_code::to_grpc_status;
use trtserver_wire::trace_context::read_trace_context;
use trtserver_wire::unread::ConnectionUnread;

/// Serves `/nvidia.inferenceserver.GRPCService/InferStream`.
pub fn infer_stream(
    ctx: &Arc<FrontendContext>,
    request: Request<impl StreamBody>,
    unread: Arc<ConnectionUnread>,
) -> Response<GrpcBody> {
    let ctx_of_stream = Arc::clone(ctx);
    let trace_context = read_trace_context(request.headers());
    stream_response::respond_with_stream(
        ctx,
        request,
        StreamDecoding::without_conversion(RAW_INPUT),
        move |parts, deadline_ns| {
            let ctx = ctx_of_stream;
            let (sender, requests) = mpsc::channel(1);
            tokio::spawn(assemble(Arc::clone(&ctx), parts, sender));
            let requests = ReceiverStream::new(requests);
            let responses =
                stream::answer_in_order(&ctx, requests, (deadline_ns, trace_context), unread);
            ResponseParts { responses, parts: VecDeque::new() }
        },
    )
}

/// `InferRequestStream`, in the forms of that time (see [`legacy`]).
#[derive(Debug, Default)]
struct RequestPart {
    header: Option<InferRequest>,
    raw_input: Option<Bytes>,
}

/// An input in more pieces is refused: each has a cost of its own.
const MAX_PIECES: usize = 1 << 16;

/// Number of `raw_input` in `InferRequestStream`.
const RAW_INPUT: u32 = 2;

impl Message for RequestPart {
    fn encode_raw(&self, _: &mut impl BufMut) {}

    fn encoded_len(&self) -> usize {
        0
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        match tag {
            1 => {
                let mut header = WithLegacy(self.header.take().unwrap_or_default());
                encoding::message::merge(wire, &mut header, buf, ctx)?;
                self.header = Some(header.0);
                Ok(())
            }
            RAW_INPUT => {
                let raw = self.raw_input.get_or_insert_default();
                encoding::bytes::merge(wire, raw, buf, ctx)
            }
            _ => encoding::skip_field(wire, tag, buf, ctx),
        }
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Described for RequestPart {
    fn schema() -> &'static schema::MessageSchema {
        InferRequestStream::schema()
    }
}

/// Sends the requests that the parts make up. One that the client does not complete is sent as it
/// is, to be refused.
async fn assemble(
    ctx: Arc<FrontendContext>,
    mut parts: impl Stream<Item = Result<RequestPart, Status>> + Unpin,
    requests: mpsc::Sender<Result<InferRequest, Status>>,
) {
    let mut open: Option<Assembly> = None;
    loop {
        let part = tokio::select! {
            part = parts.next() => part,
            () = requests.closed() => return,
        };
        let (ended, done) = match part {
            None => {
                (true, open.take().into_iter().map(|incomplete| Ok(incomplete.request)).collect())
            }
            Some(Err(status)) => (true, vec![Err(status)]),
            Some(Ok(part)) => match take(&ctx, &mut open, part).await {
                Ok(requests) => (false, requests.into_iter().map(Ok).collect()),
                Err(status) => (true, vec![Err(status)]),
            },
        };
        for request in done {
            if requests.send(request).await.is_err() {
                return;
            }
        }
        if ended {
            return;
        }
    }
}

/// Adds a part to the open request. Returns the requests that are complete, or that a new header
/// leaves incomplete.
async fn take(
    ctx: &FrontendContext,
    open: &mut Option<Assembly>,
    part: RequestPart,
) -> Result<Vec<InferRequest>, Status> {
    let mut requests = Vec::new();
    let mut data = part.raw_input.unwrap_or_default();
    if let Some(header) = part.header {
        requests.extend(open.take().map(|incomplete| incomplete.request));
        *open = Some(Assembly::begin(ctx, header)?);
    }
    // Without an open request it is the data of one that was refused.
    if let Some(assembly) = open {
        assembly.push(&mut data).await?;
        if assembly.missing.is_empty() {
            requests.extend(open.take().map(|complete| complete.request));
        }
    }
    Ok(requests)
}

/// A request whose header was received.
struct Assembly {
    request: InferRequest,
    /// Sizes of the inputs that are not complete.
    missing: VecDeque<usize>,
    /// Data of the first of them.
    pieces: Vec<Bytes>,
    received: usize,
}

impl Assembly {
    /// A request that is refused because of its header has no inputs to wait for.
    fn begin(ctx: &FrontendContext, request: InferRequest) -> Result<Self, Status> {
        let missing = sizes(ctx, &request).unwrap_or_default();
        let total = missing.iter().fold(0usize, |sum, size| sum.saturating_add(*size));
        let limit = MessageLimits::from_settings(&ctx.settings).message;
        if total > limit {
            return Err(unary::too_long(total, limit));
        }
        Ok(Self { request, missing, pieces: Vec::new(), received: 0 })
    }

    /// Adds the next bytes of the inputs. What exceeds the last one is added as another input,
    /// which is refused.
    async fn push(&mut self, data: &mut Bytes) -> Result<(), Status> {
        while let Some(size) = self.missing.front().copied() {
            let piece = data.split_to(data.len().min(size - self.received));
            self.received += piece.len();
            if !piece.is_empty() {
                self.pieces.push(piece);
            }
            if self.received < size {
                return match self.pieces.len() {
                    ..MAX_PIECES => Ok(()),
                    n => {
                        Err(Status::resource_exhausted(format!("an input in more than {n} pieces")))
                    }
                };
            }
            let input =
                joined(std::mem::take(&mut self.pieces), size).await.map_err(to_grpc_status)?;
            self.request.raw_input.push(input);
            self.missing.pop_front();
            self.received = 0;
        }
        if !data.is_empty() {
            self.request.raw_input.push(std::mem::take(data));
        }
        Ok(())
    }
}

/// Sizes of the inputs that a request sends.
fn sizes(ctx: &FrontendContext, request: &InferRequest) -> Result<VecDeque<usize>> {
    let version = RequestedVersion::from_number(request.model_version);
    ctx.check_model(&request.model_name)?;
    let served = request::find_version(&ctx.models, &request.model_name, version)?;
    let header = request.meta_data.as_ref();
    let header = header.ok_or_else(|| Error::invalid("the request has no header"))?;
    let plan = request::plan_request(&served.signature, header)?;
    Ok(plan.sent().map(|input| input.bytes).collect())
}

async fn joined(mut pieces: Vec<Bytes>, size: usize) -> Result<Bytes> {
    if pieces.len() <= 1 {
        return Ok(pieces.pop().unwrap_or_default());
    }
    let join = move || {
        let pieces: Vec<&[u8]> = pieces.iter().map(AsRef::as_ref).collect();
        AlignedBuf::try_copy(None, &pieces, LedgerHolder::Input)
    };
    let joined = decode_workers::run_if(size > MAX_INLINE, join).await?;
    Ok(joined.map_err(|e| e.refuse("an input of a stream"))?.into_bytes())
}

/// `InferResponseStream`.
#[derive(Clone, PartialEq, Message)]
struct ResponsePart {
    #[prost(message, optional, tag = "1")]
    response_header: Option<legacy::LegacyResponse>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    raw_output: Option<Bytes>,
}

/// Responses as the messages that they are sent in.
struct ResponseParts {
    responses: ResponseStream,
    /// Parts of the current response that were not sent yet.
    parts: VecDeque<ResponsePart>,
}

impl Stream for ResponseParts {
    type Item = Result<ResponsePart, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(part) = self.parts.pop_front() {
                return Poll::Ready(Some(Ok(part)));
            }
            match ready!(self.responses.as_mut().poll_next(cx)) {
                Some(Ok(response)) => self.parts = split(response),
                Some(Err(status)) => return Poll::Ready(Some(Err(status))),
                None => return Poll::Ready(None),
            }
        }
    }
}

fn split(response: InferResponse) -> VecDeque<ResponsePart> {
    let InferResponse { request_status, meta_data, raw_output } = response;
    let meta_data = meta_data.map(legacy::LegacyHeader::new);
    let header = legacy::LegacyResponse { request_status, meta_data };
    let header = ResponsePart { response_header: Some(header), raw_output: None };
    let raw = |raw| ResponsePart { response_header: None, raw_output: Some(raw) };
    std::iter::once(header).chain(raw_output.into_iter().map(raw)).collect()
}
