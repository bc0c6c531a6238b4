//! Client shared memory as requests of both generations name it: a part of a registered region.

/// Part of a registered region. Its bounds are not checked yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionSlice {
    pub region: String,
    /// From the start of the region.
    pub offset: u64,
    pub byte_size: u64,
}
