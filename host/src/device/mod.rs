//! GPUs, found at run time: nothing here links to CUDA, and a machine without a GPU is a log line.

mod cuda; // driver calls through cudarc

/// Whose work on a GPU goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamPriority {
    Default,
    Greatest,
    Least,
}

pub use cuda::{Streams, gpu_count};
