//! In place of `otlp` in a server that is built without that feature.

use crate::settings::ExporterSettings;
use crate::span::SpanEncoder;
use std::convert::Infallible;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;
use trtserver_base::telemetry_stats::SpanStats;

/// Why there is no exporter.
const ABSENT: &str = "this server was built without the exporter of OpenTelemetry, as that of `cargo xtask demo` is; use \
     a server of `cargo xtask build`";

/// Has no value: a server without an exporter.
pub struct SpanExporter<E>(Infallible, PhantomData<fn(E)>);

impl<E: SpanEncoder> SpanExporter<E> {
    /// # Errors
    /// Always.
    pub fn start(_: ExporterSettings) -> Result<Self, String> {
        Err(ABSENT.to_owned())
    }

    pub fn offer(&self, _: &E::Source) {
        match self.0 {}
    }

    pub fn stats(&self) -> &Arc<SpanStats> {
        match self.0 {}
    }

    pub fn shut_down(&self, _: Duration) {
        match self.0 {}
    }
}
