//! Local cache of objects (`--model-cache-dir`): content-addressed, shared by models, servers and
//! restarts.
//!
//! ```text
//! objects/KEY      which content an object had: digest and size. KEY is made of URL, ETag, size and time of the object
//! blobs/DIGEST     the content, named by its SHA-256, read-only
//! partial/KEY      a download in progress or interrupted, with KEY.chunks: digests of the chunks that are complete
//! trees/SERVER/    model directories of one running server, made of hard links to blobs
//! ```
//!
//! Every file is written under another name and then renamed. `partial/KEY` is locked while it is
//! written, `trees/SERVER.lock` while its server runs; the kernel releases these locks when a
//! process ends. A blob with more than one link is in use.

mod blobs;
mod dir;
mod evict;
mod files;
mod leftovers;
mod lock;
mod lookups;
mod partial;
mod tree;
mod usage;

pub use blobs::{CachedBlob, ObjectKey};
pub use dir::ModelCache;
pub use partial::PartialDownload;
pub use tree::CachedTree;

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
