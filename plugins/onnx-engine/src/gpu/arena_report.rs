//! Reports what the arenas of an instance hold on its GPU.

use trtserver_plugin_api::author::{Device, Scope};

/// Ends the report when it is dropped.
pub struct ArenaReport {
    model: String,
    device: Device,
    /// Scope of the instance, under which the memory is reported.
    scope: Scope,
    runs: u64,
}

impl ArenaReport {
    pub fn new(model: &str, device: &Device, scope: &Scope) -> Self {
        Self { model: model.to_owned(), device: device.clone(), scope: scope.clone(), runs: 0 }
    }

    /// Arenas grow in the first runs, so they are asked after run 1, 2, 4, 8 and so on, and then
    /// after every 1024th.
    pub fn count_run(&mut self, bytes: impl FnOnce() -> Option<u64>) {
        self.runs += 1;
        if self.runs.is_power_of_two() || self.runs.is_multiple_of(1024) {
            self.report(bytes());
        }
    }

    pub fn report(&self, bytes: Option<u64>) {
        if let Some(bytes) = bytes
            && let Err(e) = self.scope.report_memory(self.device.memory(), bytes)
        {
            let model = &self.model;
            self.scope
                .warning(format_args!("model '{model}': its GPU memory is not reported: {e}"));
        }
    }
}

impl Drop for ArenaReport {
    fn drop(&mut self) {
        // The arenas end with the instance; 0 says that nothing is left.
        let _ = self.scope.report_memory(self.device.memory(), 0);
    }
}
