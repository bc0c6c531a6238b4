//! GPUs, found at run time. Nothing links to CUDA; a machine without a GPU only causes a log line.

mod cuda; // CUDA driver

/// Which instance's work on a GPU takes precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamPriority {
    Default,
    Greatest,
    Least,
}

pub use cuda::{Streams, gpus};
