//! The pages of one listing: their bounds, and entries whose keys cannot be files of a model.
//!
//! object_store reads a page as a whole, and refuses it for one key with an empty or odd segment.
//! So the entries of such keys are cut out before, and reported beside the others.

use object_store::path::Path;
use quick_xml::Reader;
use quick_xml::events::Event;
use ring::digest::{SHA256, digest};
use serde::Deserialize;
use std::cell::RefCell;
use std::collections::HashSet;

/// Bytes of one page. Stores have at most 5000 keys on one.
pub const MAX_PAGE: usize = 16 << 20;
/// Bytes of all pages of a listing.
const MAX_BYTES: usize = 128 << 20;
const MAX_PAGES: usize = 10_000;
const MAX_KEYS: usize = 100_000;
/// Bytes of one entry; the stores' longest keys have 1024 characters.
const MAX_ENTRY: usize = 16 << 10;
/// Characters of a key that is reported.
const MAX_REPORTED: usize = 300;

tokio::task_local! {
    /// The listing whose pages the running task reads.
    static LISTING: RefCell<ListingPages>;
}

/// Reads a listing in `work`, whose pages are those of one listing. Returns the keys that were left
/// out, too.
pub async fn read_listing<T>(work: impl Future<Output = T>) -> (T, Vec<String>) {
    let work = async {
        let done = work.await;
        (done, LISTING.with(|listing| std::mem::take(&mut listing.borrow_mut().unusable)))
    };
    LISTING.scope(RefCell::default(), work).await
}

/// Adds a page to the listing of this task. Returns it without unusable entries.
///
/// # Errors
/// The page is not XML, or a bound of the listing is exceeded.
pub fn add_page(page: &[u8]) -> Result<Vec<u8>, String> {
    let added = LISTING.try_with(|listing| listing.borrow_mut().add(page));
    added.unwrap_or_else(|_| ListingPages::default().add(page))
}

/// What was read of one listing.
#[derive(Default)]
struct ListingPages {
    pages: usize,
    bytes: usize,
    keys: usize,
    /// Digests of the tokens of further pages.
    tokens: HashSet<Vec<u8>>,
    /// Keys of the entries that were left out.
    unusable: Vec<String>,
}

/// An entry of a page: an object or a common prefix.
#[derive(Deserialize)]
struct PageEntry {
    /// S3 and Google Cloud Storage: `Key` and `Prefix`; Azure: `Name`.
    #[serde(rename = "Key", alias = "Prefix", alias = "Name")]
    key: String,
}

impl ListingPages {
    fn add(&mut self, page: &[u8]) -> Result<Vec<u8>, String> {
        self.pages += 1;
        self.bytes += page.len();
        if self.pages > MAX_PAGES {
            return Err(format!("the listing has more than {MAX_PAGES} pages"));
        }
        if self.bytes > MAX_BYTES {
            return Err(format!("the listing has more than {MAX_BYTES} bytes"));
        }
        let invalid = |e: quick_xml::Error| format!("a page of the listing is not XML: {e}");
        let mut reader = Reader::from_reader(page);
        let (mut usable, mut copied) = (Vec::with_capacity(page.len()), 0);
        loop {
            let begin = reader.buffer_position() as usize;
            let start = match reader.read_event().map_err(invalid)? {
                Event::Start(start) => start,
                Event::Eof => break,
                _ => continue,
            };
            match start.local_name().as_ref() {
                b"Contents" | b"CommonPrefixes" | b"Blob" | b"BlobPrefix" => {
                    reader.read_to_end(start.name()).map_err(invalid)?;
                    let end = reader.buffer_position() as usize;
                    if !self.is_usable(&page[begin..end])? {
                        usable.extend_from_slice(&page[copied..begin]);
                        copied = end;
                    }
                }
                b"NextContinuationToken" | b"NextMarker" => {
                    let token = reader.read_to_end(start.name()).map_err(invalid)?;
                    self.add_token(&page[token.start as usize..token.end as usize])?;
                }
                _ => {}
            }
        }
        usable.extend_from_slice(&page[copied..]);
        Ok(usable)
    }

    /// Counts an entry. An entry without a key is left to object_store, which refuses the page.
    fn is_usable(&mut self, entry: &[u8]) -> Result<bool, String> {
        self.keys += 1;
        if self.keys > MAX_KEYS {
            return Err(format!("the listing has more than {MAX_KEYS} keys"));
        }
        let Ok(PageEntry { key }) = quick_xml::de::from_reader(entry) else { return Ok(true) };
        // object_store would take `/m` for `m`.
        let is_usable =
            entry.len() <= MAX_ENTRY && !key.starts_with('/') && Path::parse(&key).is_ok();
        if !is_usable {
            self.unusable.push(key.chars().take(MAX_REPORTED).collect());
        }
        Ok(is_usable)
    }

    fn add_token(&mut self, token: &[u8]) -> Result<(), String> {
        if !token.is_empty() && !self.tokens.insert(digest(&SHA256, token).as_ref().to_vec()) {
            return Err("the listing repeats a continuation token, so it would not end".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "pages_tests.rs"]
mod tests;
