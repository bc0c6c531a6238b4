//! The CUDA driver, found at run time, and the GPUs that it shows to this process.

use super::api::{CudaApi, CudaError};
use super::codes::{NO_DEVICE, SYSTEM_DRIVER_MISMATCH};
use super::gpu::GpuDevice;
use super::pinned::PinnedPool;
use super::settings::DeviceSettings;
use std::fmt;
use std::path::Path;
use std::sync::OnceLock;
use trtserver_base::error::{Error, Result};

/// The driver library's name on Linux.
const LIBRARY: &str = "libcuda.so.1";

/// The oldest CUDA version whose driver has every function that the server needs.
const MIN_VERSION: i32 = 10_000;

/// Process-wide, as `cuInit` is; backends ask for devices in functions that get no pointer to the
/// host.
static DRIVER: ProcessDriver = ProcessDriver { settings: OnceLock::new(), found: OnceLock::new() };

struct ProcessDriver {
    settings: OnceLock<DeviceSettings>,
    found: OnceLock<Result<&'static GpuDriver, DriverAbsence>>,
}

/// Sets the settings of this process, before [`GpuDriver::get`] is called first; later calls have
/// no effect.
pub fn configure_devices(settings: DeviceSettings) {
    let _ = DRIVER.settings.set(settings);
}

/// The settings of this process.
pub fn settings() -> &'static DeviceSettings {
    DRIVER.settings.get_or_init(DeviceSettings::default)
}

/// The driver with at least one GPU.
pub struct GpuDriver {
    /// The CUDA version of the driver, as 1000 × major + 10 × minor.
    pub version: i32,
    devices: Vec<GpuDevice>,
    pinned: &'static PinnedPool,
}

/// Why there is no usable GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DriverAbsence {
    /// Disabled by the environment.
    Disabled,
    NoLibrary(String),
    TooOld {
        version: i32,
    },
    NoDevice {
        visible_devices: Option<String>,
    },
    Failed(CudaError),
}

impl GpuDriver {
    /// The driver of this process: searched once, with the settings of [`configure`].
    ///
    /// # Errors
    /// There is no usable GPU.
    pub fn get() -> Result<&'static GpuDriver, &'static DriverAbsence> {
        let settings = settings();
        let find = || match settings.disabled {
            true => Err(DriverAbsence::Disabled),
            false => GpuDriver::open(Path::new(LIBRARY), settings),
        };
        DRIVER.found.get_or_init(find).as_ref().copied()
    }

    /// The driver, if [`GpuDriver::get`] has found it.
    pub fn found() -> Option<&'static GpuDriver> {
        DRIVER.found.get()?.as_ref().ok().copied()
    }

    /// Opens a driver library. The driver stays open until the process ends.
    ///
    /// # Errors
    /// There is no usable GPU.
    pub fn open(
        library: &Path,
        settings: &DeviceSettings,
    ) -> Result<&'static GpuDriver, DriverAbsence> {
        let api = CudaApi::open(library).map_err(DriverAbsence::NoLibrary)?;
        let mut version = 0;
        // SAFETY: the pointer is valid. Older drivers give their version without `cuInit`.
        unsafe { api.driver_version(&mut version) }.map_err(DriverAbsence::Failed)?;
        if version < MIN_VERSION {
            return Err(DriverAbsence::TooOld { version });
        }
        let api: &'static CudaApi = Box::leak(Box::new(api));
        let mut count = 0;
        // SAFETY: the first call of the driver, and a valid pointer.
        let counted = unsafe { api.init(0).and_then(|()| api.device_count(&mut count)) };
        match counted {
            Err(e) if e.code != NO_DEVICE => return Err(DriverAbsence::Failed(e)),
            Ok(()) if count > 0 => {}
            _ => {
                let visible_devices = std::env::var("CUDA_VISIBLE_DEVICES").ok();
                return Err(DriverAbsence::NoDevice { visible_devices });
            }
        }
        let pinned = Box::leak(Box::new(PinnedPool::new(api, settings.pinned_pool)));
        let find = |ordinal| GpuDevice::find(api, ordinal, settings.pool(ordinal), pinned);
        let devices =
            (0..count).map(find).collect::<Result<_, _>>().map_err(DriverAbsence::Failed)?;
        Ok(Box::leak(Box::new(GpuDriver { version, devices, pinned })))
    }

    /// All visible GPUs by ordinal.
    pub fn devices(&self) -> &[GpuDevice] {
        &self.devices
    }

    /// # Errors
    /// The driver shows no such GPU.
    pub fn device(&self, ordinal: i32) -> Result<&GpuDevice> {
        usize::try_from(ordinal).ok().and_then(|i| self.devices.get(i)).ok_or_else(|| {
            let count = self.devices.len();
            Error::invalid(format!(
                "GPU {ordinal} is not available: this process sees {count} GPUs"
            ))
        })
    }

    pub fn pinned(&self) -> &'static PinnedPool {
        self.pinned
    }
}

/// A GPU of this process.
///
/// # Errors
/// There is no driver, or no such GPU.
pub fn find_gpu(ordinal: i32) -> Result<&'static GpuDevice> {
    match GpuDriver::get() {
        Ok(driver) => driver.device(ordinal),
        Err(absent) => Err(Error::invalid(format!("GPU {ordinal} is not available: {absent}"))),
    }
}

impl fmt::Display for DriverAbsence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disabled => f.write_str("disabled by the environment"),
            Self::NoLibrary(e) => write!(f, "the CUDA driver cannot be used: {e}"),
            Self::TooOld { version } => write!(
                f,
                "the CUDA driver is too old: it supports CUDA {}.{}, at least {}.{} is needed",
                version / 1000,
                version % 1000 / 10,
                MIN_VERSION / 1000,
                MIN_VERSION % 1000 / 10
            ),
            Self::NoDevice { visible_devices: None } => f.write_str("the CUDA driver finds no GPU"),
            Self::NoDevice { visible_devices: Some(list) } => write!(
                f,
                "the CUDA driver finds no GPU; the environment has CUDA_VISIBLE_DEVICES='{list}'"
            ),
            Self::Failed(e) if e.code == SYSTEM_DRIVER_MISMATCH => {
                write!(f, "{e}: the driver library and the kernel module are of different versions")
            }
            Self::Failed(e) => e.fmt(f),
        }
    }
}

impl fmt::Debug for GpuDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Driver {} with {} GPUs", self.version, self.devices.len())
    }
}

#[cfg(test)]
#[path = "driver_tests.rs"]
mod tests;
