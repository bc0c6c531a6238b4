//! Priority of a model's instances: the niceness of their threads and the priority of their
//! streams.

use trtserver_device::StreamPriority;
use trtserver_proto::v2::ModelConfig;
use trtserver_proto::v2::model_optimization_policy::ModelPriority;

/// `optimization.priority` of a configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InstancePriority {
    #[default]
    Default,
    Max,
    Min,
}

impl InstancePriority {
    pub fn from_config(config: &ModelConfig) -> Self {
        match config.optimization.as_ref().map(|o| o.priority()) {
            Some(ModelPriority::PriorityMax) => InstancePriority::Max,
            Some(ModelPriority::PriorityMin) => InstancePriority::Min,
            Some(ModelPriority::PriorityDefault) | None => InstancePriority::Default,
        }
    }

    /// As TRTIS set it (docs/protocol/v1.md §8.1), but the default is above 0 only if `max_asked`:
    /// a model of the server has `PRIORITY_MAX`. Otherwise network threads would preempt instances
    /// of niceness 5 without benefit, which costs a small model a quarter of its throughput.
    pub fn nice(self, max_asked: bool) -> i32 {
        match self {
            InstancePriority::Default if max_asked => 5,
            InstancePriority::Default | InstancePriority::Max => 0,
            InstancePriority::Min => 19,
        }
    }

    pub fn stream(self) -> StreamPriority {
        match self {
            InstancePriority::Default => StreamPriority::Default,
            InstancePriority::Max => StreamPriority::Greatest,
            InstancePriority::Min => StreamPriority::Least,
        }
    }
}

/// Sets the niceness of this thread and of threads that it will start. Returns the actual niceness:
/// a process that was started with a higher one may not lower it, which is not an error.
pub fn set_niceness(nice: i32) -> i32 {
    let _ = rustix::process::setpriority_process(None, nice);
    rustix::process::getpriority_process(None).unwrap_or(0)
}

#[cfg(test)]
#[path = "priority_tests.rs"]
mod tests;
