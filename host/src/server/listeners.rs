//! Listeners: what each socket serves, and the lines on standard output that name their addresses.

use crate::metrics::Gpus;
use crate::net;
use crate::net::context::Context;
use crate::net::listener::{Bound, Protocol, serve};
use std::io::Write;
use std::sync::Arc;
use tokio::sync::watch;

/// What is served on a socket.
pub enum Listener {
    Http,
    Health,
    Grpc,
    Metrics(Arc<Option<Gpus>>),
}

impl Listener {
    pub async fn serve(self, bound: Bound, context: Arc<Context>, stop: watch::Receiver<bool>) {
        let served = match self {
            Self::Http => {
                let http = move |request, at| net::router::http(Arc::clone(&context), request, at);
                serve(bound, Protocol::Http1, http, stop).await
            }
            Self::Health => serve(bound, Protocol::Http1, net::router::health(context), stop).await,
            Self::Grpc => serve(bound, Protocol::Http2, net::router::grpc(context), stop).await,
            Self::Metrics(gpus) => {
                serve(bound, Protocol::Http1, net::router::metrics(context, gpus), stop).await
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
