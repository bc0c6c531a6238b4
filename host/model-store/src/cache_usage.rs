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

/// The cache of a server, which knows its use.
pub trait CacheReport: Send + Sync {
    /// Lists the files; `None` if they cannot be listed.
    fn cache_usage(&self) -> Option<CacheUsage>;

    /// Removes the directories of this server's models, which must be closed.
    fn remove_copies(&self);
}
