//! The regions that clients registered, by name. All frontends share one registry; both kinds of memory share the names.
//!
//! Requests look names up without a lock. A change replaces the map, under a lock: registering is rare.

use super::key;
use super::region::{OpenError, Region};
use crate::error::Error;
use crate::sync::Mutex;
use arc_swap::ArcSwap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Longest name of a region.
const MAX_NAME: usize = 1024;

/// A kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    System,
    Cuda,
}

/// A registered region.
#[derive(Clone)]
enum Registered {
    System(Arc<Region>),
}

impl Registered {
    fn kind(&self) -> Kind {
        match self {
            Self::System(_) => Kind::System,
        }
    }
}

type Regions = BTreeMap<Arc<str>, Registered>;

/// See the module text.
#[derive(Default)]
pub struct Registry {
    regions: ArcSwap<Regions>,
    changing: Mutex<()>,
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
    OtherKind(Kind),
    /// The offset is behind the region's end.
    Offset,
    /// The part ends behind the region's end.
    Range,
    /// The region's pages are missing.
    Fault(Error),
}

impl Registry {
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
            let region = Region::open(name, key, offset, len).map_err(RegisterError::Open)?;
            Ok(Registered::System(Arc::new(region)))
        })
    }

    fn register(
        &self,
        name: &str,
        open: impl FnOnce() -> Result<Registered, RegisterError>,
    ) -> Result<(), RegisterError> {
        if name.is_empty() {
            return Err(RegisterError::Name("the name is empty".to_owned()));
        }
        if name.len() > MAX_NAME {
            let why = format!("the name has {} bytes, at most {MAX_NAME} are allowed", name.len());
            return Err(RegisterError::Name(why));
        }
        let _changing = self.changing.lock();
        let known = self.regions.load();
        if known.contains_key(name) {
            return Err(RegisterError::Exists);
        }
        let region = open()?;
        let mut regions = Regions::clone(&known);
        regions.insert(name.into(), region);
        self.regions.store(Arc::new(regions));
        Ok(())
    }

    /// Unregisters the region, if there is one of that kind; `None` = of any kind. Requests that use it keep it.
    pub fn unregister(&self, kind: Option<Kind>, name: &str) {
        self.retain(|known, region| {
            known != name || kind.is_some_and(|kind| region.kind() != kind)
        });
    }

    /// Unregisters all regions of a kind, or of any kind.
    pub fn unregister_all(&self, kind: Option<Kind>) {
        self.retain(|_, region| kind.is_some_and(|kind| region.kind() != kind));
    }

    fn retain(&self, keep: impl Fn(&str, &Registered) -> bool) {
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
    pub fn system_regions(&self) -> Vec<Arc<Region>> {
        let system = |region: &Registered| match region {
            Registered::System(region) => Some(Arc::clone(region)),
        };
        self.regions.load().values().filter_map(system).collect()
    }

    /// A system region.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn system_region(&self, name: &str) -> Result<Arc<Region>, UseError> {
        match self.regions.load().get(name) {
            Some(Registered::System(region)) => Ok(Arc::clone(region)),
            None => Err(UseError::Unknown),
        }
    }

    /// The region of a tensor of `len` bytes at `offset`, which is in it.
    ///
    /// # Errors
    /// See [`UseError`].
    pub fn part(&self, name: &str, offset: u64, len: u64) -> Result<Arc<Region>, UseError> {
        let region = self.system_region(name)?;
        let size = region.len() as u64;
        if offset >= size {
            return Err(UseError::Offset);
        }
        if len > size - offset {
            return Err(UseError::Range);
        }
        match region.fault() {
            Some(error) => Err(UseError::Fault(error)),
            None => Ok(region),
        }
    }
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
