//! Inference requests over HTTP, from their bytes to the whole response.

use super::block_on::block_on;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request};
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use std::sync::{Arc, LazyLock};
use trtserver_frontend_v1::http as v1;
use trtserver_frontend_v2::http as v2;
use trtserver_wire::context::FrontendContext;

const HEADER_LENGTH: HeaderName = HeaderName::from_static("inference-header-content-length");

/// A v2 inference request of JSON alone.
pub fn v2_json(bytes: &[u8]) {
    check_v2(HeaderMap::new(), Bytes::copy_from_slice(bytes));
}

/// A v2 inference request with binary sections, behind the length of its JSON part (two bytes).
pub fn v2_binary(bytes: &[u8]) {
    let Some((length, body)) = bytes.split_first_chunk() else { return };
    let length = HeaderValue::from(u16::from_le_bytes(*length));
    check_v2(HeaderMap::from_iter([(HEADER_LENGTH, length)]), Bytes::copy_from_slice(body));
}

/// A v2 generate request, to `generate` and `generate_stream`. Both respond with the same JSON
/// object, or an error message.
pub fn v2_generate(bytes: &[u8]) {
    static CONTEXT: LazyLock<Arc<FrontendContext>> =
        LazyLock::new(trtserver_wire::echo_testing::context);
    let [one, stream] =
        ["/v2/models/echo/generate", "/v2/models/echo/generate_stream"].map(|path| {
            let (status, body) = block_on(async {
                let request = post(path, Bytes::copy_from_slice(bytes));
                let response =
                    v2::handle_request(&CONTEXT, request, trtserver_base::clock::now_ns()).await;
                let (head, body) = response.into_parts();
                let body = body.collect().await.unwrap_or_else(|e| panic!("no body: {e}"));
                (head.status.as_u16(), body.to_bytes())
            });
            let text = std::str::from_utf8(&body).unwrap_or_else(|e| panic!("{status}: {e}"));
            (
                status,
                text.strip_prefix("data: ").unwrap_or(text).trim_end_matches("\n\n").to_owned(),
            )
        });
    assert_eq!(one, stream);
    let (status, text) = one;
    // The tokens of floats are written as they are (docs/protocol/v2.md §2.1).
    let json = text.replace("Infinity", "0").replace("NaN", "0");
    let response: Value =
        serde_json::from_str(&json).unwrap_or_else(|e| panic!("{status}: {e} in {json}"));
    match status {
        200 => assert!(response["model_name"].is_string(), "{response}"),
        400 | 500 | 501 => assert!(response["error"].as_str().is_some_and(|e| !e.is_empty())),
        _ => panic!("{status} {response}"),
    }
}

/// The response has outputs whose shapes and data agree, or an error message.
fn check_v2(headers: HeaderMap, body: Bytes) {
    static CONTEXT: LazyLock<Arc<FrontendContext>> =
        LazyLock::new(trtserver_wire::echo_testing::context);
    let mut request = post("/v2/models/echo/infer", body);
    request.headers_mut().extend(headers);
    let (status, headers, body) = block_on(async {
        let response = v2::handle_request(&CONTEXT, request, trtserver_base::clock::now_ns()).await;
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap_or_else(|e| panic!("no body: {e}"));
        (head.status.as_u16(), head.headers, body.to_bytes())
    });
    let json = headers.get(HEADER_LENGTH).and_then(|n| n.to_str().ok()?.parse().ok());
    let (json, mut sections) = body.split_at(json.unwrap_or(body.len()));
    // The tokens of floats are written as they are (docs/protocol/v2.md §2.1).
    let json = std::str::from_utf8(json).unwrap_or_else(|e| panic!("{status}: {e} in {json:?}"));
    let json = json.replace("Infinity", "0").replace("NaN", "0");
    let response: Value = match serde_json::from_str(&json) {
        Ok(response) => response,
        // The response to a raw binary request has no JSON.
        Err(_) if json.is_empty() && status == 200 => return,
        Err(e) => panic!("{status}: {e} in {json}"),
    };
    if status != 200 {
        let message = response["error"].as_str();
        assert!([400, 404, 500, 501].contains(&status), "{status} {message:?}");
        assert!(message.is_some_and(|message| !message.is_empty()), "{response}");
        return;
    }
    for output in response["outputs"].as_array().into_iter().flatten() {
        let dims = output["shape"].as_array().into_iter().flatten();
        let elements: i64 = dims.map(|dim| dim.as_i64().unwrap_or(-1)).product();
        assert!(elements >= 0, "{output}");
        match output["parameters"]["binary_data_size"].as_u64() {
            None => {
                let data = output["data"].as_array().map(Vec::len);
                assert_eq!(data, usize::try_from(elements).ok(), "{output}");
            }
            Some(bytes) => {
                let (section, rest) = sections
                    .split_at_checked(bytes as usize)
                    .unwrap_or_else(|| panic!("{output} has no section"));
                sections = rest;
                if output["datatype"] == "FP32" {
                    assert_eq!(section.len() as i64, 4 * elements, "{output}");
                }
            }
        }
    }
    assert!(sections.is_empty(), "{} bytes belong to no output", sections.len());
}

/// A v1 inference request: the length of its header (two bytes), the header, the tensors. Its
/// status is a success, or an error code and a message.
pub fn v1_infer(bytes: &[u8]) {
    static CONTEXT: LazyLock<Arc<FrontendContext>> =
        LazyLock::new(|| trtserver_frontend_v1::testing::context(""));
    let Some((length, rest)) = bytes.split_first_chunk() else { return };
    let length = usize::from(u16::from_le_bytes(*length));
    let Some((header, body)) = rest.split_at_checked(length) else { return };
    let Ok(header) = HeaderValue::from_bytes(header) else { return };
    let mut request = post("/api/infer/simple", Bytes::copy_from_slice(body));
    request.headers_mut().insert("nv-inferrequest", header);
    let (code, status) = block_on(async {
        let response = v1::handle_request(&CONTEXT, request, trtserver_base::clock::now_ns()).await;
        let status = response.headers().get("nv-status").cloned();
        let (head, body) = response.into_parts();
        body.collect().await.unwrap_or_else(|e| panic!("no body: {e}"));
        (head.status.as_u16(), status)
    });
    let status = status.map(|status| String::from_utf8_lossy(status.as_bytes()).into_owned());
    let status = status.unwrap_or_default();
    match code {
        200 => assert!(status.starts_with("code: SUCCESS"), "{status:?}"),
        400 | 500 => {
            assert!(status.starts_with("code: ") && status.contains("msg: "), "{status:?}")
        }
        _ => panic!("{code} {status:?}"),
    }
}

fn post(path: &'static str, body: Bytes) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = http::Method::POST;
    *request.uri_mut() = http::Uri::from_static(path);
    request
}
