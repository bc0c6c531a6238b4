//! Settings that exclude each other.

use super::{ControlAddress, ListenAddress, ServerSettings};

/// Refuses settings that are each valid but exclude each other. The first four texts are those of
/// Triton.
pub fn check_conflicts(s: &ServerSettings) -> Result<(), String> {
    let http = PortUse::from_listener(s.allow_http, &s.http_addresses, Some(s.http_port));
    let health = PortUse::from_listener(true, &s.health_addresses, s.http_health_port);
    let grpc = PortUse::from_listener(s.allow_grpc, &s.grpc_addresses, Some(s.grpc_port));
    let metrics =
        PortUse::from_listener(s.allow_metrics, &s.metrics_addresses, Some(s.metrics_port));
    let control = PortUse::from_control(&s.access.control);
    let control_grpc = PortUse::from_control(&s.access.control_grpc);
    let same =
        |a: Option<PortUse<'_>>, b: Option<PortUse<'_>>| a.zip(b).is_some_and(|(a, b)| a.meets(&b));
    let error = if s.model_repositories.is_empty() {
        "--model-store must be specified"
    } else if !s.allow_http && !s.allow_grpc && s.health_addresses.is_empty() {
        "At least one of the following options must be true: --allow-http, --allow-grpc"
    } else if same(http, grpc) {
        "The server cannot listen to HTTP requests and gRPC requests at the same port"
    } else if same(metrics, http) || same(metrics, grpc) {
        "The server cannot provide metrics on same port used for HTTP or gRPC requests"
    } else if same(health, grpc) || same(health, metrics) {
        "The server cannot serve health on the port used for gRPC requests or metrics"
    } else if [http, grpc, metrics, health].into_iter().any(|other| same(control, other)) {
        "--control-address has the port of another listener: control needs one of its own"
    } else if [http, grpc, metrics, health, control]
        .into_iter()
        .any(|other| same(control_grpc, other))
    {
        "--control-grpc-address has the port of another listener: control over gRPC needs one of its own"
    } else if s.http_metrics && !s.allow_metrics {
        "--http-metrics and --allow-metrics=false contradict each other: without metrics there is no page to serve"
    } else if s.http_metrics && !s.allow_http {
        "--http-metrics requires the HTTP port, which --allow-http=false or --http-port=-1 does not serve"
    } else if s.load_models.len() > 1 && s.load_models.iter().any(|name| name == "*") {
        "--load-model=* loads all models and must be the only --load-model"
    } else if let Some(socket) = shared_socket(s) {
        return Err(format!("{socket} is given to two listeners: each needs a socket of its own"));
    } else {
        return Ok(());
    };
    Err(error.to_owned())
}

/// The port of a listener and the addresses at which it listens on it.
#[derive(Clone, Copy)]
struct PortUse<'a> {
    port: u16,
    addresses: &'a [ListenAddress],
}

impl<'a> PortUse<'a> {
    /// `None` for a listener that is off, has any free port, or Unix sockets only.
    fn from_listener(on: bool, addresses: &'a [ListenAddress], port: Option<u16>) -> Option<Self> {
        let port = port.filter(|port| on && *port != 0)?;
        addresses.iter().any(ListenAddress::is_host).then_some(Self { port, addresses })
    }

    /// Of a control listener, if there is one.
    fn from_control(control: &'a Option<ControlAddress>) -> Option<Self> {
        let port = control.as_ref().map(|control| control.port);
        Self::from_listener(true, ControlAddress::list(control), port)
    }

    /// One port at different addresses serves two listeners.
    fn meets(&self, other: &Self) -> bool {
        let meets = |own: &ListenAddress| other.addresses.iter().any(|of| own.shares_host(of));
        self.port == other.port && self.addresses.iter().any(meets)
    }
}

/// A Unix socket that two listeners would open.
fn shared_socket(s: &ServerSettings) -> Option<&ListenAddress> {
    let listeners = [
        (s.allow_http, &s.http_addresses[..]),
        (true, &s.health_addresses),
        (s.allow_grpc, &s.grpc_addresses),
        (s.allow_metrics, &s.metrics_addresses),
        (true, ControlAddress::list(&s.access.control)),
        (true, ControlAddress::list(&s.access.control_grpc)),
    ];
    let served = listeners.into_iter().filter(|(on, _)| *on).flat_map(|(_, addresses)| addresses);
    let mut sockets: Vec<_> = served.filter(|address| !address.is_host()).collect();
    while let Some(socket) = sockets.pop() {
        if sockets.contains(&socket) {
            return Some(socket);
        }
    }
    None
}
