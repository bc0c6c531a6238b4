//! A model whose load waits until the test lets it continue.

use crate::repository::probe;
use crate::server::{Running, Server};
use std::path::PathBuf;

/// The model `gated` has a warm-up sample whose execution waits for a file.
pub struct LoadGate(PathBuf);

/// Beside the model's directory: a new file inside it would count as a change of the model.
const FILE: &str = "gated.open";

impl Server {
    /// Adds the model `gated`.
    pub fn gated_model(self) -> Self {
        let file = self.models().join(FILE).display().to_string();
        let sample = "model_warmup { name: \"gate\" batch_size: 1 inputs { key: \"INPUT0\" value \
                      { data_type: TYPE_FP32 dims: 1 zero_data: true } } }\n";
        let config = probe("gated", &[("until_file", &file)]) + sample;
        self.model("gated", config)
    }
}

impl LoadGate {
    /// Waits until a load has reached the gate.
    #[track_caller]
    pub fn reach(server: &Running) -> Self {
        server.wait_for_log_with(&["the probe waits for the file", FILE]);
        LoadGate(server.models().path().join(FILE))
    }

    /// Lets that load continue.
    #[track_caller]
    pub fn open(self) {
        let path = self.0.display();
        std::fs::write(&self.0, "").unwrap_or_else(|e| panic!("cannot write {path}: {e}"));
    }
}
