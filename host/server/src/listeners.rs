//! Listeners: their sockets, what each serves, and the lines on standard output and in the log that
//! name their addresses.

use super::start_lines::Ports;
use crate::router::{HttpRouter, HttpRoutes};
use crate::{cross_origin, router};
use std::io::Write;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::watch;
use trtserver_base::error::Result;
use trtserver_config::{ControlAddress, ServerSettings};
use trtserver_metrics::MetricsPage;
use trtserver_telemetry::access_log::AccessLog;
use trtserver_wire::bind::{BoundListener, Sockets};
use trtserver_wire::connections::{Connections, Wire};
use trtserver_wire::context::FrontendContext;
use trtserver_wire::listener::{
    ConnectionLimits, ListenerService, Ping, Protocol, serve_connections,
};
use trtserver_wire::tls::{TlsEndpoint, TlsListener, TlsListeners, TlsReloader};

/// What is served on a socket.
#[derive(Clone)]
pub enum Listener {
    /// With the metrics page for `--http-metrics`.
    Http(Option<Arc<MetricsPage>>),
    Health,
    /// Control over HTTP, with everything else but inference.
    Control,
    Grpc,
    /// Control over gRPC, with everything else but inference.
    ControlGrpc,
    Metrics(Arc<MetricsPage>),
}

impl Listener {
    /// Its name in the lines of standard output, and in log and metrics of TLS.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Http(_) => HTTP,
            Self::Health => HEALTH,
            Self::Control => CONTROL,
            Self::Grpc => GRPC,
            Self::ControlGrpc => CONTROL_GRPC,
            Self::Metrics(_) => METRICS,
        }
    }

    /// Serves until `stop` turns true. `connections` are those of this listener, and of others that
    /// share their limit; the runtime `heavy` polls heavy ones.
    pub async fn serve(
        self,
        bound: BoundListener,
        context: Arc<FrontendContext>,
        connections: Arc<Connections>,
        (tls, access_log): (Option<Arc<TlsEndpoint>>, Option<Arc<AccessLog>>),
        heavy: Handle,
        stop: watch::Receiver<bool>,
    ) {
        let settings = context.settings.connections;
        let limits = ConnectionLimits {
            tcp_keepalive: settings.tcp_keepalive,
            unread: context.settings.unread,
        };
        let ping = settings.grpc_keepalive_time;
        let ping = ping.map(|interval| Ping { interval, timeout: settings.grpc_keepalive_timeout });
        // Probes and scrapes are not in it.
        let access_log = access_log.filter(|_| !matches!(self, Self::Health | Self::Metrics(_)));
        let protocol = match self {
            Self::Grpc | Self::ControlGrpc => Protocol::Http2 { ping },
            _ => Protocol::Http1,
        };
        if tls.is_some() && bound.port.is_none() {
            tracing::info!("{}: a Unix socket has no TLS", bound.address);
        }
        /// The service of a handler.
        macro_rules! serve {
            ($handler:expr) => {{
                let handler = $handler;
                let service = ListenerService { protocol, handler, limits, tls, access_log, heavy };
                serve_connections(bound, service, connections, stop).await
            }};
        }
        let served = match self {
            Self::Http(page) => {
                let context = cross_origin::check_origins(context);
                serve!(HttpRouter(HttpRoutes::new(context, page)))
            }
            Self::Health => serve!(router::route_health(context)),
            Self::Grpc => serve!(router::route_grpc(context)),
            Self::Control => serve!(router::route_control(context)),
            Self::ControlGrpc => serve!(router::route_control_grpc(context)),
            Self::Metrics(page) => serve!(router::route_metrics(context, page)),
        };
        if let Err(e) = served {
            tracing::error!("{e}");
        }
    }
}

const HTTP: &str = "http";
const GRPC: &str = "grpc";
const METRICS: &str = "metrics";
const HEALTH: &str = "health";
const CONTROL: &str = "control";
const CONTROL_GRPC: &str = "control-grpc";

/// The open sockets of the server; empty for listeners that are disabled.
pub struct OpenListeners {
    pub http: Vec<BoundListener>,
    pub grpc: Vec<BoundListener>,
    pub metrics: Vec<BoundListener>,
    pub health: Vec<BoundListener>,
    pub control: Vec<BoundListener>,
    pub control_grpc: Vec<BoundListener>,
}

impl OpenListeners {
    /// Opens all sockets before one is served, so that an address in use is reported before any
    /// request is accepted. None listens yet. The reloader is to be run for as long as the server is.
    ///
    /// # Errors
    /// Names the address that cannot be opened, or the file of TLS that cannot be used.
    pub fn new(s: &ServerSettings) -> Result<(Self, TlsListeners, TlsReloader)> {
        let open = |on: bool, what, addresses, port, reuse_port| match on {
            true => Sockets { what, addresses, port, reuse_port }.bind(),
            false => Ok(Vec::new()),
        };
        let metrics = &s.metrics_addresses;
        let metrics = open(s.allow_metrics, "Metrics Service", metrics, s.metrics_port, false)?;
        let grpc = &s.grpc_addresses;
        let grpc = open(s.allow_grpc, "GRPCService", grpc, s.grpc_port, s.reuse_grpc_port)?;
        let http = &s.http_addresses;
        let http = open(s.allow_http, "HTTPService", http, s.http_port, s.reuse_http_port)?;
        let (health, port) = (&s.health_addresses, s.http_health_port.unwrap_or_default());
        let health = open(true, "HTTP health", health, port, false)?;
        let control = open_control("HTTP control", &s.access.control)?;
        let control_grpc = open_control("gRPC control", &s.access.control_grpc)?;
        let served = [
            (HTTP, Wire::Http1, s.tls.http.as_ref(), &http),
            (GRPC, Wire::Http2, s.tls.grpc.as_ref(), &grpc),
            (METRICS, Wire::Http1, s.tls.metrics.as_ref(), &metrics),
            (HEALTH, Wire::Http1, s.tls.health.as_ref(), &health),
            (CONTROL, Wire::Http1, s.tls.http.as_ref(), &control),
            (CONTROL_GRPC, Wire::Http2, s.tls.grpc.as_ref(), &control_grpc),
        ];
        let with_tls = served.into_iter().filter(|(.., bound)| !bound.is_empty());
        let with_tls: Vec<_> = with_tls
            .filter_map(|(name, wire, files, _)| Some(TlsListener { name, wire, files: files? }))
            .collect();
        let (tls, reloader) = TlsListeners::open(&with_tls)?;
        Ok((Self { http, grpc, metrics, health, control, control_grpc }, tls, reloader))
    }

    /// The listeners for health alone, which are taken out.
    pub fn take_health(&mut self) -> Self {
        let health = std::mem::take(&mut self.health);
        let [http, grpc, metrics, control, control_grpc] = [(); 5].map(|()| Vec::new());
        Self { http, grpc, metrics, health, control, control_grpc }
    }

    /// Lets clients connect to all of them.
    ///
    /// # Errors
    /// Names the address that cannot be opened.
    pub fn listen(&mut self) -> Result<()> {
        let Self { http, grpc, metrics, health, control, control_grpc } = self;
        let mut all = [metrics, grpc, http, health, control, control_grpc].into_iter().flatten();
        all.try_for_each(BoundListener::listen)
    }

    /// The first port of each listener; `None` without one, such as on Unix sockets only.
    pub fn ports(&self) -> Ports {
        let first = |sockets: &[BoundListener]| sockets.iter().find_map(|bound| bound.port);
        Ports { http: first(&self.http), grpc: first(&self.grpc), metrics: first(&self.metrics) }
    }

    /// Prints the addresses for scripts, one line each on standard output, once they are open.
    pub fn announce(&self) {
        let kinds = [
            (HTTP, &self.http),
            (GRPC, &self.grpc),
            (METRICS, &self.metrics),
            (HEALTH, &self.health),
            (CONTROL, &self.control),
            (CONTROL_GRPC, &self.control_grpc),
        ];
        for (kind, sockets) in kinds {
            sockets.iter().for_each(|s| print_line(&format!("listening {kind} {}", s.address)));
        }
    }
}

/// The socket of a control listener; none without one.
fn open_control(
    what: &'static str,
    control: &Option<ControlAddress>,
) -> Result<Vec<BoundListener>> {
    let port = control.as_ref().map_or(0, |control| control.port);
    Sockets { what, addresses: ControlAddress::list(control), port, reuse_port: false }.bind()
}

/// Prints a line on standard output. Ignores errors: standard output may be closed.
pub fn print_line(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}
