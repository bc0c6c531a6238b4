//! GPU metrics through NVML, loaded at run time: of the GPUs that the CUDA driver shows to this
//! process.

use super::cached_reading::CachedReading;
use super::family::{FamilyBuilder, Labels};
use nvml_wrapper::Nvml;
use prometheus::proto::MetricFamily;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A quantity that fails this often in a row is no longer read (docs/protocol/v1.md §10).
const MAX_FAILURES: u32 = 3;

/// NVML with its devices. Values are read once per interval.
pub struct GpuMetrics {
    nvml: Nvml,
    devices: Vec<NvmlDevice>,
    families: CachedReading<Vec<MetricFamily>>,
}

struct NvmlDevice {
    /// CUDA ordinal.
    ordinal: i32,
    uuid: String,
    energy_at_start_mj: u64,
    /// Failures in a row, in the order of `QUANTITIES`.
    failures: [AtomicU32; QUANTITIES.len()],
}

/// Reads one quantity of a device. The argument is the energy counter at the start of the server.
type Read = fn(&nvml_wrapper::Device<'_>, u64) -> Result<f64, nvml_wrapper::error::NvmlError>;

/// Name, help, whether it is a counter (else a gauge), and how it is read.
const QUANTITIES: [(&str, &str, bool, Read); 6] = [
    ("nv_gpu_utilization", "GPU utilization rate [0.0 - 1.0)", false, |d, _| {
        Ok(f64::from(d.utilization_rates()?.gpu) / 100.0)
    }),
    ("nv_gpu_memory_total_bytes", "GPU total memory, in bytes", false, |d, _| {
        Ok(d.memory_info()?.total as f64)
    }),
    ("nv_gpu_memory_used_bytes", "GPU used memory, in bytes", false, |d, _| {
        Ok(d.memory_info()?.used as f64)
    }),
    ("nv_gpu_power_usage", "GPU power usage in watts", false, |d, _| {
        Ok(f64::from(d.power_usage()?) / 1000.0)
    }),
    ("nv_gpu_power_limit", "GPU power management limit in watts", false, |d, _| {
        Ok(f64::from(d.enforced_power_limit()?) / 1000.0)
    }),
    (
        "nv_energy_consumption",
        "GPU energy consumption in joules since the server started",
        true,
        |d, start| Ok(d.total_energy_consumption()?.saturating_sub(start) as f64 / 1000.0),
    ),
];

impl GpuMetrics {
    /// The utilization of each GPU by its UUID, from 0 to 1.
    pub fn utilization(&self) -> Vec<(String, f64)> {
        let families = self.families();
        let family = families.iter().find(|family| family.name() == QUANTITIES[0].0);
        let values = family.into_iter().flat_map(|family| family.get_metric());
        let uuid = |labels: &[prometheus::proto::LabelPair]| {
            let label = labels.iter().find(|label| label.name() == "gpu_uuid");
            label.map(|label| label.value().to_owned())
        };
        values.filter_map(|m| Some((uuid(m.get_label())?, m.get_gauge().get_value()))).collect()
    }

    /// Opens NVML for these GPUs: CUDA ordinals and UUIDs. NVML numbers all GPUs of the machine, in
    /// another order, so the UUID alone tells which is which. Without NVML there are no GPU
    /// metrics, which is logged once.
    pub fn open(interval: Duration, visible: Vec<(i32, String)>) -> Option<Self> {
        let nvml = match Nvml::init() {
            Ok(nvml) => nvml,
            Err(e) => {
                tracing::info!("GPU metrics are not available: {e}");
                return None;
            }
        };
        let mut devices = Vec::new();
        for (ordinal, uuid) in visible {
            let device = match nvml.device_by_uuid(uuid.as_str()) {
                Ok(device) => device,
                Err(e) => {
                    tracing::warn!("GPU {ordinal}: NVML does not know {uuid}: {e}");
                    continue;
                }
            };
            let energy_at_start_mj = device.total_energy_consumption().unwrap_or(0);
            let name = device.name().unwrap_or_default();
            devices.push((
                name,
                NvmlDevice { ordinal, uuid, energy_at_start_mj, failures: Default::default() },
            ));
        }
        tracing::info!("found {} GPUs supporting NVML metrics", devices.len());
        for (name, device) in &devices {
            tracing::info!("  GPU {}: {name}", device.ordinal);
        }
        let devices = devices.into_iter().map(|(_, device)| device).collect();
        Some(Self { nvml, devices, families: CachedReading::new(interval) })
    }

    pub fn families(&self) -> Vec<MetricFamily> {
        self.families.get(|| self.read())
    }

    fn read(&self) -> Vec<MetricFamily> {
        let read_one = |(i, (name, help, counter, read)): (usize, &(&str, &str, bool, Read))| {
            let mut family = if *counter {
                FamilyBuilder::counter(name, help)
            } else {
                FamilyBuilder::gauge(name, help)
            };
            for device in &self.devices {
                let failures = &device.failures[i];
                if failures.load(Ordering::Relaxed) >= MAX_FAILURES {
                    continue;
                }
                let value = self
                    .nvml
                    .device_by_uuid(device.uuid.as_str())
                    .and_then(|d| read(&d, device.energy_at_start_mj));
                match value {
                    Ok(value) => {
                        failures.store(0, Ordering::Relaxed);
                        let labels: Labels = vec![("gpu_uuid".into(), device.uuid.clone())];
                        family.put(&labels, value);
                    }
                    Err(e) => {
                        failures.fetch_add(1, Ordering::Relaxed);
                        tracing::warn!("GPU {}: cannot read {name}: {e}", device.ordinal);
                    }
                }
            }
            family.done()
        };
        QUANTITIES.iter().enumerate().map(read_one).collect()
    }
}
