//! Calls beside the load: configuration, statistics, shared memory. They use the client library.

use crate::model::MeasuredModel;
use crate::settings::{self, Generation, Server};
use crate::statistics::ServerStats;
use std::future::Future;
use tokio::runtime::Runtime;
use trtserver_client::{self as client, Settings, v1, v2};
use trtserver_proto::v2::ModelConfig;

pub struct Control {
    runtime: Runtime,
    client: AnyClient,
}

enum AnyClient {
    V1(v1::Client),
    V2(v2::Client),
}

impl Control {
    /// # Errors
    /// The address is invalid.
    pub fn new(server: &Server, of_run: &settings::Settings) -> Result<Self, String> {
        let protocol = of_run.protocol;
        let settings = Settings::new(server.url(protocol)).protocol(protocol.to_client());
        let mut settings = settings.deadline(Some(of_run.timeout));
        if server.tls {
            settings = settings.tls(of_run.tls.clone());
        }
        for (name, value) in &of_run.headers {
            settings = settings.header(name, value);
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| format!("no runtime: {e}"))?;
        let client = {
            let _context = runtime.enter();
            match of_run.generation {
                Generation::V1 => v1::Client::new(&settings).map(AnyClient::V1),
                Generation::V2 => v2::Client::new(&settings).map(AnyClient::V2),
            }
        };
        Ok(Control { runtime, client: client.map_err(|e| e.to_string())? })
    }

    fn call<T>(&self, call: impl Future<Output = client::Result<T>>) -> Result<T, String> {
        self.runtime.block_on(call).map_err(|e| e.to_string())
    }

    /// A model as the server describes it.
    ///
    /// # Errors
    /// The server or the model cannot be reached.
    pub fn model(&self, name: &str, version: &str) -> Result<MeasuredModel, String> {
        let config = self.config(name, version)?;
        MeasuredModel::new(&config, version, &mut |name, version| {
            let version = if version < 0 { String::new() } else { version.to_string() };
            self.config(name, &version)
        })
    }

    fn config(&self, name: &str, version: &str) -> Result<ModelConfig, String> {
        match &self.client {
            AnyClient::V1(client) => {
                let status = self.call(client.status(Some(name)))?.value;
                let model = status.model_status.get(name).and_then(|model| model.config.clone());
                let url = client.url();
                model
                    .ok_or_else(|| format!("unable to find status for model {name} (server {url})"))
            }
            AnyClient::V2(client) => self.call(client.model_config(name, version)),
        }
    }

    /// Counters of a model and of its steps.
    ///
    /// # Errors
    /// The server has none.
    pub fn statistics(&self, model: &MeasuredModel, batch: usize) -> Result<ServerStats, String> {
        let of = |name: &str, version: &str| {
            let (stats, url) = match &self.client {
                AnyClient::V1(client) => {
                    let status = self.call(client.status(Some(name)))?.value;
                    let version = version.parse().unwrap_or(-1);
                    (ServerStats::from_v1(name, version, batch as u32, &status), client.url())
                }
                AnyClient::V2(client) => {
                    let all = self.call(client.statistics(name, version))?;
                    (ServerStats::from_v2(name, version, &all), client.url())
                }
            };
            stats.map_err(|problem| format!("{problem} (server {url})"))
        };
        let mut stats = of(&model.name, &model.version)?;
        for (name, version) in &model.composing {
            let version = if *version < 0 { String::new() } else { version.to_string() };
            let step = of(name, &version)?;
            // The latest version may also be a step by its number.
            if stats.step(&step).is_none() {
                stats.composing.push(step);
            }
        }
        Ok(stats)
    }

    /// Starts or stops the profiler of a v1 server.
    ///
    /// # Errors
    /// The server refuses, or is a v2 server, which has no profiler calls.
    pub fn profile(&self, start: bool) -> Result<(), String> {
        match (&self.client, start) {
            (AnyClient::V1(client), true) => self.call(client.start_profile()).map(drop),
            (AnyClient::V1(client), false) => self.call(client.stop_profile()).map(drop),
            (AnyClient::V2(_), _) => Err("v2 has no calls for the profiler".to_owned()),
        }
    }

    /// # Errors
    /// The server refuses.
    pub fn register(&self, name: &str, key: &str, byte_size: u64) -> Result<(), String> {
        match &self.client {
            AnyClient::V1(client) => {
                self.call(client.register_system_shared_memory(name, key, 0, byte_size)).map(drop)
            }
            AnyClient::V2(client) => {
                self.call(client.register_system_shared_memory(name, key, 0, byte_size))
            }
        }
    }

    /// # Errors
    /// The server refuses.
    pub fn unregister(&self, name: &str) -> Result<(), String> {
        match &self.client {
            AnyClient::V1(client) => self.call(client.unregister_shared_memory(name)).map(drop),
            AnyClient::V2(client) => self.call(client.unregister_system_shared_memory(name)),
        }
    }
}
