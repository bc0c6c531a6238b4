//! A Service in small: one address for several servers, as Kubernetes gives them. Each new
//! connection goes to one server that a probe has found ready; what the probe finds takes effect
//! late, as it does where endpoints must first reach every node.

use crate::http1::{Connection, request};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How often readiness is asked for.
const PROBE: Duration = Duration::from_millis(100);

/// Addresses of one server.
#[derive(Clone, PartialEq, Eq)]
struct ServiceEndpoint {
    http: String,
    grpc: String,
}

#[derive(Default)]
struct ServiceState {
    members: Mutex<Vec<ServiceEndpoint>>,
    /// To which new connections go.
    visible: Mutex<Vec<ServiceEndpoint>>,
    next: AtomicUsize,
    ended: AtomicBool,
}

/// The Service; ends when it is dropped.
pub struct Service {
    state: Arc<ServiceState>,
    http: String,
    grpc: String,
}

impl Service {
    /// `lag`: the time from a probe to its effect.
    #[track_caller]
    pub fn start(lag: Duration) -> Self {
        let state = Arc::new(ServiceState::default());
        let http = forward(&state, |endpoint| &endpoint.http);
        let grpc = forward(&state, |endpoint| &endpoint.grpc);
        let probing = Arc::clone(&state);
        thread::spawn(move || probe_members(&probing, lag));
        Self { state, http, grpc }
    }

    pub fn http(&self) -> &str {
        &self.http
    }

    pub fn grpc(&self) -> &str {
        &self.grpc
    }

    /// Adds a server, and waits until connections go to it.
    #[track_caller]
    pub fn add(&self, http: &str, grpc: &str) {
        let endpoint = ServiceEndpoint { http: http.to_owned(), grpc: grpc.to_owned() };
        lock(&self.state.members).push(endpoint.clone());
        let begin = Instant::now();
        while !lock(&self.state.visible).contains(&endpoint) {
            assert!(begin.elapsed() < crate::TIMEOUT, "{http} is not ready");
            thread::sleep(PROBE / 10);
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.state.ended.store(true, Ordering::Relaxed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn probe_members(state: &ServiceState, lag: Duration) {
    let mut found: VecDeque<(Instant, Vec<ServiceEndpoint>)> = VecDeque::new();
    while !state.ended.load(Ordering::Relaxed) {
        let members = lock(&state.members).clone();
        let ready = members.into_iter().filter(|endpoint| is_ready(&endpoint.http));
        found.push_back((Instant::now() + lag, ready.collect()));
        while found.front().is_some_and(|(due, _)| *due <= Instant::now()) {
            if let Some((_, ready)) = found.pop_front() {
                *lock(&state.visible) = ready;
            }
        }
        thread::sleep(PROBE);
    }
}

fn is_ready(http: &str) -> bool {
    let close = [("Connection", "close")];
    let response = Connection::try_open(http).ok().and_then(|mut connection| {
        connection.send(request("GET", "/v2/health/ready", &close, b"")).try_response()
    });
    response.is_some_and(|response| response.status == 200)
}

/// Accepts connections. Each is forwarded to a visible server, or closed if there is none.
#[track_caller]
fn forward(state: &Arc<ServiceState>, address: fn(&ServiceEndpoint) -> &String) -> String {
    let bound = TcpListener::bind("127.0.0.1:0").and_then(|l| Ok((l.local_addr()?, l)));
    let (local, listener) = bound.unwrap_or_else(|e| panic!("cannot listen: {e}"));
    let state = Arc::clone(state);
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let target = {
                let visible = lock(&state.visible);
                let number = state.next.fetch_add(1, Ordering::Relaxed);
                visible.get(number % visible.len().max(1)).map(|endpoint| address(endpoint).clone())
            };
            if let Some(server) = target.and_then(|target| TcpStream::connect(target).ok()) {
                let _ = join(client, server);
            }
        }
    });
    local.to_string()
}

fn join(client: TcpStream, server: TcpStream) -> io::Result<()> {
    let _ = client.set_nodelay(true).and_then(|()| server.set_nodelay(true));
    let (from, to) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || pass(from, to));
    thread::spawn(move || pass(server, client));
    Ok(())
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = vec![0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
