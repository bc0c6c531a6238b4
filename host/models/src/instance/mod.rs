//! Instances: how many a model has and where, and the thread that executes each of them.

mod copy_ahead;
mod copy_thread;
pub mod group;
mod inline_executor;
pub mod limit;
pub mod load_cancel;
pub mod load_progress;
pub mod priority;
mod thread_limit;
pub mod warmup;
pub mod worker;
mod worker_batches;
mod worker_opening;
