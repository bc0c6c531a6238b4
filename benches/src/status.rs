//! Metadata, statistics and management requests of a v2 server over HTTP.

use crate::Result;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(10);

/// The JSON at `path`.
pub fn get(address: SocketAddr, path: &str) -> Result<Value> {
    let body = body(address, path)?;
    serde_json::from_str(&body).map_err(|e| format!("http://{address}{path}: {e}: {body}"))
}

/// The body of a response with status 200; any other status is an error.
pub fn body(address: SocketAddr, path: &str) -> Result<String> {
    exchange(address, path, &format!("GET {path} HTTP/1.1\r\n\r\n"))
}

/// Posts `json`; any other status than 200 is an error.
pub fn post(address: SocketAddr, path: &str, json: &str) -> Result<()> {
    let length = json.len();
    let request = format!("POST {path} HTTP/1.1\r\nContent-Length: {length}\r\n\r\n{json}");
    exchange(address, path, &request).map(drop)
}

/// Sends `request` with the headers that every request has.
fn exchange(address: SocketAddr, path: &str, request: &str) -> Result<String> {
    let wrap = |e: std::io::Error| format!("http://{address}{path}: {e}");
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT).map_err(wrap)?;
    stream.set_read_timeout(Some(TIMEOUT)).map_err(wrap)?;
    let request = request.replacen("\r\n", "\r\nHost: localhost\r\nConnection: close\r\n", 1);
    stream.write_all(request.as_bytes()).map_err(wrap)?;
    let mut response = String::new();
    stream.read_to_string(&mut response).map_err(wrap)?;
    let (head, body) = response.split_once("\r\n\r\n").unwrap_or((&response, ""));
    match head.starts_with("HTTP/1.1 200") {
        true => Ok(body.to_owned()),
        false => {
            let status = head.lines().next().unwrap_or_default();
            Err(format!("http://{address}{path}: {status}: {body}"))
        }
    }
}

/// Successful requests to `model` so far.
pub fn successful_requests(address: SocketAddr, model: &str) -> Result<u64> {
    let statistics = get(address, &format!("/v2/models/{model}/stats"))?;
    let count = statistics.pointer("/model_stats/0/inference_stats/success/count");
    count.and_then(Value::as_u64).ok_or_else(|| {
        format!("the statistics of '{model}' at {address} have no count of successes")
    })
}
