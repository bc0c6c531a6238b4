//! The server in the status: phase, limits, connections and GPUs.

use serde::Serialize;
use trtserver_base::budget::request_memory;
use trtserver_base::ledger::ProcessMemory;
use trtserver_base::state::ServerState;
use trtserver_config::ServerSettings;
use trtserver_device::GpuDriver;

/// Open connections of listeners that share a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ConnectionCount {
    pub listeners: &'static str,
    pub open: usize,
    /// `None`: no limit.
    pub limit: Option<usize>,
}

/// Reads them.
pub type ConnectionCounts = Box<dyn Fn() -> Vec<ConnectionCount> + Send + Sync>;

#[derive(Serialize)]
pub struct ServerReport<'a> {
    name: &'a str,
    version: &'a str,
    phase: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    failure: String,
    uptime_s: u64,
    requests_in_flight: u64,
    viewers: usize,
    connections: Vec<ConnectionCount>,
    request_memory: BudgetReport,
    resident_bytes: u64,
    limits: LimitsReport,
    gpus: Vec<GpuReport>,
}

#[derive(Serialize)]
struct BudgetReport {
    in_use: usize,
    peak: usize,
    limit: usize,
}

#[derive(Serialize)]
struct LimitsReport {
    http_max_input_size: u64,
    http_max_body_size: u64,
    grpc_max_message_size: usize,
    /// `None`: no limit.
    max_open_calls: Option<usize>,
    max_instances_per_model: usize,
    max_load_memory: u64,
    model_load_threads: usize,
}

#[derive(Serialize)]
struct GpuReport {
    id: i32,
    name: String,
    uuid: String,
    compute_capability: String,
    total_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    used_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost: Option<String>,
}

impl<'a> ServerReport<'a> {
    pub fn new(
        settings: &'a ServerSettings,
        state: &ServerState,
        connections: Vec<ConnectionCount>,
        viewers: usize,
    ) -> Self {
        let budget = request_memory();
        Self {
            name: &settings.server_name,
            version: &settings.server_version,
            phase: state.phase().name(),
            failure: state.failure(),
            uptime_s: state.uptime_ns() / 1_000_000_000,
            requests_in_flight: state.in_flight(),
            viewers,
            connections,
            request_memory: BudgetReport {
                in_use: budget.in_use(),
                peak: budget.peak(),
                limit: budget.limit(),
            },
            resident_bytes: ProcessMemory::own_process().resident,
            limits: LimitsReport {
                http_max_input_size: settings.http_max_input_size,
                http_max_body_size: settings.http_max_body_size,
                grpc_max_message_size: settings.grpc_max_message_size,
                max_open_calls: settings.connections.max_open_calls,
                max_instances_per_model: settings.max_instances_per_model,
                max_load_memory: settings.max_load_memory,
                model_load_threads: settings.model_load_thread_count,
            },
            gpus: gpu_reports(),
        }
    }
}

/// The GPUs of a driver that was found before; the status does not look for one.
fn gpu_reports() -> Vec<GpuReport> {
    let devices = GpuDriver::found().map(GpuDriver::devices).unwrap_or_default();
    let report = |device: &trtserver_device::GpuDevice| GpuReport {
        id: device.ordinal,
        name: device.name.clone(),
        uuid: device.uuid_text(),
        compute_capability: device.compute_capability_text(),
        total_bytes: device.total_memory,
        used_bytes: device.memory_info().ok().map(|(free, total)| total.saturating_sub(free)),
        lost: device.lost().map(str::to_owned),
    };
    devices.iter().map(report).collect()
}
