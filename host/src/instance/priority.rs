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

    /// As the old server set it (contract/v1 §8.1).
    pub fn nice(self) -> i32 {
        match self {
            Priority::Default => 5,
            Priority::Max => 0,
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

    /// Makes this thread, and those it will start, as nice as the priority says; gives the niceness that it
    /// then has. A process that was started nicer than that may not take it back, which is no reason to fail.
    pub fn apply_here(self) -> i32 {
        let _ = rustix::process::setpriority_process(None, self.nice());
        rustix::process::getpriority_process(None).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_the_configuration_says() {
        for (text, nice) in [
            ("", 5),
            ("optimization {}", 5),
            ("optimization { priority: PRIORITY_MAX }", 0),
            ("optimization { priority: PRIORITY_MIN }", 19),
            ("optimization { priority: 77 }", 5),
        ] {
            let Ok(config) = trtserver_proto::text::parse::<ModelConfig>(text) else {
                assert!(text.contains("77"), "{text}");
                continue;
            };
            assert_eq!(Priority::of(&config).nice(), nice, "{text}");
        }
    }

    #[test]
    fn nicer_is_always_allowed_and_one_threads_own_affair() {
        let before = rustix::process::getpriority_process(None).unwrap();
        let there = std::thread::spawn(|| Priority::Min.apply_here()).join().unwrap();
        assert_eq!(there, 19);
        assert_eq!(rustix::process::getpriority_process(None).unwrap(), before);
    }
}
