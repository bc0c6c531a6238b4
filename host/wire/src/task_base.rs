//! What `task.rs` runs on: atomics, locks, the runtime. The model test of tasks compiles that file a
//! second time, with doubles of these.

pub use parking_lot::Mutex;
pub use std::sync::atomic::{AtomicBool, AtomicU8};
pub use std::thread_local;
pub use tokio::runtime::Handle;
pub use trtserver_request::completion::InlineCompletion;
