//! The HTTP client of the object stores: follows no redirect to another host, reads no response
//! without a bound, and hands pages of listings to `pages`.

use super::pages;
use async_trait::async_trait;
use bytes::Bytes;
use http::Response;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use object_store::client::{
    ClientConfigKey as Key, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest,
    HttpResponse, HttpResponseBody, HttpService,
};
use object_store::{ClientOptions, Result};
use reqwest::redirect::{Action, Attempt, Policy};
use reqwest::{Certificate, Client, ClientBuilder, NoProxy, Proxy, Url};
use std::error::Error;
use std::time::Duration;

/// Bytes of a response that is neither an object nor a page of a listing: a token, an error.
const MAX_OTHER: usize = 1 << 20;
const MAX_REDIRECTS: usize = 5;

type BoxError = Box<dyn Error + Send + Sync>;

/// Makes the HTTP clients of one object store.
#[derive(Debug)]
pub struct StoreConnector;

impl HttpConnector for StoreConnector {
    fn connect(&self, options: &ClientOptions) -> Result<HttpClient> {
        let client = client_builder(options).and_then(|builder| Ok(builder.build()?));
        let client = client
            .map_err(|source| object_store::Error::Generic { store: "HTTP client", source })?;
        Ok(HttpClient::new(StoreService(client)))
    }
}

/// A client with these options: object_store's own offers no redirect policy.
fn client_builder(options: &ClientOptions) -> std::result::Result<ClientBuilder, BoxError> {
    let text = |key: Key| options.get_config_value(&key);
    let is_set = |key: Key| text(key).is_some_and(|value| value == "true");
    let time = |key: Key| -> std::result::Result<Option<Duration>, BoxError> {
        Ok(text(key).map(|value| humantime::parse_duration(&value)).transpose()?)
    };
    let mut builder = Client::builder()
        .redirect(Policy::custom(follow_redirect))
        .https_only(!is_set(Key::AllowHttp))
        .danger_accept_invalid_certs(is_set(Key::AllowInvalidCertificates))
        .http2_keep_alive_while_idle(is_set(Key::Http2KeepAliveWhileIdle));
    let agent = concat!("trtserver/", env!("CARGO_PKG_VERSION")).to_owned();
    builder = builder.user_agent(text(Key::UserAgent).unwrap_or(agent));
    if is_set(Key::NoSystemCertificates) {
        builder = builder.tls_certs_only([]);
    }
    if let Some(url) = text(Key::ProxyUrl) {
        let mut proxy = Proxy::all(url)?;
        if let Some(excludes) = text(Key::ProxyExcludes) {
            proxy = proxy.no_proxy(NoProxy::from_string(&excludes));
        }
        if let Some(pem) = text(Key::ProxyCaCertificate) {
            builder = builder.tls_certs_merge([Certificate::from_pem(pem.as_bytes())?]);
        }
        builder = builder.proxy(proxy);
    }
    if let Some(timeout) = time(Key::Timeout)? {
        builder = builder.timeout(timeout);
    }
    if let Some(timeout) = time(Key::ConnectTimeout)? {
        builder = builder.connect_timeout(timeout);
    }
    if let Some(timeout) = time(Key::ReadTimeout)? {
        builder = builder.read_timeout(timeout);
    }
    if let Some(timeout) = time(Key::PoolIdleTimeout)? {
        builder = builder.pool_idle_timeout(timeout);
    }
    if let Some(max) = text(Key::PoolMaxIdlePerHost) {
        builder = builder.pool_max_idle_per_host(max.parse()?);
    }
    if let Some(interval) = time(Key::Http2KeepAliveInterval)? {
        builder = builder.http2_keep_alive_interval(interval);
    }
    if let Some(timeout) = time(Key::Http2KeepAliveTimeout)? {
        builder = builder.http2_keep_alive_timeout(timeout);
    }
    if let Some(size) = text(Key::Http2MaxFrameSize) {
        builder = builder.http2_max_frame_size(Some(size.parse()?));
    }
    if is_set(Key::Http1Only) {
        builder = builder.http1_only();
    }
    if is_set(Key::Http2Only) {
        builder = builder.http2_prior_knowledge();
    }
    Ok(builder)
}

/// A store must not send the server to the metadata service of its machine, or to others of its
/// network.
fn follow_redirect(attempt: Attempt<'_>) -> Action {
    let Some(from) = attempt.previous().first() else { return attempt.stop() };
    if attempt.previous().len() > MAX_REDIRECTS {
        return attempt.error(format!("more than {MAX_REDIRECTS} redirects"));
    }
    if !is_same_host(from, attempt.url()) {
        let [from, to] = [from, attempt.url()].map(|url| url.origin().ascii_serialization());
        return attempt.error(format!(
            "a redirect from {from} to {to}, which is another host, is not followed; if the store has moved, name its \
             host or region"
        ));
    }
    attempt.follow()
}

/// Host and port are the same; from http to https the ports may be those of the schemes.
fn is_same_host(from: &Url, to: &Url) -> bool {
    let is_upgrade = (from.scheme(), to.scheme()) == ("http", "https");
    let are_own_ports = from.port().is_none() && to.port().is_none();
    from.host() == to.host()
        && match is_upgrade {
            true => are_own_ports,
            false => from.scheme() == to.scheme() && from.port() == to.port(),
        }
}

#[derive(Debug)]
struct StoreService(Client);

#[async_trait]
impl HttpService for StoreService {
    async fn call(&self, request: HttpRequest) -> std::result::Result<HttpResponse, HttpError> {
        let is_page = is_listing(&request);
        let range = requested_bytes(&request);
        let response = self.send(request).await?;
        let (parts, body) = response.into_parts();
        let limit = match range.filter(|_| parts.status.is_success()) {
            Some(bytes) => bytes,
            None if is_page && parts.status.is_success() => {
                let page = read_page(body).await?;
                return Ok(HttpResponse::from_parts(parts, page.into()));
            }
            None => MAX_OTHER,
        };
        let body = Limited::new(body, limit).map_err(move |e| body_error(e, limit));
        Ok(HttpResponse::from_parts(parts, HttpResponseBody::new(body)))
    }
}

impl StoreService {
    async fn send(
        &self,
        request: HttpRequest,
    ) -> std::result::Result<Response<reqwest::Body>, HttpError> {
        let (parts, body) = request.into_parts();
        let unusable = |e: BoxError| HttpError::new_boxed(HttpErrorKind::Unknown, e);
        let url = parts.uri.to_string().parse::<Url>().map_err(|e| unusable(e.into()))?;
        let mut request = reqwest::Request::new(parts.method, url);
        *request.headers_mut() = parts.headers;
        let body = body.collect().await?.to_bytes();
        if !body.is_empty() {
            *request.body_mut() = Some(body.into());
        }
        Ok(self.0.execute(request).await.map_err(request_error)?.into())
    }
}

fn is_listing(request: &HttpRequest) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query.split('&').any(|pair| matches!(pair, "list-type=2" | "comp=list"))
}

/// The length of the requested part of an object.
fn requested_bytes(request: &HttpRequest) -> Option<usize> {
    let range = request.headers().get(http::header::RANGE)?.to_str().ok()?;
    let (start, end) = range.strip_prefix("bytes=")?.split_once('-')?;
    let (start, end): (u64, u64) = (start.parse().ok()?, end.parse().ok()?);
    usize::try_from(end.checked_sub(start)?.checked_add(1)?).ok()
}

/// A whole page, without the entries that cannot be used.
async fn read_page(body: reqwest::Body) -> std::result::Result<Bytes, HttpError> {
    let limit = pages::MAX_PAGE;
    let page = Limited::new(body, limit).collect().await.map_err(|e| body_error(e, limit))?;
    pages::add_page(&page.to_bytes())
        .map(Bytes::from)
        .map_err(|e| HttpError::new_boxed(HttpErrorKind::Decode, e.into()))
}

fn body_error(e: BoxError, limit: usize) -> HttpError {
    match e.downcast::<reqwest::Error>() {
        Ok(e) => request_error(*e),
        Err(e) if e.is::<LengthLimitError>() => HttpError::new_boxed(
            HttpErrorKind::Decode,
            format!("the response is longer than {limit} bytes").into(),
        ),
        Err(e) => HttpError::new_boxed(HttpErrorKind::Unknown, e),
    }
}

/// The kind says whether a request is repeated. The URL may have a signature.
fn request_error(e: reqwest::Error) -> HttpError {
    let kind = match () {
        () if e.is_timeout() => HttpErrorKind::Timeout,
        () if e.is_connect() => HttpErrorKind::Connect,
        () if e.is_redirect() || e.is_builder() => HttpErrorKind::Unknown,
        () => HttpErrorKind::Interrupted,
    };
    HttpError::new(kind, e.without_url())
}

#[cfg(test)]
#[path = "http_client_tests.rs"]
mod tests;
