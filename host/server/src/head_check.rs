//! What HTTP/1.1 requires of the head of a request and hyper does not check. An intermediary that
//! reads such a head in another way could be made to pass on a request that it has not seen.

use http::header::{CONNECTION, HOST, HeaderValue, TRANSFER_ENCODING};
use http::{HeaderMap, Request, Response, Version};
use trtserver_base::error::{Error, Result};
use trtserver_frontend_v2 as v2;
use trtserver_wire::http::body::ResponseBody;
use trtserver_wire::http::drain::drain_body;
use trtserver_wire::http::receive::MAX_DRAINED;
use trtserver_wire::request_body::RequestBody;

/// Longest part of a header in an error.
const SHOWN: usize = 64;

/// Bytes that `Host` may have.
const HOST_BYTES: [bool; 256] = {
    let mut allowed = [false; 256];
    let mut byte = 0x21;
    while byte < 0x7f {
        allowed[byte as usize] =
            !matches!(byte, b'/' | b'\\' | b'?' | b'#' | b'@' | b',' | b'"' | b'<' | b'>');
        byte += 1;
    }
    allowed
};

/// Checks `Host` and `Transfer-Encoding`. Allocates nothing if they are right.
///
/// # Errors
/// One of them is not.
pub fn check_head<B>(request: &Request<B>) -> Result<()> {
    let headers = request.headers();
    // Cheaper than look-ups, which compute a hash each.
    let (mut host, mut hosts, mut has_coding) = (None, 0, false);
    for (name, value) in headers {
        if *name == HOST {
            host.get_or_insert(value);
            hosts += 1;
        } else if *name == TRANSFER_ENCODING {
            has_coding = true;
        }
    }
    check_host(host, hosts, request.version())?;
    if has_coding { check_transfer_encoding(headers) } else { Ok(()) }
}

/// Refuses a request, as the last one of its connection.
pub async fn refuse_head(request: Request<RequestBody>, error: Error) -> Response<ResponseBody> {
    drain_body(std::pin::pin!(request.into_body()), MAX_DRAINED).await;
    let mut response = v2::http::error_response(&error);
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// `host`: the first of `found` headers.
fn check_host(host: Option<&HeaderValue>, found: usize, version: Version) -> Result<()> {
    let Some(host) = host else {
        return match version < Version::HTTP_11 {
            true => Ok(()),
            false => {
                Err(Error::invalid("the request has no header 'Host', which HTTP/1.1 requires"))
            }
        };
    };
    if found > 1 {
        return Err(Error::invalid(format!(
            "the request has {found} headers 'Host': expected one"
        )));
    }
    if !host.as_bytes().iter().all(|byte| HOST_BYTES[usize::from(*byte)]) {
        let shown = shown(host);
        return Err(Error::invalid(format!(
            "header 'Host' is '{shown}': expected HOST or HOST:PORT"
        )));
    }
    Ok(())
}

/// hyper reads bodies whose last coding is `chunked`, and leaves the codings before it.
fn check_transfer_encoding(headers: &HeaderMap) -> Result<()> {
    for (position, value) in headers.get_all(TRANSFER_ENCODING).into_iter().enumerate() {
        if position > 0 || !value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked") {
            return Err(Error::unsupported(format!(
                "header 'Transfer-Encoding' is '{}'{}: this server reads 'chunked' alone; a compressed body needs the \
                 header 'Content-Encoding'",
                shown(value),
                if position > 0 { " beside another one" } else { "" }
            )));
        }
    }
    Ok(())
}

/// A header in an error.
pub fn shown(value: &HeaderValue) -> String {
    let text = String::from_utf8_lossy(value.as_bytes());
    let short: String = text.chars().take(SHOWN).collect();
    if short.len() < text.len() { format!("{short}...") } else { short }
}

#[cfg(test)]
#[path = "head_check_tests.rs"]
mod tests;
