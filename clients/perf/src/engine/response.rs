//! HTTP/1.1 responses: status, length and, for v1, NV-Status. Bodies of successful responses are
//! counted, not kept.

use super::chunked::ChunkedReader;

/// A response head may be this long.
const MAX_HEAD: usize = 64 * 1024;
/// Kept of the body of a failed response, for the message.
const MAX_KEPT: usize = 4096;

/// How far a response has come.
#[derive(Debug, PartialEq, Eq)]
pub enum ReadProgress {
    Incomplete,
    /// With the reason if the request failed. `close`: the server closes the connection.
    Complete {
        failure: Option<String>,
        close: bool,
    },
}

/// Reads one response after another.
#[derive(Debug, Default)]
pub struct ResponseReader {
    /// A head that has not arrived whole.
    head: Vec<u8>,
    body: Option<ResponseBody>,
}

#[derive(Debug)]
struct ResponseBody {
    rest: BodyRest,
    close: bool,
    failure: Option<FailedResponse>,
}

/// What is left of a body.
#[derive(Debug)]
enum BodyRest {
    Bytes(usize),
    Chunks(ChunkedReader),
}

#[derive(Debug)]
struct FailedResponse {
    status: u16,
    nv_status: Option<String>,
    body: Vec<u8>,
}

impl FailedResponse {
    fn text(self) -> String {
        if let Some(status) = self.nv_status {
            return status;
        }
        let body = String::from_utf8_lossy(&self.body);
        let error = serde_json::from_slice::<serde_json::Value>(&self.body).ok();
        let error = error.as_ref().and_then(|json| json.get("error")?.as_str());
        match error.unwrap_or(body.trim()) {
            "" => format!("HTTP status {}", self.status),
            text => format!("HTTP status {}: {text}", self.status),
        }
    }
}

impl ResponseReader {
    /// Forgets a response that broke off.
    pub fn reset(&mut self) {
        self.head.clear();
        self.body = None;
    }

    /// Whether part of a response has arrived.
    pub fn has_begun(&self) -> bool {
        self.body.is_some() || !self.head.is_empty()
    }

    /// Reads more bytes of the response.
    ///
    /// # Errors
    /// They are not an HTTP response, or more than one.
    pub fn read(&mut self, bytes: &[u8]) -> Result<ReadProgress, String> {
        if self.body.is_some() {
            return self.read_body(bytes);
        }
        if !self.head.is_empty() {
            self.head.extend_from_slice(bytes);
            let whole = std::mem::take(&mut self.head);
            return self.read_head(&whole);
        }
        self.read_head(bytes)
    }

    fn read_head(&mut self, bytes: &[u8]) -> Result<ReadProgress, String> {
        let Some(head) = read_head_lines(bytes)? else {
            if bytes.len() > MAX_HEAD {
                return Err(format!("the response head has no end within {MAX_HEAD} bytes"));
            }
            self.head = bytes.to_vec();
            return Ok(ReadProgress::Incomplete);
        };
        let failed = head.status != 200 || head.nv_status.is_some_and(|status| !is_success(status));
        let failure = failed.then(|| FailedResponse {
            status: head.status,
            nv_status: head
                .nv_status
                .map(|status| nv_status_text(&String::from_utf8_lossy(status))),
            body: Vec::new(),
        });
        let body = &bytes[head.length..];
        // The usual case needs no state.
        if failure.is_none() && !head.chunked && body.len() == head.content_length {
            return Ok(ReadProgress::Complete { failure: None, close: head.close });
        }
        let rest = match head.chunked {
            true => BodyRest::Chunks(ChunkedReader::default()),
            false => BodyRest::Bytes(head.content_length),
        };
        self.body = Some(ResponseBody { rest, close: head.close, failure });
        self.read_body(body)
    }

    fn read_body(&mut self, bytes: &[u8]) -> Result<ReadProgress, String> {
        let Some(body) = &mut self.body else { return Ok(ReadProgress::Incomplete) };
        let failure = &mut body.failure;
        let mut keep = |bytes: &[u8]| {
            if let Some(failure) = failure {
                let space = MAX_KEPT.saturating_sub(failure.body.len());
                failure.body.extend_from_slice(&bytes[..bytes.len().min(space)]);
            }
        };
        let whole = match &mut body.rest {
            BodyRest::Chunks(chunks) => chunks.read(bytes, keep)?,
            BodyRest::Bytes(left) => {
                let more = || "the server sent more bytes than its Content-Length".to_owned();
                *left = left.checked_sub(bytes.len()).ok_or_else(more)?;
                keep(bytes);
                *left == 0
            }
        };
        if !whole {
            return Ok(ReadProgress::Incomplete);
        }
        let body = self.body.take();
        let close = body.as_ref().is_some_and(|body| body.close);
        let failure = body.and_then(|body| body.failure).map(FailedResponse::text);
        Ok(ReadProgress::Complete { failure, close })
    }
}

struct ResponseHead<'b> {
    length: usize,
    content_length: usize,
    chunked: bool,
    status: u16,
    close: bool,
    nv_status: Option<&'b [u8]>,
}

/// `None` while the head is incomplete.
fn read_head_lines(bytes: &[u8]) -> Result<Option<ResponseHead<'_>>, String> {
    const START: &[u8] = b"HTTP/1.";
    let compared = START.len().min(bytes.len());
    if bytes[..compared] != START[..compared] {
        let text: String = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
        return Err(format!("not an HTTP response: {text:?}"));
    }
    let mut head = ResponseHead {
        length: 0,
        content_length: usize::MAX,
        chunked: false,
        status: 0,
        close: false,
        nv_status: None,
    };
    let mut at = 0;
    while let Some(end) = memchr::memchr(b'\n', &bytes[at..]) {
        let line = &bytes[at..at + end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if at == 0 {
            let digits = line.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok());
            head.status = digits
                .and_then(|digits| digits.parse().ok())
                .ok_or_else(|| format!("no HTTP status: {:?}", String::from_utf8_lossy(line)))?;
        }
        at += end + 1;
        match line.first() {
            None => {
                head.length = at;
                if head.content_length == usize::MAX && !head.chunked {
                    return Err(format!(
                        "the response (status {}) has no Content-Length",
                        head.status
                    ));
                }
                return Ok(Some(head));
            }
            Some(b'c' | b'C') => {
                if let Some(value) = header_value(line, b"content-length:") {
                    let text = std::str::from_utf8(value).unwrap_or_default();
                    head.content_length = text
                        .parse()
                        .map_err(|_| format!("the response's Content-Length is {text:?}"))?;
                } else if let Some(value) = header_value(line, b"connection:") {
                    head.close = value.eq_ignore_ascii_case(b"close");
                }
            }
            Some(b'n' | b'N') => {
                head.nv_status = header_value(line, b"nv-status:").or(head.nv_status)
            }
            Some(b't' | b'T') => {
                if let Some(value) = header_value(line, b"transfer-encoding:") {
                    head.chunked = value.eq_ignore_ascii_case(b"chunked");
                    if !head.chunked {
                        let text = String::from_utf8_lossy(value);
                        return Err(format!("the response's Transfer-Encoding is {text:?}"));
                    }
                }
            }
            Some(_) => {}
        }
    }
    Ok(None)
}

fn header_value<'l>(line: &'l [u8], name: &[u8]) -> Option<&'l [u8]> {
    let (start, value) = line.split_at_checked(name.len())?;
    start.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
}

fn is_success(nv_status: &[u8]) -> bool {
    const SUCCESS: &[u8] = b"code: SUCCESS";
    nv_status.starts_with(SUCCESS)
}

/// `[server request] CODE - message`, as the original client prints it.
fn nv_status_text(text: &str) -> String {
    match trtserver_proto::text::parse::<trtserver_proto::v1::RequestStatus>(text) {
        Ok(status) => super::message::v1_status_text(&status),
        Err(_) => format!("NV-Status {text:?}"),
    }
}

#[cfg(test)]
#[path = "response_tests.rs"]
mod tests;
