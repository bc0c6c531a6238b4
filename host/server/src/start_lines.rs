//! Start lines of TRTIS in the log (docs/protocol/v1.md §1.3, §1.5), which scripts wait for.

use trtserver_config::{ProgramName, ServerSettings};

/// Ports that are served.
pub struct Ports {
    pub http: Option<u16>,
    pub grpc: Option<u16>,
    pub metrics: Option<u16>,
}

/// Logs the first line of the release whose program name was used.
pub fn log_initializing(settings: &ServerSettings) {
    let name = match settings.program {
        ProgramName::InferenceServer | ProgramName::Trtserver => "TensorRT",
        ProgramName::Tritonserver => "Triton",
    };
    let version = env!("CARGO_PKG_VERSION");
    tracing::info!("Initializing {name} Inference Server (trtserver {version})");
}

/// Logs what is served, with the texts of 18.04 or of 0.12. Triton's lines are logged by the
/// listeners.
pub fn log_listening(settings: &ServerSettings, ports: &Ports) {
    if settings.emulate_18_04 || settings.program == ProgramName::InferenceServer {
        if let Some(port) = ports.http {
            tracing::info!("Starting server listening on :{port}");
        }
        return;
    }
    if settings.program == ProgramName::Tritonserver {
        return;
    }
    if let Some(port) = ports.metrics {
        tracing::info!("Reporting prometheus metrics on port {port}");
    }
    tracing::info!("Starting server '{}' listening on", settings.server_id);
    for (port, protocol) in [(ports.grpc, "gRPC"), (ports.http, "HTTP")] {
        if let Some(port) = port {
            tracing::info!(" localhost:{port} for {protocol} requests");
        }
    }
}
