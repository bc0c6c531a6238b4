//! A model whose load waits until the test lets it continue.

use crate::repository::probe;
use crate::server::{Running, Server};
use std::fs::File;
use std::io::Write;
use std::process::Command;

/// The labels of the model `gated` are a named pipe: its load waits until the test has written them.
pub struct LoadGate(File);

const PIPE: &str = "gated/labels.txt";

impl Server {
    /// Adds the model `gated`.
    pub fn gated_model(self) -> Self {
        let config =
            probe("gated", &[]).replace("output [ {", "output [ { label_filename: \"labels.txt\"");
        let server = self.model("gated", config);
        let made = Command::new("mkfifo").arg(server.models().join(PIPE)).status();
        assert!(made.is_ok_and(|status| status.success()), "mkfifo");
        server
    }
}

impl LoadGate {
    /// Waits until a load has reached the gate: opening a named pipe waits for the other end.
    #[track_caller]
    pub fn reach(server: &Running) -> Self {
        let pipe = File::options().write(true).open(server.models().path().join(PIPE));
        LoadGate(pipe.unwrap_or_else(|e| panic!("{PIPE}: {e}")))
    }

    /// Lets that load continue.
    #[track_caller]
    pub fn open(mut self) {
        self.0.write_all(b"first\nsecond\n").unwrap_or_else(|e| panic!("{PIPE}: {e}"));
    }
}
