//! The calls of v1 over HTTP.

use super::infer::{InferRequest, InferResponse, OutgoingRequest};
use super::{Client, RegionCall, Response, check_status};
use crate::error::{Error, Kind, Result};
use crate::message::decode_message;
use crate::percent::encode_path;
use crate::transport::body::Segments;
use crate::transport::http::{HttpExchange, HttpResponse};
use ::http::{HeaderName, HeaderValue, Method};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Instant;
use trtserver_proto::text;
use trtserver_proto::v1::infer_response_header::Output;
use trtserver_proto::v1::{
    InferResponseHeader, ModelRepositoryIndex, RequestStatus, RequestStatusCode, ServerStatus,
    SharedMemoryStatus,
};

const REQUEST: HeaderName = HeaderName::from_static("nv-inferrequest");

impl Client {
    /// The answer is the HTTP status alone.
    pub(super) async fn http_health(&self, mode: &str) -> Result<Response<bool>> {
        let path = format!("/api/health/{mode}");
        let received = self.send(HttpExchange::get(&path, self.deadline_now())).await?;
        let status = read_request_status(&received).unwrap_or_default();
        Ok(Response::new(received.status == 200, status))
    }

    pub(super) async fn http_status(&self, model: Option<&str>) -> Result<Response<ServerStatus>> {
        let path = match model {
            Some(model) => format!("/api/status/{}?format=binary", encode_path(model)),
            None => "/api/status?format=binary".to_owned(),
        };
        let (body, status) =
            self.call("status", HttpExchange::get(&path, self.deadline_now())).await?;
        let value = decode_message(body).map_err(|e| {
            e.map_message(|text| format!("failed to parse server status: {text}"))
                .with_asked(|| self.transport.asked_http(&Method::GET, &path))
        })?;
        Ok(Response::new(value, status))
    }

    pub(super) async fn http_profile(&self, command: &str) -> Result<Response<()>> {
        let path = format!("/api/profile?cmd={command}");
        let exchange = HttpExchange::get(&path, self.deadline_now());
        let (_, status) = self.call("profile", exchange).await?;
        Ok(Response::new((), status))
    }

    pub(super) async fn http_index(&self) -> Result<Response<ModelRepositoryIndex>> {
        let path = "/api/repository/index?format=binary";
        let exchange = HttpExchange::get(path, self.deadline_now());
        let (body, status) = self.call("repository", exchange).await?;
        let value = decode_message(body).map_err(|e| {
            e.map_message(|text| format!("failed to parse model repository index: {text}"))
                .with_asked(|| self.transport.asked_http(&Method::GET, path))
        })?;
        Ok(Response::new(value, status))
    }

    pub(super) async fn http_model_control(&self, model: &str, load: bool) -> Result<Response<()>> {
        let action = if load { "load" } else { "unload" };
        let path = format!("/api/modelcontrol/{action}/{}", encode_path(model));
        let exchange = HttpExchange::post(&path, Segments::default(), self.deadline_now());
        let (_, status) = self.call("modelcontrol", exchange).await?;
        Ok(Response::new((), status))
    }

    pub(super) async fn http_regions(
        &self,
        call: RegionCall<'_>,
    ) -> Result<Response<SharedMemoryStatus>> {
        let mut body = Segments::default();
        let action = match call {
            // The key begins with a slash, so the path has two.
            RegionCall::RegisterSystem { name, key, offset, byte_size } => {
                format!("register/{}/{}/{offset}/{byte_size}", encode_path(name), encode_path(key))
            }
            RegionCall::RegisterCuda { name, raw_handle, byte_size, device_id } => {
                body.put(raw_handle);
                format!("cudaregister/{}/{byte_size}/{device_id}", encode_path(name))
            }
            RegionCall::Unregister { name } => format!("unregister/{}", encode_path(name)),
            RegionCall::UnregisterAll => "unregisterall".to_owned(),
            RegionCall::Status => "status".to_owned(),
        };
        let path = format!("/api/sharedmemorycontrol/{action}?format=binary");
        let is_status = matches!(call, RegionCall::Status);
        let exchange = if is_status {
            HttpExchange::get(&path, self.deadline_now())
        } else {
            HttpExchange::post(&path, body, self.deadline_now())
        };
        let (body, status) = self.call("sharedmemorycontrol", exchange).await?;
        if !is_status {
            return Ok(Response::new(SharedMemoryStatus::default(), status));
        }
        let value = decode_message(body).map_err(|e| {
            e.map_message(|text| format!("failed to parse shared memory status: {text}"))
                .with_asked(|| self.transport.asked_http(&Method::GET, &path))
        })?;
        Ok(Response::new(value, status))
    }

    pub(super) async fn http_infer(
        &self,
        path: &str,
        header: &HeaderValue,
        outgoing: OutgoingRequest<'_>,
        deadline: Option<Instant>,
    ) -> Result<InferResponse> {
        let mut body = Segments::default();
        outgoing.tensors.put(&mut body, |_, _| {});
        let mut exchange = HttpExchange::post(path, body, deadline);
        exchange.content_type = Some("application/octet-stream");
        exchange.headers.insert(REQUEST, header.clone());
        let received = self.send(exchange).await?;
        let asked = || {
            let asked = self.transport.asked_http(&Method::POST, path);
            format!("{asked}, HTTP {}", received.status)
        };
        self.inferred(outgoing.request, &received).map_err(|e| e.with_asked(asked))
    }

    fn inferred(&self, request: &InferRequest, received: &HttpResponse) -> Result<InferResponse> {
        let status = self.status_or_error("infer", received)?;
        let outputs = self
            .described(received)
            .ok_or_else(|| Error::protocol("infer request did not return response header"))?;
        let mut rest = received.body.clone();
        let mut raw = Vec::with_capacity(outputs.output.len());
        for output in &outputs.output {
            let len = match request.is_shared_output(&output.name) {
                true => 0,
                false => raw_len(output, outputs.batch_size),
            };
            if len > rest.len() as u64 {
                return Err(Error::protocol(format!(
                    "output '{}' for model '{}' has {len} bytes by its header, the response has {} left",
                    output.name,
                    request.model,
                    rest.len()
                )));
            }
            raw.push(rest.split_to(len as usize));
        }
        if rest.is_empty() {
            return Err(Error::protocol("infer request did not return result header"));
        }
        let header: InferResponseHeader = decode_message(rest)?;
        if header.output.len() != raw.len() {
            return Err(Error::protocol(format!(
                "the result header for model '{}' has {} outputs, the response header {}",
                request.model,
                header.output.len(),
                raw.len()
            )));
        }
        Ok(InferResponse {
            server_id: status.server_id,
            request_id: status.request_id,
            header,
            outputs: raw,
            timing: Some(received.timing),
        })
    }

    /// The outputs by the response's header, which is parsed only if it differs from that of the
    /// last response.
    fn described(&self, received: &HttpResponse) -> Option<Arc<InferResponseHeader>> {
        let header = received.header("nv-inferresponse")?;
        let mut last = self.described.lock();
        if let Some((text, parsed)) = &*last
            && text == header
        {
            return Some(parsed.clone());
        }
        let parsed: InferResponseHeader = text::parse(header).ok()?;
        if parsed.model_name.is_empty() {
            return None;
        }
        let parsed = Arc::new(parsed);
        *last = Some((header.to_owned(), parsed.clone()));
        Some(parsed)
    }

    /// A call whose success is in its status: the body and the status.
    async fn call(&self, what: &str, exchange: HttpExchange<'_>) -> Result<(Bytes, RequestStatus)> {
        let (method, path) = (exchange.method.clone(), exchange.path);
        let received = self.send(exchange).await?;
        let status = self.status_or_error(what, &received).map_err(|e| {
            e.with_asked(|| {
                let asked = self.transport.asked_http(&method, path);
                format!("{asked}, HTTP {}", received.status)
            })
        })?;
        Ok((received.body, status))
    }

    fn status_or_error(&self, what: &str, received: &HttpResponse) -> Result<RequestStatus> {
        let Some(status) = read_request_status(received) else {
            let text = format!("{what} request did not return status");
            return Err(Error::protocol(text));
        };
        let status = check_status(status)?;
        if received.status == 200 {
            return Ok(status);
        }
        let text = format!("the status is SUCCESS, but HTTP {}", received.status);
        Err(Error::protocol(text).with_server(&status.server_id, status.request_id))
    }

    async fn send(&self, exchange: HttpExchange<'_>) -> Result<HttpResponse> {
        self.transport.exchange(exchange).await.map_err(|e| match e.kind() {
            Kind::InvalidArgument | Kind::Unsupported => e,
            _ => e.map_message(|text| format!("HTTP client failed: {text}")),
        })
    }
}

/// Bytes of a raw output in the body; 0 for classes.
fn raw_len(output: &Output, batch_size: u32) -> u64 {
    let Some(raw) = &output.raw else { return 0 };
    if raw.batch_byte_size > 0 {
        return raw.batch_byte_size;
    }
    // Servers before v0.11 send the size of one item.
    raw.byte_size.saturating_mul(u64::from(batch_size))
}

fn read_request_status(received: &HttpResponse) -> Option<RequestStatus> {
    let header = received.header("nv-status")?;
    if let Some(status) = check_success(header) {
        return Some(status);
    }
    let status: RequestStatus = text::parse(header).ok()?;
    (status.code != 0).then_some(status)
}

/// The status that servers send for success, in the form in which they print it; others are left to
/// the parser.
fn check_success(header: &str) -> Option<RequestStatus> {
    let rest = header.strip_prefix("code: SUCCESS server_id: \"")?;
    let (server_id, rest) = rest.split_once('"')?;
    let request_id = rest.strip_prefix(" request_id: ")?;
    if server_id.contains('\\') || !request_id.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(RequestStatus {
        code: RequestStatusCode::Success.into(),
        msg: String::new(),
        server_id: server_id.to_owned(),
        request_id: request_id.parse().ok()?,
    })
}
