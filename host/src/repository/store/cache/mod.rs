//! Local cache of objects (`--model-cache-dir`): content-addressed, shared by models, servers and restarts.
//!
//! ```text
//! objects/KEY      which content an object had: digest and size. KEY is made of URL, ETag, size and time of the object
//! blobs/DIGEST     the content, named by its SHA-256, read-only
//! partial/KEY      a download in progress or interrupted, with KEY.chunks: digests of the chunks that are complete
//! trees/SERVER/    model directories of one running server, made of hard links to blobs
//! ```
//!
//! Every file is written under another name and then renamed. `partial/KEY` is locked while it is written, `trees/SERVER.lock`
//! while its server runs; the kernel releases these locks when a process ends. A blob with more than one link is in use.

mod blobs; // complete contents
mod dir; // the directory
mod evict; // the size limit
mod files; // atomic writes
mod leftovers; // of servers that have ended
mod lock; // exclusive use of a path
mod lookups; // found or downloaded
mod partial; // downloads that are not complete
mod tree; // model directories
mod usage; // for the metrics page

pub use blobs::{Blob, ObjectKey};
pub use dir::Cache;
pub use partial::Partial;
pub use tree::Tree;
pub use usage::{register, usage};

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
