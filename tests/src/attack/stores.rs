//! An attacker that is an object store: pages of a listing without an end, one continuation token
//! for ever, keys that cannot be paths, redirects to another host. Its server is one of its own; it
//! must listen, answer and stay small.

use super::attackers::{Attack, WAIT};
use crate::control::{Control, explicit};
use crate::repository::probe;
use crate::server::Running;
use serde_json::json;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The server must respond to a load request within this time, and listen within it.
const LIMIT: Duration = Duration::from_secs(60);
/// What an unbounded page or listing exceeds.
const MOST_KIB: u64 = 300 << 10;
/// An endless page ends here, so that an attack on a server without bounds does not exhaust the
/// machine.
const FLOOD_BYTES: usize = 1 << 30;

/// What the store does with each listing, in turn.
const BEHAVIOURS: [Behaviour; 4] =
    [Behaviour::Flood, Behaviour::SameToken, Behaviour::OddKeys, Behaviour::Redirect];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Behaviour {
    Flood,
    SameToken,
    OddKeys,
    Redirect,
}

pub fn attacks<'a>() -> Vec<Attack<'a>> {
    vec![Attack::new("hostile-store", 1, hostile_store)]
}

/// One server with the store as its second repository. Each load request lists the store.
fn hostile_store() -> Result<(), String> {
    for behaviour in BEHAVIOURS {
        let found = catch_unwind(AssertUnwindSafe(|| meet(behaviour)));
        let found = found.unwrap_or_else(|_| Err("the server did not listen or end".to_owned()));
        found.map_err(|e| format!("{behaviour:?} of an object store: {e}"))?;
    }
    Ok(())
}

fn meet(behaviour: Behaviour) -> Result<(), String> {
    let store = HostileStore::start(behaviour);
    let folder = crate::folder();
    let key = folder.path().join("key.json");
    // The key file of a service account for emulators: no token is requested from anywhere.
    let account = json!({
        "client_email": "tester@localhost", "private_key": "", "private_key_id": "",
        "disable_oauth": true, "gcs_base_url": format!("http://{}", store.address),
    });
    fs::write(&key, account.to_string()).unwrap_or_else(|e| panic!("key.json: {e}"));
    let begin = Instant::now();
    let server = explicit()
        .model("local", probe("local", &[]))
        .flag("--load-model=local")
        .flag("--model-store=gs://bucket/models")
        .flag(format!("--model-cache-dir={}", folder.path().join("cache").display()))
        .flag("--store-timeout-secs=5")
        // A server whose repository cannot be listed ends otherwise.
        .flag("--exit-on-error=false")
        .env("GOOGLE_APPLICATION_CREDENTIALS", &key)
        .env("TRITON_CLOUD_CREDENTIAL_PATH", "")
        .launch();
    let listens = begin.elapsed();
    if listens > WAIT * 5 {
        return Err(format!("the server listened after {listens:?}"));
    }
    let result = watch(&server);
    drop(server);
    let strangers = store.strangers.load(Ordering::Relaxed);
    match strangers {
        0 => result,
        _ => Err(format!("{strangers} redirects to another host were followed")),
    }
}

/// Loads a model, and watches the server meanwhile.
fn watch(server: &Running) -> Result<(), String> {
    thread::scope(|scope| {
        let load = scope.spawn(|| {
            let status = catch_unwind(AssertUnwindSafe(|| {
                server.wait_until_ready();
                let begin = Instant::now();
                (server.load("remote").status, begin.elapsed())
            }));
            status.unwrap_or_default()
        });
        let (mut most, mut slowest) = (0, Duration::ZERO);
        while !load.is_finished() {
            most = most.max(server.resident_kib());
            let begin = Instant::now();
            if server.get("/v2/health/live").status != 200 {
                return Err("the server is not live".to_owned());
            }
            slowest = slowest.max(begin.elapsed());
            thread::sleep(WAIT / 40);
        }
        let (status, took) = load.join().unwrap_or_default();
        if matches!(status, 0 | 200 | 503) || took > LIMIT {
            return Err(format!("a load request ended with {status} after {took:?}"));
        }
        if most > MOST_KIB || slowest > WAIT {
            return Err(format!("{most} KiB, the slowest response of health took {slowest:?}"));
        }
        Ok(())
    })
}

/// Listens on two ports: those who come to the second were redirected.
struct HostileStore {
    address: SocketAddr,
    strangers: Arc<AtomicUsize>,
}

impl HostileStore {
    fn start(behaviour: Behaviour) -> Self {
        let bind = || TcpListener::bind("127.0.0.1:0").unwrap_or_else(|e| panic!("bind: {e}"));
        let address = |listener: &TcpListener| {
            listener.local_addr().unwrap_or_else(|e| panic!("address: {e}"))
        };
        let (store, other) = (bind(), bind());
        let (address, elsewhere) = (address(&store), address(&other));
        let strangers = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&strangers);
        // The threads end with the program.
        thread::spawn(move || {
            for _ in other.incoming() {
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        thread::spawn(move || {
            for connection in store.incoming().flatten() {
                thread::spawn(move || serve(connection, behaviour, elsewhere));
            }
        });
        Self { address, strangers }
    }
}

/// Responds to requests until the client closes the connection.
fn serve(connection: TcpStream, behaviour: Behaviour, elsewhere: SocketAddr) -> Option<()> {
    let mut reader = BufReader::new(connection.try_clone().ok()?);
    let mut writer = connection;
    loop {
        read_head(&mut reader)?;
        let list = |entries: &str| format!("<ListBucketResult>{entries}</ListBucketResult>");
        let entry = |key: &str| {
            format!(
                "<Contents><Key>{key}</Key><Size>1</Size>\
                 <LastModified>2026-11-22T00:00:00.000Z</LastModified></Contents>"
            )
        };
        let page = match behaviour {
            Behaviour::Flood => return flood(&mut writer),
            Behaviour::SameToken => list("<NextContinuationToken>again</NextContinuationToken>"),
            Behaviour::OddKeys => {
                list(&["models//x", "models/m//x", "models/m/../x"].map(entry).concat())
            }
            Behaviour::Redirect => String::new(),
        };
        let status = match behaviour {
            Behaviour::Redirect => format!("302 Found\r\nLocation: http://{elsewhere}/bucket"),
            _ => "200 OK".to_owned(),
        };
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", page.len());
        writer.write_all(format!("{head}{page}").as_bytes()).ok()?;
    }
}

/// Reads a request without a body.
fn read_head(reader: &mut impl BufRead) -> Option<()> {
    let mut line = String::new();
    while reader.read_line(&mut line).ok()? > 0 {
        if line == "\r\n" {
            return Some(());
        }
        line.clear();
    }
    None
}

/// A page without an end.
fn flood(writer: &mut TcpStream) -> Option<()> {
    writer.write_all(b"HTTP/1.1 200 OK\r\n\r\n<ListBucketResult>").ok()?;
    let spaces = vec![b' '; 1 << 20];
    (0..FLOOD_BYTES >> 20).try_for_each(|_| writer.write_all(&spaces).ok())
}
