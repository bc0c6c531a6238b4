//! The little of HTTP that the two HTTP doors need: one request, the whole answer.

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

pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Http {
    pub fn new(address: &str) -> Self {
        let client = Client::builder(TokioExecutor::new()).build_http();
        Http { client, address: address.trim_start_matches("http://").to_owned() }
    }

    pub async fn get(&self, path: &str) -> Result<Answer, String> {
        self.send("GET", path, &[], Bytes::new()).await
    }

    pub async fn post(
        &self,
        path: &str,
        headers: &[(&str, String)],
        body: Bytes,
    ) -> Result<Answer, String> {
        self.send("POST", path, headers, body).await
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, String)],
        body: Bytes,
    ) -> Result<Answer, String> {
        let mut request =
            hyper::Request::builder().method(method).uri(format!("http://{}{path}", self.address));
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let request = request.body(Full::new(body)).map_err(|e| e.to_string())?;
        let response = self.client.request(request).await.map_err(|e| innermost(&e))?;
        let (head, body) = response.into_parts();
        let body = body.collect().await.map_err(|e| innermost(&e))?.to_bytes();
        Ok(Answer { status: head.status.as_u16(), headers: head.headers, body })
    }
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// The cause that says something ("Connection refused"), without the wrappers ("client error").
pub fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
