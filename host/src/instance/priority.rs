//! A model's priority as its instances have it: the niceness of their threads, the order of their streams.

use crate::device::StreamPriority;
use trtserver_proto::v2::ModelConfig;
use trtserver_proto::v2::model_optimization_policy::ModelPriority;

/// `optimization.priority` of a configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Priority {
    #[default]
    Default,
    Max,
    Min,
}

impl Priority {
    pub fn of(config: &ModelConfig) -> Self {
        match config.optimization.as_ref().map(|o| o.priority()) {
            Some(ModelPriority::PriorityMax) => Priority::Max,
            Some(ModelPriority::PriorityMin) => Priority::Min,
            Some(ModelPriority::PriorityDefault) | None => Priority::Default,
        }
    }

    /// As the old server set it (contract/v1 §8.1), but that the default gives way only where there is somebody to give
    /// way to: `max_asked` = a model of the server has the highest priority. Threads of niceness 5 are interrupted by
    /// those of the network for nothing otherwise, which costs a small model a quarter of its throughput.
    pub fn nice(self, max_asked: bool) -> i32 {
        match self {
            Priority::Default if max_asked => 5,
            Priority::Default | Priority::Max => 0,
            Priority::Min => 19,
        }
    }

    pub fn stream(self) -> StreamPriority {
        match self {
            Priority::Default => StreamPriority::Default,
            Priority::Max => StreamPriority::Greatest,
            Priority::Min => StreamPriority::Least,
        }
    }
}

/// Makes this thread, and those it will start, as nice as that; gives the niceness that it then has. A process that was
/// started nicer may not take it back, which is no reason to fail.
pub fn be_nice(nice: i32) -> i32 {
    let _ = rustix::process::setpriority_process(None, nice);
    rustix::process::getpriority_process(None).unwrap_or(0)
}

#[cfg(test)]
#[path = "priority_tests.rs"]
mod tests;
