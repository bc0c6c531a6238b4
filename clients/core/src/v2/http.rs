//! The calls of v2 over HTTP.

use super::request::InferRequest;
use super::response::InferResponse;
use super::settings::{LoadOptions, LogSettings, LogValue, TraceSettings, file_key};
use super::{Client, json};
use crate::error::{Error, Kind, Result};
use crate::message::from_json;
use crate::percent::encode_segment;
use crate::transport::body::Segments;
use crate::transport::http::{HttpExchange, HttpResponse, put_header};
use crate::transport::{compress, deadline_after};
use ::http::{HeaderName, HeaderValue, Method};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use std::time::Instant;
use trtserver_proto::schema::Described;
use trtserver_proto::v2::RepositoryIndexResponse;

const LENGTH: &str = "inference-header-content-length";
/// How much of a response that is not JSON an error shows.
const SHOWN: usize = 200;

/// `/v2/models/MODEL[/versions/VERSION]TAIL`
pub(super) fn model_path(model: &str, version: &str, tail: &str) -> String {
    let model = encode_segment(model);
    if version.is_empty() {
        return format!("/v2/models/{model}{tail}");
    }
    format!("/v2/models/{model}/versions/{}{tail}", encode_segment(version))
}

impl Client {
    /// 200 is yes; what servers send for no is 400, 404 or 503.
    pub(super) async fn get_health(&self, path: &str) -> Result<bool> {
        let received =
            self.transport.exchange(HttpExchange::get(path, self.deadline_now())).await?;
        match received.status {
            200 => Ok(true),
            400 | 404 | 503 => Ok(false),
            _ => Err(read_refusal(&received))
                .map_err(|e: Error| e.with_asked(|| self.transport.asked_http(&Method::GET, path))),
        }
    }

    pub(super) async fn get<M: Described>(&self, path: &str) -> Result<M> {
        let value = self.value(HttpExchange::get(path, self.deadline_now())).await?;
        from_json(value).map_err(|e| e.with_asked(|| self.transport.asked_http(&Method::GET, path)))
    }

    pub(super) async fn post_index(&self, ready: bool) -> Result<RepositoryIndexResponse> {
        let path = "/v2/repository/index";
        let body = if ready { r#"{"ready":true}"# } else { "" };
        let models = self.value(self.post(path, body.to_owned())).await?;
        from_json(Value::Object(Map::from_iter([("models".to_owned(), models)])))
            .map_err(|e| e.with_asked(|| self.transport.asked_http(&Method::POST, path)))
    }

    pub(super) async fn post_load(&self, model: &str, options: &LoadOptions) -> Result<()> {
        let mut parameters = Map::new();
        if let Some(config) = &options.config {
            parameters.insert("config".into(), config.as_str().into());
        }
        for (path, contents) in &options.files {
            parameters.insert(file_key(path), STANDARD.encode(contents).into());
        }
        let path = format!("/v2/repository/models/{}/load", encode_segment(model));
        let body = serde_json::json!({"parameters": parameters});
        let body = if parameters.is_empty() { "{}".to_owned() } else { body.to_string() };
        self.done(self.post(&path, body)).await
    }

    pub(super) async fn post_unload(&self, model: &str, dependents: bool) -> Result<()> {
        let path = format!("/v2/repository/models/{}/unload", encode_segment(model));
        let body = serde_json::json!({"parameters": {"unload_dependents": dependents}});
        self.done(self.post(&path, body.to_string())).await
    }

    pub(super) async fn post_system_region(
        &self,
        name: &str,
        key: &str,
        offset: u64,
        byte_size: u64,
    ) -> Result<()> {
        let path = format!("/v2/systemsharedmemory/region/{}/register", encode_segment(name));
        let body = serde_json::json!({"key": key, "offset": offset, "byte_size": byte_size});
        self.done(self.post(&path, body.to_string())).await
    }

    pub(super) async fn post_cuda_region(
        &self,
        name: &str,
        raw_handle: &[u8],
        device_id: i64,
        byte_size: u64,
    ) -> Result<()> {
        let path = format!("/v2/cudasharedmemory/region/{}/register", encode_segment(name));
        let handle = serde_json::json!({"b64": STANDARD.encode(raw_handle)});
        let body = serde_json::json!({
            "raw_handle": handle, "device_id": device_id, "byte_size": byte_size,
        });
        self.done(self.post(&path, body.to_string())).await
    }

    pub(super) async fn post_unregister(&self, kind: &str, name: &str) -> Result<()> {
        let path = region_path(kind, name, "unregister");
        self.done(self.post(&path, String::new())).await
    }

    /// The status is an array over HTTP, and a map by name over gRPC.
    pub(super) async fn get_regions<M: Described>(&self, kind: &str, name: &str) -> Result<M> {
        let path = region_path(kind, name, "status");
        let status = self.value(HttpExchange::get(&path, self.deadline_now())).await?;
        let Value::Array(regions) = status else {
            return Err(Error::protocol(format!(
                "the status of regions is not an array: {status}"
            ))
            .with_asked(|| self.transport.asked_http(&Method::GET, &path)));
        };
        let by_name = regions
            .into_iter()
            .map(|region| (region["name"].as_str().unwrap_or_default().to_owned(), region));
        let regions = Value::Object(by_name.collect());
        from_json(Value::Object(Map::from_iter([("regions".to_owned(), regions)])))
            .map_err(|e| e.with_asked(|| self.transport.asked_http(&Method::GET, &path)))
    }

    pub(super) async fn http_trace_settings(
        &self,
        model: &str,
        changes: &TraceSettings,
    ) -> Result<TraceSettings> {
        let path = match model {
            "" => "/v2/trace/setting".to_owned(),
            model => model_path(model, "", "/trace/setting"),
        };
        let body = changes.iter().map(|(name, values)| {
            let value = match values.as_slice() {
                [] => Value::Null,
                [one] if name != "trace_level" => one.as_str().into(),
                several => several.into(),
            };
            (name.clone(), value)
        });
        let text = |value: Value| match value {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let settings = self.settings(&path, body.collect()).await?;
        let all = settings.into_iter().map(|(name, value)| match value {
            Value::Array(values) => (name, values.into_iter().map(text).collect()),
            value => (name, vec![text(value)]),
        });
        Ok(all.collect())
    }

    pub(super) async fn http_log_settings(&self, changes: &LogSettings) -> Result<LogSettings> {
        let body = changes.iter().map(|(name, value)| {
            let value = match value {
                LogValue::Bool(value) => (*value).into(),
                LogValue::Number(value) => (*value).into(),
                LogValue::Text(value) => value.as_str().into(),
            };
            (name.clone(), value)
        });
        let settings = self.settings("/v2/logging", body.collect()).await?;
        let all = settings.into_iter().filter_map(|(name, value)| {
            let value = match value {
                Value::Bool(value) => LogValue::Bool(value),
                Value::Number(number) => LogValue::Number(number.as_u64()?.try_into().ok()?),
                Value::String(text) => LogValue::Text(text),
                _ => return None,
            };
            Some((name, value))
        });
        Ok(all.collect())
    }

    /// Reads settings, or changes some; both return all.
    async fn settings(
        &self,
        path: &str,
        changes: Map<String, Value>,
    ) -> Result<Map<String, Value>> {
        let (method, exchange) = if changes.is_empty() {
            (Method::GET, HttpExchange::get(path, self.deadline_now()))
        } else {
            (Method::POST, self.post(path, Value::Object(changes).to_string()))
        };
        match self.value(exchange).await? {
            Value::Object(settings) => Ok(settings),
            other => Err(Error::protocol(format!("the settings are not an object: {other}"))
                .with_asked(|| self.transport.asked_http(&method, path))),
        }
    }

    pub(super) async fn http_infer(
        &self,
        request: &InferRequest,
        deadline: Option<Instant>,
    ) -> Result<InferResponse> {
        let path = model_path(&request.model, &request.version, "/infer");
        let (mut body, json_length) = json::json_request(request)?;
        if let Some(how) = self.compression {
            body = compress::compress_body(how, &body.join())?.into();
        }
        let mut exchange = HttpExchange::post(&path, body, deadline);
        exchange.content_type = Some("application/json");
        if let Some(length) = json_length {
            exchange.content_type = Some("application/octet-stream");
            put_header(&mut exchange.headers, LENGTH, &length.to_string())?;
        }
        if let Some(how) = self.compression {
            put_header(&mut exchange.headers, "content-encoding", how.name())?;
            put_header(&mut exchange.headers, "accept-encoding", how.name())?;
        }
        for (name, value) in &request.headers {
            let refuse = || Error::invalid(format!("`{name}: {value}` is not a header"));
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| refuse())?;
            let value = HeaderValue::from_str(value).map_err(|_| refuse())?;
            exchange.headers.append(name, value);
        }
        let received = self.transport.exchange(exchange).await?;
        self.inferred(received)
            .map_err(|e| e.with_asked(|| self.transport.asked_http(&Method::POST, &path)))
    }

    fn inferred(&self, mut received: HttpResponse) -> Result<InferResponse> {
        let encoding = received.header("content-encoding").unwrap_or_default().to_owned();
        received.body =
            compress::decompress_body(&encoding, received.body, self.transport.max_response_bytes)?;
        if received.status != 200 {
            return Err(read_refusal(&received));
        }
        let json_length = match received.header(LENGTH) {
            None => None,
            Some(text) => Some(text.parse().map_err(|_| {
                Error::protocol(format!("`{text}` in the header {LENGTH} is not a length"))
            })?),
        };
        json::json_response(&received.body, json_length)
    }

    fn post<'a>(&self, path: &'a str, body: String) -> HttpExchange<'a> {
        let body = Segments::from(body.into_bytes());
        let mut exchange = HttpExchange::post(path, body, deadline_after(self.deadline));
        exchange.content_type = Some("application/json");
        exchange
    }

    /// The JSON of a successful response.
    async fn value(&self, exchange: HttpExchange<'_>) -> Result<Value> {
        let (method, path) = (exchange.method.clone(), exchange.path);
        let received = self.transport.exchange(exchange).await?;
        let value = if received.status == 200 {
            serde_json::from_slice(&received.body).map_err(|e| {
                let shown = shown(&received.body);
                Error::protocol(format!("the response is not JSON: {e}: {shown}"))
            })
        } else {
            Err(read_refusal(&received))
        };
        value.map_err(|e| e.with_asked(|| self.transport.asked_http(&method, path)))
    }

    /// Success without contents.
    async fn done(&self, exchange: HttpExchange<'_>) -> Result<()> {
        let (method, path) = (exchange.method.clone(), exchange.path);
        let received = self.transport.exchange(exchange).await?;
        if received.status == 200 {
            return Ok(());
        }
        Err(read_refusal(&received).with_asked(|| self.transport.asked_http(&method, path)))
    }
}

fn region_path(kind: &str, name: &str, call: &str) -> String {
    match name {
        "" => format!("/v2/{kind}/{call}"),
        name => format!("/v2/{kind}/region/{}/{call}", encode_segment(name)),
    }
}

/// The error of a response whose status is not 200: `{"error": TEXT}`.
fn read_refusal(received: &HttpResponse) -> Error {
    let status = received.status;
    let kind = Kind::from_http_status(status);
    let json: Option<Value> = serde_json::from_slice(&received.body).ok();
    let text = json.as_ref().and_then(|json| json["error"].as_str());
    let error = match text {
        Some(text) => Error::new(kind, text),
        None if received.body.is_empty() => {
            Error::new(kind, format!("HTTP {status}, no error text"))
        }
        None => {
            let shown = shown(&received.body);
            Error::new(kind, format!("HTTP {status}, without an error in JSON: {shown}"))
        }
    };
    error.refused_by_server(i32::from(status))
}

fn shown(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(SHOWN)]);
    let dots = if body.len() > SHOWN { "…" } else { "" };
    format!("`{}{dots}`", text.escape_default())
}
