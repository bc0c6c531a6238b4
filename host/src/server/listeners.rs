//! Listeners: what each socket serves, and the lines on standard output that name their addresses.

use crate::metrics::Page;
use crate::net;
use crate::net::connections::Connections;
use crate::net::context::Context;
use crate::net::listener::{Bound, Ping, Protocol, serve};
use std::io::Write;
use std::sync::Arc;
use tokio::sync::watch;

/// What is served on a socket.
pub enum Listener {
    Http,
    Health,
    Grpc,
    Metrics(Arc<Page>),
}

impl Listener {
    /// Serves until `stop` turns true. `connections` are those of this listener, and of others that share their limit.
    pub async fn serve(
        self,
        bound: Bound,
        context: Arc<Context>,
        connections: Arc<Connections>,
        stop: watch::Receiver<bool>,
    ) {
        let limits = context.settings.connections;
        let unread = context.settings.unread;
        let http1 = Protocol::Http1 { keepalive: limits.tcp_keepalive };
        let ping = limits.grpc_keepalive_time;
        let ping = ping.map(|interval| Ping { interval, timeout: limits.grpc_keepalive_timeout });
        let http2 = Protocol::Http2 { keepalive: limits.tcp_keepalive, ping };
        let served = match self {
            Self::Http => {
                let http = move |request, at| net::router::http(Arc::clone(&context), request, at);
                serve(bound, http1, http, connections, unread, stop).await
            }
            Self::Health => {
                serve(bound, http1, net::router::health(context), connections, unread, stop).await
            }
            Self::Grpc => {
                serve(bound, http2, net::router::grpc(context), connections, unread, stop).await
            }
            Self::Metrics(page) => {
                serve(bound, http1, net::router::metrics(page), connections, unread, stop).await
            }
        };
        if let Err(e) = served {
            tracing::error!("{e}");
        }
    }
}

/// Prints the addresses for scripts, one line each on standard output, before models are loaded.
pub fn announce(sockets: &[(&str, &Option<Bound>)]) {
    for (name, bound) in sockets {
        if let Some(bound) = bound {
            print_line(&format!("listening {name} {}", bound.address));
        }
    }
}

/// Prints a line on standard output. Ignores errors: standard output may be closed.
pub fn print_line(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}
