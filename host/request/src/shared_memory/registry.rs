//! The regions that clients registered, by name. All frontends share one registry; both kinds of
//! memory share the names.
//!
//! Requests look names up without a lock. A change replaces the map, under a lock: registering is
//! rare.

use super::cuda_region::{CudaRegion, HANDLE_BYTES};
use super::key;
use super::region::{OpenError, SystemRegion};
use crate::memory::PlacedMemory;
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use trtserver_base::error::Error;
use trtserver_device::GpuDevice;

/// Longest name of a region.
const MAX_NAME: usize = 1024;

/// A kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionKind {
    System,
    Cuda,
}

/// A registered region.
#[derive(Clone)]
enum RegisteredRegion {
    System(Arc<SystemRegion>),
    Cuda(Arc<CudaRegion>),
}

impl RegisteredRegion {
    fn kind(&self) -> RegionKind {
        match self {
            Self::System(_) => RegionKind::System,
            Self::Cuda(_) => RegionKind::Cuda,
        }
    }

    fn system(&self) -> Option<Arc<SystemRegion>> {
        match self {
            Self::System(region) => Some(Arc::clone(region)),
            Self::Cuda(_) => None,
        }
    }

    fn cuda(&self) -> Option<Arc<CudaRegion>> {
        match self {
            Self::System(_) => None,
            Self::Cuda(region) => Some(Arc::clone(region)),
        }
    }
}

type Regions = BTreeMap<Arc<str>, RegisteredRegion>;

/// The registered regions by name; look-ups take no lock.
#[derive(Default)]
pub struct RegionRegistry {
    regions: ArcSwap<Regions>,
    changing: Mutex<()>,
    /// The last number of a region.
    numbers: AtomicU64,
}

/// Why a region is not registered.
#[derive(Clone, Debug, PartialEq)]
pub enum RegisterError {
    /// The name of the region is empty or too long.
    Name(String),
    /// Clients may not use the object.
    ReservedKey,
    Exists,
    Open(OpenError),
}

/// Why a part of a region cannot be used.
#[derive(Clone, Debug, PartialEq)]
pub enum UseError {
    Unknown,
    /// No region of that kind has the name, but one of this kind.
    OtherKind(RegionKind),
    /// The offset is behind the region's end.
    Offset,
    /// The part ends behind the region's end.
    Range,
    /// The region's pages are missing.
    Fault(Error),
}

impl RegionRegistry {
    /// Registers `len` bytes at `offset` of the object `key`.
    ///
    /// # Errors
    /// See [`RegisterError`].
    pub fn register_system(
        &self,
        name: &str,
        key: &str,
        offset: u64,
        len: u64,
    ) -> Result<(), RegisterError> {
        if key::is_reserved(key) {
            return Err(RegisterError::ReservedKey);
        }
        self.register(name, || {
            let region = SystemRegion::open(name, key, offset, len).map_err(RegisterError::Open)?;
            Ok(RegisteredRegion::System(Arc::new(region.with_number(self.next_number()))))
        })
    }

    /// Registers the first `len` bytes of GPU memory of another process. Not on a network thread,
    /// see [`CudaRegion::open`].
    ///
    /// # Errors
    /// See [`RegisterError`].
    pub fn register_cuda(
        &self,
        name: &str,
        handle: [u8; HANDLE_BYTES],
        device: &'static GpuDevice,
        len: u64,
    ) -> Result<(), RegisterError> {
        // Opened before the lock is taken, which other registrations wait for on network threads.
        self.check_name(name)?;
        let region = CudaRegion::open(name, handle, device, len).map_err(RegisterError::Open)?;
        let region = region.with_number(self.next_number());
        self.register(name, || Ok(RegisteredRegion::Cuda(Arc::new(region))))
    }

    fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn check_name(&self, name: &str) -> Result<(), RegisterError> {
        if name.is_empty() {
            return Err(RegisterError::Name("the name is empty".to_owned()));
        }
        if name.len() > MAX_NAME {
            let why = format!("the name has {} bytes, at most {MAX_NAME} are allowed", name.len());
            return Err(RegisterError::Name(why));
        }
        match self.regions.load().contains_key(name) {
            true => Err(RegisterError::Exists),
            false => Ok(()),
        }
    }

    fn register(
        &self,
        name: &str,
        open: impl FnOnce() -> Result<RegisteredRegion, RegisterError>,
    ) -> Result<(), RegisterError> {
        let _changing = self.changing.lock();
        self.check_name(name)?;
        let region = open()?;
        let mut regions = Regions::clone(&self.regions.load());
        regions.insert(name.into(), region);
        self.regions.store(Arc::new(regions));
        Ok(())
    }

    /// Unregisters the region, if there is one of that kind; `None` = of any kind. Requests that
    /// use it keep it.
    pub fn unregister(&self, kind: Option<RegionKind>, name: &str) {
        self.retain(|known, region| {
            known != name || kind.is_some_and(|kind| region.kind() != kind)
        });
    }

    /// Unregisters all regions of a kind, or of any kind.
    pub fn unregister_all(&self, kind: Option<RegionKind>) {
        self.retain(|_, region| kind.is_some_and(|kind| region.kind() != kind));
    }

    fn retain(&self, keep: impl Fn(&str, &RegisteredRegion) -> bool) {
        let _changing = self.changing.lock();
        let known = self.regions.load();
        if known.iter().all(|(name, region)| keep(name, region)) {
            return;
        }
        let kept = known.iter().filter(|(name, region)| keep(name, region));
        let kept: Regions = kept.map(|(name, region)| (Arc::clone(name), region.clone())).collect();
        self.regions.store(Arc::new(kept));
    }

    /// The system regions by name.
    pub fn system_regions(&self) -> Vec<Arc<SystemRegion>> {
        self.regions.load().values().filter_map(RegisteredRegion::system).collect()
    }

    /// The CUDA regions by name.
    pub fn cuda_regions(&self) -> Vec<Arc<CudaRegion>> {
        self.regions.load().values().filter_map(RegisteredRegion::cuda).collect()
    }

    /// A system region.
    ///
    /// # Errors
    /// No region of that kind has that name.
    pub fn system_region(&self, name: &str) -> Result<Arc<SystemRegion>, UseError> {
        self.find(name)?.system().ok_or(UseError::OtherKind(RegionKind::Cuda))
    }

    /// A CUDA region.
    ///
    /// # Errors
    /// No region of that kind has that name.
    pub fn cuda_region(&self, name: &str) -> Result<Arc<CudaRegion>, UseError> {
        self.find(name)?.cuda().ok_or(UseError::OtherKind(RegionKind::System))
    }

    fn find(&self, name: &str) -> Result<RegisteredRegion, UseError> {
        self.regions.load().get(name).cloned().ok_or(UseError::Unknown)
    }

    /// The memory of the region of a tensor of `len` bytes at `offset`, which is in it.
    ///
    /// # Errors
    /// See [`UseError`].
    pub fn part(&self, name: &str, offset: u64, len: u64) -> Result<Arc<PlacedMemory>, UseError> {
        let memory = match self.find(name)? {
            RegisteredRegion::System(region) => region.memory(),
            RegisteredRegion::Cuda(region) => region.memory(),
        };
        let size = memory.len() as u64;
        if offset >= size {
            return Err(UseError::Offset);
        }
        if len > size - offset {
            return Err(UseError::Range);
        }
        match memory.fault() {
            Some(error) => Err(UseError::Fault(error)),
            None => Ok(memory),
        }
    }
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
