//! A fake of Google Cloud Storage: the part of its XML API that reads a repository (listing with
//! prefix, delimiter and pages, ranged reads with ETag and If-Match), and faults on command. A test
//! double: no emulator speaks this API.

use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use tempfile::TempDir;

/// What happens to requests for a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// Responses have this status, with this error code in the body.
    Status(u16, &'static str),
    /// As `Status`, but only this many responses.
    Times(u32, u16),
    /// No response until the fault is removed.
    Hold,
    /// Half of the response, then nothing until the fault is removed.
    Stall,
    /// The response ends early.
    Truncate,
    /// The response has this body.
    Body(String),
    /// The response has a body without an end.
    Flood,
    /// The response names this place.
    Redirect(String),
    /// The response has this ETag, whatever the request asks for.
    Tag(&'static str),
}

const BUCKET: &str = "bucket";
/// Small, so that listings have several pages.
const PAGE: usize = 3;

#[derive(Default)]
struct State {
    objects: BTreeMap<String, (Vec<u8>, u64)>,
    generation: u64,
    /// Part of a key or `list`, and its fault.
    faults: Vec<(String, Fault)>,
    /// `list PREFIX` or the key, in order.
    requests: Vec<String>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// A running fake.
pub struct FakeGcs {
    shared: Arc<Shared>,
    address: SocketAddr,
    folder: TempDir,
}

impl FakeGcs {
    /// An empty bucket on a free port of the loopback address.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap_or_else(|e| panic!("bind: {e}"));
        let address = listener.local_addr().unwrap_or_else(|e| panic!("address: {e}"));
        let shared = Arc::new(Shared::default());
        let served = Arc::clone(&shared);
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let shared = Arc::clone(&served);
                thread::spawn(move || shared.serve(connection));
            }
        });
        let folder = crate::folder();
        // The key file of a service account for emulators: no token is requested from anywhere.
        let key = json!({
            "client_email": "tester@localhost", "private_key": "", "private_key_id": "",
            "disable_oauth": true, "gcs_base_url": format!("http://{address}"),
        });
        fs::write(folder.path().join("key.json"), key.to_string())
            .unwrap_or_else(|e| panic!("key.json: {e}"));
        Self { shared, address, folder }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.lock()
    }

    /// The value for `GOOGLE_APPLICATION_CREDENTIALS`.
    pub fn key_file(&self) -> PathBuf {
        self.folder.path().join("key.json")
    }

    pub fn url(&self, prefix: &str) -> String {
        format!("gs://{BUCKET}/{prefix}")
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Creates or replaces an object.
    pub fn put(&self, key: &str, content: impl AsRef<[u8]>) {
        let mut state = self.state();
        state.generation += 1;
        let generation = state.generation;
        state.objects.insert(key.to_owned(), (content.as_ref().to_vec(), generation));
    }

    pub fn delete(&self, key: &str) {
        self.state().objects.remove(key);
    }

    /// Puts all files below `folder`.
    pub fn put_all(&self, folder: &Path, prefix: &str) {
        for (path, content) in files_below(folder) {
            self.put(&format!("{prefix}/{path}"), content);
        }
    }

    /// From now on requests for keys that contain `key` have this fault; for listings, `list`.
    pub fn fail(&self, key: &str, fault: Fault) {
        self.state().faults.push((key.to_owned(), fault));
    }

    /// Removes all faults. Stalled responses end.
    pub fn repair(&self) {
        self.state().faults.clear();
        self.shared.changed.notify_all();
    }

    /// Requests so far that contain `text`: `list PREFIX`, or a key with its range.
    pub fn requests(&self, text: &str) -> usize {
        self.state().requests.iter().filter(|request| request.contains(text)).count()
    }

    /// Waits until a request that contains `text` was made.
    pub fn wait_for_request(&self, text: &str) {
        self.wait_for_requests(text, 1);
    }

    /// Waits until so many were made.
    pub fn wait_for_requests(&self, text: &str, count: usize) {
        let mut state = self.state();
        while state.requests.iter().filter(|request| request.contains(text)).count() < count {
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// All files below a folder: path and content.
pub fn files_below(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(dir) = open.pop() {
        let entries = fs::read_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let name = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
            let content = fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            files.push((name, content));
        }
    }
    files
}

struct Request {
    path: String,
    query: BTreeMap<String, String>,
    headers: BTreeMap<String, String>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, connection: TcpStream) {
        let Ok(reading) = connection.try_clone() else { return };
        let (mut reader, mut writer) = (BufReader::new(reading), connection);
        while let Some(request) = read(&mut reader) {
            if self.respond(&request, &mut writer).is_none() {
                return;
            }
        }
    }

    /// `None` closes the connection.
    fn respond(&self, request: &Request, writer: &mut TcpStream) -> Option<()> {
        let key = request.path.strip_prefix(&format!("/{BUCKET}"))?.trim_start_matches('/');
        let range = request.headers.get("range").map(String::as_str).unwrap_or_default();
        let subject = match key {
            "" => format!("list {}", request.query.get("prefix").map_or("", String::as_str)),
            key => format!("{key} {range}"),
        };
        let fault = self.begin(&subject);
        if let Some(Fault::Status(status, code)) = fault {
            let body = format!(
                "<?xml version='1.0'?><Error><Code>{code}</Code><Message>as commanded</Message></Error>"
            );
            return send(writer, status, &[], body.as_bytes());
        }
        match &fault {
            Some(Fault::Body(body)) => return send(writer, 200, &[], body.as_bytes()),
            Some(Fault::Flood) => return flood(writer),
            Some(Fault::Redirect(to)) => {
                return send(writer, 302, &[("Location", to.clone())], b"");
            }
            _ => {}
        }
        if fault == Some(Fault::Hold) {
            self.wait_while(&subject, &Fault::Hold);
        }
        let (status, headers, body) = match key {
            "" => (200, Vec::new(), self.lock().list(&request.query).into_bytes()),
            key => self.lock().get(key, &request.headers, tag_of(&fault)),
        };
        match fault {
            Some(Fault::Stall) => {
                send_part(writer, status, &headers, &body)?;
                self.wait_while(&subject, &Fault::Stall);
                None
            }
            Some(Fault::Truncate) => {
                // A client that resumes gets no more.
                match range.starts_with("bytes=0-") {
                    true => send_part(writer, status, &headers, &body)?,
                    false => head(writer, status, &headers, body.len())?,
                }
                None
            }
            _ => send(writer, status, &headers, &body),
        }
    }

    /// Waits until requests for `subject` no longer have the fault.
    fn wait_while(&self, subject: &str, fault: &Fault) {
        let mut state = self.lock();
        while state.fault(subject).as_ref() == Some(fault) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Counts a request, and returns its fault.
    fn begin(&self, subject: &str) -> Option<Fault> {
        let mut state = self.lock();
        state.requests.push(subject.to_owned());
        self.changed.notify_all();
        let (_, fault) = state.faults.iter_mut().find(|(key, _)| subject.contains(&**key))?;
        match fault {
            Fault::Times(0, _) => None,
            Fault::Times(left, status) => {
                *left -= 1;
                Some(Fault::Status(*status, "Unavailable"))
            }
            fault => Some(fault.clone()),
        }
    }
}

impl State {
    fn fault(&self, subject: &str) -> Option<Fault> {
        let fault = self.faults.iter().find(|(key, _)| subject.contains(&**key));
        fault.map(|(_, fault)| fault.clone())
    }

    fn list(&self, query: &BTreeMap<String, String>) -> String {
        let of = |name: &str| query.get(name).map(String::as_str).unwrap_or_default();
        let (prefix, delimiter, after) = (of("prefix"), of("delimiter"), of("continuation-token"));
        // Keys and common prefixes, in order.
        let mut entries: BTreeMap<String, Option<&(Vec<u8>, u64)>> = BTreeMap::new();
        for (key, object) in self.objects.iter().filter(|(key, _)| key.starts_with(prefix)) {
            let rest = &key[prefix.len()..];
            match rest.find(delimiter).filter(|_| !delimiter.is_empty()) {
                Some(end) => {
                    let dir = key[..prefix.len() + end + delimiter.len()].to_owned();
                    entries.insert(dir, None);
                }
                None => drop(entries.insert(key.clone(), Some(object))),
            }
        }
        let mut entries = entries.into_iter().filter(|(key, _)| after.is_empty() || &**key > after);
        let page: Vec<_> = entries.by_ref().take(PAGE).collect();
        let mut xml = "<?xml version='1.0'?><ListBucketResult>".to_owned();
        for (key, object) in &page {
            let entry = match object {
                None => format!("<CommonPrefixes><Prefix>{key}</Prefix></CommonPrefixes>"),
                Some((content, generation)) => format!(
                    "<Contents><Key>{key}</Key><Size>{}</Size><LastModified>{}</LastModified>\
                     <ETag>\"{generation}\"</ETag></Contents>",
                    content.len(),
                    modified(*generation),
                ),
            };
            xml.push_str(&entry);
        }
        if let Some((last, _)) = page.last().filter(|_| entries.next().is_some()) {
            xml.push_str(&format!("<NextContinuationToken>{last}</NextContinuationToken>"));
        }
        xml + "</ListBucketResult>"
    }

    fn get(&self, key: &str, headers: &BTreeMap<String, String>, forged: Option<&str>) -> Answer {
        let Some((content, generation)) = self.objects.get(key) else {
            return (404, Vec::new(), b"<Error><Code>NoSuchKey</Code></Error>".to_vec());
        };
        let tag = forged.map_or_else(|| format!("\"{generation}\""), |tag| format!("\"{tag}\""));
        if forged.is_none() && headers.get("if-match").is_some_and(|wanted| *wanted != tag) {
            return (412, Vec::new(), Vec::new());
        }
        let mut response =
            vec![("ETag", tag), ("Last-Modified", "Sun, 22 Nov 2026 00:00:00 GMT".to_owned())];
        let range = headers.get("range").and_then(|range| {
            let (start, end) = range.strip_prefix("bytes=")?.split_once('-')?;
            let (start, end): (usize, usize) = (start.parse().ok()?, end.parse().ok()?);
            Some((start, end.min(content.len().checked_sub(1)?)))
        });
        let Some((start, end)) = range else { return (200, response, content.clone()) };
        response.push(("Content-Range", format!("bytes {start}-{end}/{}", content.len())));
        (206, response, content[start..=end].to_vec())
    }
}

type Answer = (u16, Vec<(&'static str, String)>, Vec<u8>);

/// A later generation is a later second.
fn modified(generation: u64) -> String {
    format!(
        "2026-11-22T{:02}:{:02}:{:02}.000Z",
        generation / 3600,
        generation / 60 % 60,
        generation % 60
    )
}

fn read(reader: &mut impl BufRead) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let target = line.split(' ').nth(1)?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(name), decoded(value))
    };
    let mut request = Request {
        path: decoded(path),
        query: query.split('&').map(pair).collect(),
        headers: BTreeMap::new(),
    };
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { return Some(request) };
        request.headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
}

/// Percent-decoded.
fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.bytes());
    while let Some(byte) = rest.next() {
        let digits = |b: u8| (b as char).to_digit(16).unwrap_or_default() as u8;
        bytes.push(match byte {
            b'%' => digits(rest.next().unwrap_or(b'0')) << 4 | digits(rest.next().unwrap_or(b'0')),
            b'+' => b' ',
            byte => byte,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn send(
    writer: &mut TcpStream,
    status: u16,
    headers: &[(&str, String)],
    body: &[u8],
) -> Option<()> {
    head(writer, status, headers, body.len())?;
    writer.write_all(body).ok()
}

fn tag_of(fault: &Option<Fault>) -> Option<&'static str> {
    match fault {
        Some(Fault::Tag(tag)) => Some(tag),
        _ => None,
    }
}

/// A page without an end, until the client closes the connection.
fn flood(writer: &mut TcpStream) -> Option<()> {
    writer.write_all(b"HTTP/1.1 200 as commanded\r\n\r\n<ListBucketResult>").ok()?;
    let spaces = vec![b' '; 1 << 20];
    while writer.write_all(&spaces).is_ok() {}
    None
}

/// Half of the response.
fn send_part(
    writer: &mut TcpStream,
    status: u16,
    headers: &[(&str, String)],
    body: &[u8],
) -> Option<()> {
    head(writer, status, headers, body.len())?;
    writer.write_all(&body[..body.len() / 2]).ok()
}

fn head(
    writer: &mut TcpStream,
    status: u16,
    headers: &[(&str, String)],
    length: usize,
) -> Option<()> {
    let mut head = format!("HTTP/1.1 {status} as commanded\r\nContent-Length: {length}\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    writer.write_all(head.as_bytes()).ok()
}
