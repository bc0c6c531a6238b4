//! How a session is opened: from the host's thread budget, the optimisation level and the model's
//! parameters.
//!
//! | parameter | values | without it |
//! |---|---|---|
//! | `intra_op_thread_count` | threads inside an operator, 0 = the library decides | the host's budget; 1 = no pool |
//! | `inter_op_thread_count` | threads between operators, 0 = the library decides | 1 |
//! | `execution_mode` | 0 sequential, 1 parallel | 0 |
//! | `enable_mem_arena` | 0, 1 | 1 |
//! | `enable_mem_pattern` | 0, 1 | 1 |
//! | `session.…` | passed to the library, as [`crate::session_entries`] allows | idle threads sleep instead of spinning |
//!
//! `optimization { graph { level: L } }`: below 0 none, 0 (also: not set) all, 1 basic, 2 extended,
//! above 2 all.

use crate::accelerators::ProviderOptions;
use crate::provider_session::SessionDevice;
use ort_sys::{ExecutionMode, GraphOptimizationLevel};
use trtserver_framework::fault::PluginFault;

#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    pub intra_threads: i32,
    pub inter_threads: i32,
    pub mode: ExecutionMode,
    pub graph: GraphOptimizationLevel,
    pub arena: bool,
    pub pattern: bool,
    /// Execution providers beside the library's own for the CPU, best first.
    pub providers: Vec<ProviderOptions>,
    /// The GPU, for providers that need one.
    pub device: Option<SessionDevice>,
    /// Further settings by the library's names.
    pub entries: Vec<(String, String)>,
}

impl Options {
    /// `params` are the model's parameters, `entries` those of [`crate::session_entries`]. Unknown
    /// parameters are ignored: other parts of the server may use them.
    pub fn new<'a>(
        threads: u32,
        graph_level: i32,
        params: impl Iterator<Item = (&'a str, &'a str)>,
        entries: Vec<(String, String)>,
    ) -> Result<Self, PluginFault> {
        let mut options = Self {
            intra_threads: i32::try_from(threads.max(1)).unwrap_or(i32::MAX),
            inter_threads: 1,
            mode: ExecutionMode::ORT_SEQUENTIAL,
            graph: parse_graph_level(graph_level),
            arena: true,
            pattern: true,
            providers: Vec::new(),
            device: None,
            entries,
        };
        for (key, value) in params {
            match key {
                "intra_op_thread_count" => options.intra_threads = parse_number(key, value)?,
                "inter_op_thread_count" => options.inter_threads = parse_number(key, value)?,
                "enable_mem_arena" => options.arena = parse_switch(key, value)?,
                "enable_mem_pattern" => options.pattern = parse_switch(key, value)?,
                "execution_mode" => {
                    options.mode = match parse_switch(key, value)? {
                        true => ExecutionMode::ORT_PARALLEL,
                        false => ExecutionMode::ORT_SEQUENTIAL,
                    }
                }
                _ => {}
            }
        }
        Ok(options)
    }

    /// Options for inspecting a model without running it: no graph optimisation.
    pub fn for_reading() -> Self {
        Self {
            intra_threads: 1,
            inter_threads: 1,
            mode: ExecutionMode::ORT_SEQUENTIAL,
            graph: GraphOptimizationLevel::ORT_DISABLE_ALL,
            arena: false,
            pattern: false,
            providers: Vec::new(),
            device: None,
            entries: vec![("session.disable_prepacking".into(), "1".into())],
        }
    }
}

fn parse_graph_level(level: i32) -> GraphOptimizationLevel {
    match level {
        ..0 => GraphOptimizationLevel::ORT_DISABLE_ALL,
        1 => GraphOptimizationLevel::ORT_ENABLE_BASIC,
        2 => GraphOptimizationLevel::ORT_ENABLE_EXTENDED,
        0 | 3.. => GraphOptimizationLevel::ORT_ENABLE_ALL,
    }
}

fn parse_number(key: &str, value: &str) -> Result<i32, PluginFault> {
    value.trim().parse().ok().filter(|&n| n >= 0).ok_or_else(|| {
        PluginFault::invalid(format!(
            "parameter '{key}' must be a number of threads, not '{value}'"
        ))
    })
}

fn parse_switch(key: &str, value: &str) -> Result<bool, PluginFault> {
    match value.trim() {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => Err(PluginFault::invalid(format!("parameter '{key}' must be 0 or 1, not '{value}'"))),
    }
}

#[cfg(test)]
#[path = "options_tests.rs"]
mod tests;
