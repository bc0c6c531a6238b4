//! Metadata and statistics of a v2 server over HTTP.

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
    let wrap = |e: std::io::Error| format!("http://{address}{path}: {e}");
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT).map_err(wrap)?;
    stream.set_read_timeout(Some(TIMEOUT)).map_err(wrap)?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
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
