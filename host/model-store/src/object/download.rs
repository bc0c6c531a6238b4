//! Downloads one object into the cache, in chunks and in parallel.

use super::super::cache::{CachedBlob, CachedTree, ModelCache, ObjectKey, PartialDownload};
use super::client::StoreClient;
use super::message;
use super::progress::DownloadProgress;
use object_store::{GetOptions, GetRange, ObjectMeta, ObjectStore};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, block_in_place};
use tokio_stream::StreamExt;
use trtserver_base::budget::request_memory;
use trtserver_base::ledger::{LedgerHolder, LedgerOwner};

/// What the HTTP client holds of a response that is written to disk. Drawn from the memory budget.
const MEMORY: usize = 512 << 10;
/// How often it is looked whether another server has completed a download.
const WAIT: Duration = Duration::from_millis(100);
/// A content is fetched again if another server has removed it from the cache before it was used.
const ATTEMPTS: usize = 3;

/// The download of one object.
pub struct ObjectDownload {
    pub client: StoreClient,
    pub cache: Arc<ModelCache>,
    /// Limits the requests at the same time.
    pub requests: Arc<Semaphore>,
    pub progress: Arc<DownloadProgress>,
    pub object: ObjectMeta,
}

impl ObjectDownload {
    /// Adds the object to `tree` as `path`.
    ///
    /// # Errors
    /// Names the object and the reason.
    pub async fn into_tree(self, tree: &CachedTree, path: &str) -> Result<(), String> {
        let this = Arc::new(self);
        let subject = |e: String| format!("'{}': {e}", this.url());
        for attempt in 1.. {
            let blob = Arc::clone(&this).blob().await.map_err(subject)?;
            match block_in_place(|| tree.add_file(path, &blob)) {
                Ok(()) => break,
                Err(e) if e.kind() == ErrorKind::NotFound && attempt < ATTEMPTS => {}
                Err(e) => return Err(subject(cache_error(&e))),
            }
        }
        Ok(())
    }

    fn url(&self) -> String {
        self.client.url.object_url(self.object.location.as_ref())
    }

    /// The content, from the cache or the store.
    async fn blob(self: Arc<Self>) -> Result<CachedBlob, String> {
        let ObjectMeta { location, last_modified, size, e_tag, version } = &self.object;
        let key = ObjectKey::from_parts(&[
            &self.client.url.bucket_identity(),
            location.as_ref(),
            &last_modified.to_rfc3339(),
            &size.to_string(),
            e_tag.as_deref().unwrap_or_default(),
            version.as_deref().unwrap_or_default(),
        ]);
        let mut waiting = false;
        let partial = loop {
            // Before the lock: most objects are in the cache. After it: another task may have
            // completed the download.
            if let Some(blob) = self.find(&key)? {
                return Ok(blob);
            }
            if let Some(partial) = self.cache.partial(&key, *size).map_err(|e| cache_error(&e))? {
                match self.find(&key)? {
                    Some(blob) => {
                        partial.discard();
                        return Ok(blob);
                    }
                    None => break partial,
                }
            }
            if !waiting {
                tracing::info!(
                    "'{}' is downloaded for another model or server: waiting",
                    self.url()
                );
                waiting = true;
            }
            tokio::time::sleep(WAIT).await;
        };
        self.cache.lookups.count(false);
        let partial = Arc::new(partial);
        let downloaded = Arc::clone(&self).chunks(&partial).await;
        let partial = Arc::into_inner(partial).ok_or("a part of the download goes on")?;
        match downloaded {
            Ok(()) => block_in_place(|| self.cache.complete(partial, &key, &self.url()))
                .map_err(|e| cache_error(&e)),
            Err(DownloadFailure::Store(e)) => Err(e),
            Err(DownloadFailure::Disk(e)) => {
                // On a full disk, free space is of more use than an incomplete download.
                if matches!(e.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) {
                    partial.discard();
                }
                Err(cache_error(&e))
            }
        }
    }

    fn find(&self, key: &ObjectKey) -> Result<Option<CachedBlob>, String> {
        let size = self.object.size;
        let found = block_in_place(|| self.cache.find(key, size)).map_err(|e| cache_error(&e))?;
        if found.is_some() {
            self.progress.add_cached(size);
            self.cache.lookups.count(true);
        }
        Ok(found)
    }

    /// Downloads the chunks that are missing.
    async fn chunks(
        self: Arc<Self>,
        partial: &Arc<PartialDownload>,
    ) -> Result<(), DownloadFailure> {
        block_in_place(|| {
            self.cache.make_space(self.object.size).map_err(DownloadFailure::Store)?;
            partial.reserve_space().map_err(DownloadFailure::Disk)
        })?;
        let missing = block_in_place(|| partial.missing()).map_err(DownloadFailure::Disk)?;
        let left: u64 = missing.iter().map(|chunk| chunk.end - chunk.start).sum();
        if left < self.object.size {
            tracing::info!(
                "'{}': the download is resumed, {left} of {} bytes are missing",
                self.url(),
                self.object.size
            );
            self.progress.add_cached(self.object.size - left);
        }
        let mut chunks = JoinSet::new();
        for range in missing {
            chunks.spawn(Arc::clone(&self).chunk(Arc::clone(partial), range));
        }
        let mut failed = None;
        while let Some(done) = chunks.join_next().await {
            let done = done.unwrap_or_else(|e| Err(DownloadFailure::Store(e.to_string())));
            if let Err(e) = done
                && failed.is_none()
            {
                failed = Some(e);
                // The others end before the file may be removed.
                chunks.abort_all();
            }
        }
        failed.map_or(Ok(()), Err)
    }

    async fn chunk(
        self: Arc<Self>,
        partial: Arc<PartialDownload>,
        range: Range<u64>,
    ) -> Result<(), DownloadFailure> {
        let closed = |_| DownloadFailure::Store("the server is exiting".to_owned());
        let _request = self.requests.acquire().await.map_err(closed)?;
        let mut memory = request_memory().empty(LedgerOwner::SERVER.tag(LedgerHolder::Download));
        memory.grow(MEMORY).await.map_err(|e| DownloadFailure::Store(e.to_string()))?;
        let options = GetOptions {
            range: Some(GetRange::Bounded(range.clone())),
            if_match: self.object.e_tag.clone(),
            ..GetOptions::default()
        };
        let refused = |e: object_store::Error| match e {
            object_store::Error::Precondition { .. } | object_store::Error::NotFound { .. } => {
                DownloadFailure::Store("changed while it was downloaded".to_owned())
            }
            e => DownloadFailure::Store(message::describe_store_error(&e)),
        };
        let got = self.client.store.get_opts(&self.object.location, options).await;
        let got = got.map_err(refused)?;
        if got.meta.size != self.object.size || got.range != range {
            return Err(DownloadFailure::Store(format!(
                "{} bytes were listed, the store sends {}-{} of {}",
                self.object.size, got.range.start, got.range.end, got.meta.size
            )));
        }
        if !is_same_tag(self.object.e_tag.as_deref(), got.meta.e_tag.as_deref()) {
            return Err(DownloadFailure::Store(format!(
                "ETag {:?} was listed, the store sends {:?}: it changed while it was downloaded, or the store ignores \
                 If-Match",
                self.object.e_tag.as_deref().unwrap_or_default(),
                got.meta.e_tag.as_deref().unwrap_or_default()
            )));
        }
        let mut writer = partial.chunk(range).map_err(DownloadFailure::Disk)?;
        let mut stream = got.into_stream();
        while let Some(bytes) = stream.next().await {
            let bytes = bytes.map_err(refused)?;
            writer.write(&bytes).map_err(DownloadFailure::Disk)?;
            self.progress.add_downloaded(bytes.len() as u64);
        }
        writer.finish().map_err(|e| match e.kind() {
            ErrorKind::UnexpectedEof => DownloadFailure::Store(format!("truncated: {e}")),
            _ => DownloadFailure::Disk(e),
        })
    }
}

enum DownloadFailure {
    /// The store, or a limit.
    Store(String),
    Disk(io::Error),
}

/// The listing may have a tag without quotes, or none.
fn is_same_tag(listed: Option<&str>, sent: Option<&str>) -> bool {
    let bare = |tag: &str| tag.trim_start_matches("W/").trim_matches('"').to_owned();
    listed.is_none_or(|listed| sent.is_some_and(|sent| bare(listed) == bare(sent)))
}

fn cache_error(e: &io::Error) -> String {
    format!("model cache: {e}")
}

#[cfg(test)]
#[path = "download_tests.rs"]
mod tests;
