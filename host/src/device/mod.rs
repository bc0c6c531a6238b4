//! GPUs, found at run time: nothing here links to CUDA, and a machine without a GPU is a log line.

mod cuda; // driver calls through cudarc

pub use cuda::{Streams, gpu_count};
