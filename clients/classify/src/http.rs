//! HTTP client of both protocol generations: sends one request and reads the whole response.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::header::HeaderMap;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use std::error::Error;

pub struct Http {
    client: Client<HttpConnector, Full<Bytes>>,
    /// HOST:PORT
    address: String,
}

pub struct Response {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Http {
    pub fn new(address: &str) -> Self {
        let client = Client::builder(TokioExecutor::new()).build_http();
        Http { client, address: address.trim_start_matches("http://").to_owned() }
    }

    pub async fn get(&self, path: &str) -> Result<Response, String> {
        self.send("GET", path, &[], Bytes::new()).await
    }

    pub async fn post(
        &self,
        path: &str,
        headers: &[(&str, String)],
        body: Bytes,
    ) -> Result<Response, String> {
        self.send("POST", path, headers, body).await
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, String)],
        body: Bytes,
    ) -> Result<Response, String> {
        let mut request =
            hyper::Request::builder().method(method).uri(format!("http://{}{path}", self.address));
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let request = request.body(Full::new(body)).map_err(|e| e.to_string())?;
        let response = self.client.request(request).await.map_err(|e| innermost(&e))?;
        let (head, body) = response.into_parts();
        let body = body.collect().await.map_err(|e| innermost(&e))?.to_bytes();
        Ok(Response { status: head.status.as_u16(), headers: head.headers, body })
    }
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// The root cause of an error ("Connection refused"), without its wrappers ("client error").
pub fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
