//! Unit tests of parked connections, over TCP, Unix sockets and TLS.

use crate::bind::{BoundListener, Sockets};
use crate::connections::{Connections, Timeouts};
use crate::http::body::ResponseBody;
use crate::listener::{ConnectionLimits, ListenerService, Protocol, serve_connections};
use crate::request_body::RequestBody;
use crate::unix_socket::SocketFile;
use http::{Request, Response};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use trtserver_base::budget::OpenCallLimit;
use trtserver_config::{ListenAddress, UnreadLimits};

const REQUEST: &[u8] = b"GET /one HTTP/1.1\r\nhost: localhost\r\n\r\n";
const LONG: Duration = Duration::from_secs(60);

trait ClientStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> ClientStream for T {}

/// A listener whose responses are the paths of the requests.
struct PathServer {
    connections: Arc<Connections>,
    port: u16,
    path: std::path::PathBuf,
    stop: watch::Sender<bool>,
    served: Vec<JoinHandle<()>>,
    _file: Option<SocketFile>,
    _folder: TempDir,
}

impl PathServer {
    fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("http.sock");
        let addresses =
            [ListenAddress::Host("127.0.0.1".into()), ListenAddress::Unix(path.clone())];
        let sockets = Sockets { what: "HTTP", addresses: &addresses, port: 0, reuse_port: false };
        let mut bound = sockets.bind().unwrap();
        bound.iter_mut().for_each(|listener| listener.listen().unwrap());
        let port = bound[0].port.unwrap();
        let file = bound[1].file.take();
        let limit = OpenCallLimit::leak(usize::MAX);
        let connections = Connections::new(10_000, 100, Timeouts::default(), limit);
        let (stop, stopped) = watch::channel(false);
        let serve = |listener: BoundListener| {
            let handler = |request: Request<RequestBody>, _| async move {
                Response::new(ResponseBody::from(request.uri().path().to_owned()))
            };
            let unread =
                UnreadLimits { per_stream: 1 << 20, per_connection: 1 << 20, timeout: LONG };
            let limits = ConnectionLimits { tcp_keepalive: None, unread };
            let protocol = Protocol::Http1;
            let (tls, access_log, heavy) = (None, None, Handle::current());
            let service = ListenerService { protocol, handler, limits, tls, access_log, heavy };
            let served =
                serve_connections(listener, service, Arc::clone(&connections), stopped.clone());
            tokio::spawn(async move { served.await.unwrap() })
        };
        let served = bound.into_iter().map(serve).collect();
        Self { connections, port, path, stop, served, _file: file, _folder: folder }
    }

    /// The kind of socket changes from client to client.
    async fn connect(&self, number: usize) -> Box<dyn ClientStream> {
        match number % 2 {
            0 => Box::new(TcpStream::connect(("127.0.0.1", self.port)).await.unwrap()),
            _ => Box::new(UnixStream::connect(&self.path).await.unwrap()),
        }
    }

    async fn wait_for_parked(&self, count: usize) {
        let start = Instant::now();
        while self.connections.parked() != count {
            assert!(start.elapsed() < LONG, "{} are parked", self.connections.parked());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Reads responses until this body has arrived.
async fn read_until(client: &mut (dyn ClientStream + '_), body: &str) -> String {
    let mut text = String::new();
    while !text.ends_with(body) {
        let mut bytes = [0; 1000];
        let count = tokio::time::timeout(LONG, client.read(&mut bytes)).await.unwrap().unwrap();
        assert!(count > 0, "the connection has ended after {text:?}");
        text += std::str::from_utf8(&bytes[..count]).unwrap();
    }
    text
}

async fn is_ended(client: &mut (dyn ClientStream + '_)) -> bool {
    tokio::time::timeout(LONG, client.read(&mut [0; 1])).await.unwrap().unwrap() == 0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parked_connections_answer_again_and_end_at_shutdown() {
    let server = PathServer::start();
    let mut clients = Vec::new();
    for number in 0..200 {
        clients.push(server.connect(number).await);
    }
    for client in &mut clients[..190] {
        client.write_all(REQUEST).await.unwrap();
        read_until(client, "/one").await;
    }
    // The last ten have sent nothing.
    server.wait_for_parked(200).await;
    for client in &mut clients {
        client.write_all(REQUEST).await.unwrap();
        read_until(client, "/one").await;
    }
    server.wait_for_parked(200).await;
    // What is complete, what is not, and what follows.
    for client in &mut clients[..2] {
        let two = b"GET /two HTTP/1.1\r\nhost: localhost\r\n\r\nGET /th";
        client.write_all(&[REQUEST, two].concat()).await.unwrap();
        let text = read_until(client, "/two").await;
        assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 2, "{text}");
        client.write_all(b"ree HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        read_until(client, "/three").await;
    }
    // One client goes, one sends nothing more.
    drop(clients.pop());
    let last = clients.last_mut().unwrap();
    last.shutdown().await.unwrap();
    assert!(is_ended(last).await);
    clients.pop();
    server.wait_for_parked(198).await;
    let start = Instant::now();
    server.stop.send(true).unwrap();
    for client in &mut clients {
        assert!(is_ended(client).await);
    }
    for served in server.served {
        served.await.unwrap();
    }
    assert_eq!(server.connections.count(), 0);
    assert!(start.elapsed() < LONG / 2);
}
