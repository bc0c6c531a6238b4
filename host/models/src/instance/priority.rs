//! Priority of a model's instances: the niceness of their threads and the priority of their
//! streams.

use trtserver_base::error::{Error, Result};
use trtserver_base::host_policy::HostPolicy;
use trtserver_device::StreamPriority;
use trtserver_plugin_host::load_priority::server_nice;
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

    /// What the model's threads add to the niceness of the server, as TRTIS set it
    /// (docs/protocol/v1.md §8.1), but the default is above 0 only if `max_asked`:
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

/// Calls `open` at the niceness of a model's instances and with their host policy, which threads
/// that it starts inherit. On a thread of its own unless these are the server's: this thread may be
/// unable to take another niceness back.
///
/// # Errors
/// The system starts no further thread, or refuses the policy.
pub fn open_as_instances<T: Send>(
    nice: i32,
    policy: Option<&HostPolicy>,
    stack: usize,
    open: impl FnOnce() -> Result<T> + Send,
) -> Result<T> {
    let policy = policy.filter(|policy| policy.has_settings());
    if nice == server_nice() && policy.is_none() {
        return open();
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("open".into()).stack_size(stack);
        let opened = thread.spawn_scoped(scope, || {
            if nice != server_nice() {
                set_niceness(nice);
            }
            policy.map_or(Ok(()), HostPolicy::bind_thread)?;
            open()
        });
        let failed =
            |e| Error::internal(format!("the thread that opens a model did not start: {e}"));
        opened.map_err(failed)?.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Sets the niceness of this thread and of threads that it will start. Returns the actual niceness,
/// which stays as it was if the system refuses.
pub fn set_niceness(nice: i32) -> i32 {
    let _ = rustix::process::setpriority_process(None, nice);
    rustix::process::getpriority_process(None).unwrap_or(0)
}

#[cfg(test)]
#[path = "priority_tests.rs"]
mod tests;
