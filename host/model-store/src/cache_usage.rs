//! Use of the local cache of objects, for the metrics page.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheUsage {
    /// On disk, with unfinished downloads.
    pub bytes: u64,
    /// `None` = no limit.
    pub limit: Option<u64>,
    /// Contents that were found, and contents that had to be downloaded.
    pub hits: u64,
    pub misses: u64,
}
