//! Settings of the devices, given once before the driver is searched.

use std::collections::BTreeMap;

/// Bytes that a pool of device memory keeps by default, as in both predecessors.
const DEVICE_POOL: u64 = 64 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSettings {
    /// Use no GPU.
    pub disabled: bool,
    /// Bytes of pinned memory.
    pub pinned_pool: u64,
    /// Bytes of free memory that the pool of a GPU keeps, by ordinal.
    pub pools: BTreeMap<i32, u64>,
}

impl Default for DeviceSettings {
    fn default() -> Self {
        Self { disabled: false, pinned_pool: 256 << 20, pools: BTreeMap::new() }
    }
}

impl DeviceSettings {
    pub(super) fn pool(&self, ordinal: i32) -> u64 {
        self.pools.get(&ordinal).copied().unwrap_or(DEVICE_POOL)
    }
}
