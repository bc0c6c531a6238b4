//! Connection limits and timeouts of the listeners, from the settings.

use super::descriptor_limit;
use std::sync::Arc;
use std::time::Duration;
use trtserver_base::budget::OpenCallLimit;
use trtserver_config::{MaxConnections, ServerSettings};
use trtserver_status_page::{ConnectionCount, ConnectionCounts};
use trtserver_wire::connections::{Connections, Timeouts};

/// A request head that has been incomplete for longer is given up before idle connections. Heads of
/// probes and scrapes fit into a packet, so on their listeners every incomplete one is.
const STALLED_HEAD: Duration = Duration::from_secs(1);

/// The connections of the listeners. Those for health and metrics have limits of their own, so that
/// clients cannot take their place.
pub struct ListenerConnections {
    /// HTTP and gRPC.
    pub requests: Arc<Connections>,
    pub health: Arc<Connections>,
    pub metrics: Arc<Connections>,
}

impl ListenerConnections {
    /// Must be called inside the runtime.
    pub fn new(settings: &ServerSettings, calls: &'static OpenCallLimit) -> Self {
        let (settings, tls) = (&settings.connections, &settings.tls);
        let timeouts = Timeouts {
            handshake: tls.handshake_timeout,
            header: settings.header_timeout,
            body: settings.body_timeout,
            first_message: settings.first_message_timeout,
            body_rate: settings.body_min_rate,
            idle: settings.idle_timeout,
            age: settings.max_age,
            http2_age: settings.grpc_max_age,
            http2_age_grace: settings.grpc_max_age_grace,
            stalled_head: STALLED_HEAD,
        };
        let max = match settings.max {
            MaxConnections::Derived => descriptor_limit::max_connections(),
            MaxConnections::Unlimited => usize::MAX,
            MaxConnections::Limited(max) => max,
        };
        let of_probes = Timeouts { stalled_head: Duration::ZERO, ..timeouts };
        let limited = |max, timeouts| Connections::new(max, tls.max_handshakes, timeouts, calls);
        let reserved = || limited(descriptor_limit::reserved_connections(), of_probes);
        let requests = limited(max, timeouts);
        Self { requests, health: reserved(), metrics: reserved() }
    }

    /// Reads how many connections are open.
    pub fn counts(&self) -> ConnectionCounts {
        let shared = [
            ("http, grpc", Arc::clone(&self.requests)),
            ("health, control", Arc::clone(&self.health)),
            ("metrics", Arc::clone(&self.metrics)),
        ];
        Box::new(move || {
            let count = |(listeners, connections): &(&'static str, Arc<Connections>)| {
                let (open, limit) = (connections.count(), connections.limit());
                ConnectionCount { listeners, open, limit }
            };
            shared.iter().map(count).collect()
        })
    }

    /// Each response from now on is the last one of its connection.
    pub fn drain(&self) {
        self.all().for_each(|connections| connections.drain());
    }

    /// Lets clients move to other servers while requests are still accepted: an HTTP or gRPC
    /// connection that is older than `age` ends with its current requests.
    pub fn shed(&self, age: Duration) {
        self.requests.shed(age);
    }

    /// Ends requests that have not arrived completely and began more than `grace` ago.
    pub fn end_incomplete(&self, grace: Duration) {
        self.all().for_each(|connections| connections.end_incomplete(grace));
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Connections>> {
        [&self.requests, &self.health, &self.metrics].into_iter()
    }
}
