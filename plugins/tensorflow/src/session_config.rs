//! How a session is opened: a serialized `ConfigProto`, from the host's thread budget, settings of
//! the backend, the optimisation level and the model's parameters.
//!
//! | parameter | values | without it |
//! |---|---|---|
//! | `TF_NUM_INTRA_THREADS` | threads inside an operation | the host's budget |
//! | `TF_NUM_INTER_THREADS` | threads between operations | 1 |
//! | `TF_USE_PER_SESSION_THREADS` | true, false | true: TensorFlow's process-wide pools keep the sizes of the first session |
//! | `TF_GRAPPLER` | true, false: optimise the graph at its first run | true |
//!
//! | setting (`--backend-config=tensorflow,...`) | values | without it |
//! |---|---|---|
//! | `allow-soft-placement` | true, false: operations without a kernel for a GPU run on the CPU | true |
//! | `gpu-memory-fraction` | 0 to 1: of each GPU's memory; 0 = grow on demand | 0 |
//!
//! `optimization { graph { level: L } }` is the level of XLA: below 0 off, 0 (also: not set)
//! TensorFlow's default, 1 level 1, above 1 level 2.

use trtserver_framework::fault::PluginFault;
use trtserver_proto_wire::{WireType, put_bytes, put_number, put_tag};

pub const SOFT_PLACEMENT: &str = "allow-soft-placement";
pub const MEMORY_FRACTION: &str = "gpu-memory-fraction";

#[derive(Debug, Clone, PartialEq)]
pub struct SessionConfig {
    pub intra_threads: i32,
    pub inter_threads: i32,
    pub per_session_threads: bool,
    pub soft_placement: bool,
    /// 0 = grow on demand.
    pub gpu_memory_fraction: f64,
    /// `global_jit_level`: -1 off, 0 TensorFlow's default, 1, 2.
    pub xla: i32,
    pub grappler: bool,
}

impl SessionConfig {
    /// `settings` are the backend's, `params` the model's. Unknown ones are ignored: other parts of
    /// the server may use them.
    ///
    /// # Errors
    /// A value that cannot be read, by its name.
    pub fn new<'a>(
        threads: usize,
        graph_level: i32,
        settings: impl Iterator<Item = (&'a str, &'a str)>,
        params: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, PluginFault> {
        let mut config = Self {
            intra_threads: i32::try_from(threads.max(1)).unwrap_or(i32::MAX),
            inter_threads: 1,
            per_session_threads: true,
            soft_placement: true,
            gpu_memory_fraction: 0.0,
            xla: graph_level.clamp(-1, 2),
            grappler: true,
        };
        for (key, value) in settings {
            match key {
                SOFT_PLACEMENT => config.soft_placement = parse_switch("setting", key, value)?,
                MEMORY_FRACTION => config.gpu_memory_fraction = parse_fraction(key, value)?,
                _ => {}
            }
        }
        for (key, value) in params {
            match key {
                "TF_NUM_INTRA_THREADS" => config.intra_threads = parse_count(key, value)?,
                "TF_NUM_INTER_THREADS" => config.inter_threads = parse_count(key, value)?,
                "TF_USE_PER_SESSION_THREADS" => {
                    config.per_session_threads = parse_switch("parameter", key, value)?;
                }
                "TF_GRAPPLER" => config.grappler = parse_switch("parameter", key, value)?,
                _ => {}
            }
        }
        Ok(config)
    }

    /// The serialized `ConfigProto`.
    pub fn encode(&self) -> Vec<u8> {
        let mut gpu = Vec::new();
        if self.gpu_memory_fraction > 0.0 {
            put_tag(&mut gpu, 1, WireType::Fixed64);
            gpu.extend_from_slice(&self.gpu_memory_fraction.to_le_bytes());
        } else {
            put_number(&mut gpu, 4, 1); // allow_growth
        }
        let mut optimizer = Vec::new();
        put_number(&mut optimizer, 5, enum_number(self.xla)); // global_jit_level
        let mut graph = Vec::new();
        put_bytes(&mut graph, 3, &optimizer);
        if !self.grappler {
            let mut rewriter = Vec::new();
            put_number(&mut rewriter, 19, 1); // disable_meta_optimizer
            put_bytes(&mut graph, 10, &rewriter);
        }
        let mut config = Vec::new();
        put_number(&mut config, 2, enum_number(self.intra_threads));
        put_number(&mut config, 5, enum_number(self.inter_threads));
        put_bytes(&mut config, 6, &gpu);
        put_number(&mut config, 7, self.soft_placement.into());
        put_number(&mut config, 9, self.per_session_threads.into());
        put_bytes(&mut config, 10, &graph);
        config
    }
}

/// Protobuf encodes an int32 with the sign extended to 64 bits.
fn enum_number(number: i32) -> u64 {
    i64::from(number).cast_unsigned()
}

fn parse_count(key: &str, value: &str) -> Result<i32, PluginFault> {
    value.trim().parse().ok().filter(|&n| n >= 0).ok_or_else(|| {
        PluginFault::invalid(format!(
            "parameter '{key}' must be a number of threads, not '{value}'"
        ))
    })
}

fn parse_fraction(key: &str, value: &str) -> Result<f64, PluginFault> {
    value.trim().parse().ok().filter(|n| (0.0..=1.0).contains(n)).ok_or_else(|| {
        PluginFault::invalid(format!("setting '{key}' must be a number from 0 to 1, not '{value}'"))
    })
}

/// The spellings of Triton's parameters: `on`, `true` and `1`, whatever their case.
fn parse_switch(kind: &str, key: &str, value: &str) -> Result<bool, PluginFault> {
    match value.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "on" => Ok(true),
        "0" | "false" | "off" => Ok(false),
        _ => Err(PluginFault::invalid(format!(
            "{kind} '{key}' must be true or false, not '{value}'"
        ))),
    }
}

#[cfg(test)]
#[path = "session_config_tests.rs"]
mod tests;
