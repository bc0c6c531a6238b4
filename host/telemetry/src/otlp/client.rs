//! Sends one batch to a collector, over HTTP or gRPC, and reads the answer.
//!
//! gRPC is one request of HTTP/2 whose body is a message behind five bytes, and whose status comes
//! behind the body, so both wires share a client.

use super::messages::ExportTraceServiceResponse;
use crate::settings::{ExporterSettings, OtlpProtocol};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
    RETRY_AFTER, TE,
};
use http::{Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use prost::Message;
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, Url};
use smallvec::SmallVec;
use std::fs;
use std::io::{self, Write};
use std::time::Duration;
use tokio::time::timeout;
use trtserver_base::telemetry_stats::ExportFailure;

const SERVICE_PATH: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
/// A longer answer is not read to its end.
const MAX_ANSWER: usize = 64 << 10;
/// A longer text of a collector is cut.
const MAX_TEXT: usize = 200;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Flag byte and length before a message over gRPC.
pub const GRPC_PREFIX: usize = 5;

/// Sends requests to one collector.
pub struct OtlpClient {
    client: Client,
    url: Url,
    protocol: OtlpProtocol,
    headers: HeaderMap,
    timeout: Duration,
    gzip: bool,
}

type Prefix = SmallVec<[u8; GRPC_PREFIX]>;

/// The body of a request, which may be sent several times.
pub struct RequestBody {
    pub sent: Bytes,
    /// The memory of the spans.
    whole: Bytes,
}

impl RequestBody {
    /// The memory of the spans, for the next ones. Empty while a connection still uses it.
    pub fn into_memory(self) -> Vec<u8> {
        let Self { sent, whole } = self;
        drop(sent);
        whole.try_into_mut().map(Vec::from).unwrap_or_default()
    }
}

/// What became of one attempt to send a batch.
#[derive(Debug, PartialEq)]
pub enum ExportAnswer {
    /// The collector has it, without `rejected` of its spans.
    Accepted { rejected: usize, message: String },
    /// The attempt may be repeated, not before `after`.
    Retry { failure: ExportFailure, after: Option<Duration>, message: String },
    /// Another attempt would fail, too.
    Failed { failure: ExportFailure, message: String },
}

impl OtlpClient {
    /// # Errors
    /// Names the setting that cannot be used.
    pub fn new(settings: &ExporterSettings) -> Result<Self, String> {
        // Fails if it was done before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .redirect(Policy::none())
            .connect_timeout(CONNECT_TIMEOUT.min(settings.timeout))
            .user_agent(concat!("trtserver/", env!("CARGO_PKG_VERSION")));
        if settings.protocol == OtlpProtocol::Grpc {
            builder = builder.http2_prior_knowledge();
        }
        if let Some(path) = &settings.certificate {
            let subject = || format!("OTEL_EXPORTER_OTLP_CERTIFICATE {}", path.display());
            let pem = fs::read(path).map_err(|e| format!("{}: {e}", subject()))?;
            let authorities =
                Certificate::from_pem_bundle(&pem).map_err(|e| format!("{}: {e}", subject()))?;
            builder = builder.tls_certs_only(authorities);
        }
        let client = builder
            .build()
            .map_err(|e| format!("OTLP client for {}: {}", settings.url, chain(&e)))?;
        let mut url: Url = settings
            .url
            .parse()
            .map_err(|e| format!("address of the collector '{}': {e}", settings.url))?;
        if settings.protocol == OtlpProtocol::Grpc {
            url.set_path(SERVICE_PATH);
        }
        Ok(Self {
            client,
            url,
            protocol: settings.protocol,
            headers: request_headers(settings)?,
            timeout: settings.timeout,
            gzip: settings.gzip,
        })
    }

    /// Where batches are sent.
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    /// The body of a request: a head and spans, whose first `room` bytes are free for it.
    ///
    /// # Errors
    /// It cannot be compressed.
    pub fn body(&self, head: &[u8], mut spans: Vec<u8>, room: usize) -> io::Result<RequestBody> {
        let start = room - head.len();
        spans[start..room].copy_from_slice(head);
        if self.gzip {
            let packed = compress(&spans[start..])?;
            let mut sent = Vec::with_capacity(GRPC_PREFIX + packed.len());
            sent.extend_from_slice(&self.prefix(packed.len()));
            sent.extend_from_slice(&packed);
            return Ok(RequestBody { sent: sent.into(), whole: spans.into() });
        }
        let prefix = self.prefix(spans.len() - start);
        let begin = start - prefix.len();
        spans[begin..start].copy_from_slice(&prefix);
        let whole = Bytes::from(spans);
        Ok(RequestBody { sent: whole.slice(begin..), whole })
    }

    /// What gRPC has before a message of `length` bytes.
    fn prefix(&self, length: usize) -> Prefix {
        match self.protocol {
            OtlpProtocol::HttpProtobuf => Prefix::new(),
            OtlpProtocol::Grpc => {
                let [a, b, c, d] = (length as u32).to_be_bytes();
                [self.gzip.into(), a, b, c, d].into()
            }
        }
    }

    /// Sends a body once.
    pub async fn send(&self, body: Bytes) -> ExportAnswer {
        match timeout(self.timeout, self.send_untimed(body)).await {
            Ok(answer) => answer,
            Err(_) => ExportAnswer::Retry {
                failure: ExportFailure::Timeout,
                after: None,
                message: format!("no answer within {:?}", self.timeout),
            },
        }
    }

    async fn send_untimed(&self, body: Bytes) -> ExportAnswer {
        let request = self.client.post(self.url.clone()).headers(self.headers.clone()).body(body);
        let response = match request.send().await {
            Ok(response) => Response::<reqwest::Body>::from(response),
            Err(e) => return unreachable(chain(&e)),
        };
        let (head, body) = response.into_parts();
        let collected = match Limited::new(body, MAX_ANSWER).collect().await {
            Ok(collected) => collected,
            Err(e) => return unreachable(format!("the answer did not arrive: {e}")),
        };
        let trailers = collected.trailers().cloned();
        let body = collected.to_bytes();
        match self.protocol {
            OtlpProtocol::HttpProtobuf => read_http_answer(head.status, &head.headers, &body),
            // A call that fails may have its status in the head.
            OtlpProtocol::Grpc => {
                read_grpc_answer(head.status, trailers.as_ref().unwrap_or(&head.headers), &body)
            }
        }
    }
}

fn request_headers(settings: &ExporterSettings) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in &settings.headers {
        // The value may be a secret.
        let invalid =
            || format!("OTEL_EXPORTER_OTLP_HEADERS: '{name}' and its value are not a valid header");
        let value = HeaderValue::from_str(value).map_err(|_| invalid())?;
        headers.append(name.parse::<HeaderName>().map_err(|_| invalid())?, value);
    }
    let constant = HeaderValue::from_static;
    match settings.protocol {
        OtlpProtocol::HttpProtobuf => {
            headers.insert(CONTENT_TYPE, constant("application/x-protobuf"));
            if settings.gzip {
                headers.insert(CONTENT_ENCODING, constant("gzip"));
            }
            headers.insert(ACCEPT_ENCODING, constant("identity"));
        }
        OtlpProtocol::Grpc => {
            headers.insert(CONTENT_TYPE, constant("application/grpc"));
            headers.insert(TE, constant("trailers"));
            let milliseconds = settings.timeout.as_millis().min(99_999_999);
            let text = format!("{milliseconds}m");
            headers.insert("grpc-timeout", text.parse().map_err(|e| format!("{text}: {e}"))?);
            if settings.gzip {
                headers.insert("grpc-encoding", constant("gzip"));
            }
        }
    }
    Ok(headers)
}

fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes)?;
    encoder.finish()
}

fn unreachable(message: String) -> ExportAnswer {
    ExportAnswer::Retry { failure: ExportFailure::Unreachable, after: None, message }
}

/// The error and its causes: the first one alone says little.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// The answer over HTTP: what may be repeated is what the protocol says.
fn read_http_answer(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> ExportAnswer {
    if status == StatusCode::OK {
        return read_accepted(body);
    }
    let message = format!("status {}: {}", status.as_u16(), shown(body));
    match status.as_u16() {
        429 | 502 | 503 | 504 => {
            let seconds =
                headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
            let after = seconds.map(Duration::from_secs);
            ExportAnswer::Retry { failure: ExportFailure::Busy, after, message }
        }
        _ => ExportAnswer::Failed { failure: ExportFailure::Refused, message },
    }
}

/// The answer over gRPC; `status_headers` are those with its status.
fn read_grpc_answer(http: StatusCode, status_headers: &HeaderMap, body: &[u8]) -> ExportAnswer {
    let text = |name: &str| status_headers.get(name).and_then(|value| value.to_str().ok());
    let Some(code) = text("grpc-status").and_then(|code| code.parse::<u32>().ok()) else {
        let message = format!("HTTP status {} without a gRPC status", http.as_u16());
        return match http.as_u16() {
            429 | 502 | 503 | 504 => {
                ExportAnswer::Retry { failure: ExportFailure::Busy, after: None, message }
            }
            _ => ExportAnswer::Failed { failure: ExportFailure::InvalidAnswer, message },
        };
    };
    if code == 0 {
        // An uncompressed message, as no other was asked for.
        let length = body.get(1..GRPC_PREFIX).and_then(|length| length.try_into().ok());
        let message = length.and_then(|length| {
            let length = u32::from_be_bytes(length) as usize;
            body.get(GRPC_PREFIX..)?.get(..length).filter(|_| body[0] == 0)
        });
        return match message {
            Some(message) => read_accepted(message),
            None => ExportAnswer::Failed {
                failure: ExportFailure::InvalidAnswer,
                message: format!("status OK with {} bytes that are not a message", body.len()),
            },
        };
    }
    let message =
        format!("gRPC status {code}: {}", shown(text("grpc-message").unwrap_or("").as_bytes()));
    match code {
        // RESOURCE_EXHAUSTED, for good unless details say when to come again.
        8 if !status_headers.contains_key("grpc-status-details-bin") => {
            ExportAnswer::Failed { failure: ExportFailure::Refused, message }
        }
        // CANCELLED, DEADLINE_EXCEEDED, ABORTED, OUT_OF_RANGE, UNAVAILABLE, DATA_LOSS
        1 | 4 | 8 | 10 | 11 | 14 | 15 => {
            ExportAnswer::Retry { failure: ExportFailure::Busy, after: None, message }
        }
        _ => ExportAnswer::Failed { failure: ExportFailure::Refused, message },
    }
}

fn read_accepted(body: &[u8]) -> ExportAnswer {
    match ExportTraceServiceResponse::decode(body) {
        Ok(response) => {
            let partial = response.partial_success.unwrap_or_default();
            ExportAnswer::Accepted {
                rejected: partial.rejected_spans.max(0) as usize,
                message: shown(partial.error_message.as_bytes()),
            }
        }
        Err(e) => ExportAnswer::Failed {
            failure: ExportFailure::InvalidAnswer,
            message: format!("the answer is not an ExportTraceServiceResponse: {e}"),
        },
    }
}

/// A text of the collector for the log: one line, not too long.
fn shown(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(&text[..text.len().min(MAX_TEXT)]);
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
