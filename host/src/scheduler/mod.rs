//! Which request runs next. Knows requests and queues; no files, devices, plugins or protocols.

pub mod default; // one FIFO, one request at a time per instance
pub mod former; // batch forming, pure

pub use default::{Queue, Scheduler};
