//! One model on one server, ready to be measured.

use crate::control::Control;
use crate::data::{self, StringOptions};
use crate::encode::{self, BatchTensors};
use crate::engine::{Arrivals, Engine, EnginePlan, Load, Sequences};
use crate::model::MeasuredModel;
use crate::settings::{Range, Server, Settings};
use crate::statistics::ServerStats;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use trtserver_client::shared_memory::Region;

pub struct MeasuredTarget {
    pub server: String,
    pub model: MeasuredModel,
    control: Control,
    plan: Arc<EnginePlan>,
    threads: usize,
    batch: usize,
    seed: u64,
    /// Removed and unregistered when dropped.
    region: Option<Region>,
}

impl MeasuredTarget {
    /// Asks the server for the model, and encodes the requests.
    ///
    /// # Errors
    /// The server, the model or the data do not fit; the message names them.
    pub fn new(settings: &Settings, server: &Server, model: &str) -> Result<Self, String> {
        let control = Control::new(server, settings)?;
        let model = control.model(model, &settings.version)?;
        check_target(settings, &model)?;
        let strings =
            StringOptions { length: settings.string_length, text: settings.string_data.clone() };
        let data = data::load_input(&model, &settings.input, &settings.shapes, &strings)?;
        if data.streams.len() > 1 && !model.is_stateful() {
            return Err(format!(
                "--input-data has {} data streams, but model '{}' has no sequences and takes one: \
                 give the steps of all as one list in a JSON file",
                data.streams.len(),
                model.name
            ));
        }
        let mut streams = encode::join_batches(&model, &data, settings.batch)?;
        let region = match settings.shared_memory {
            true => Some(share_memory(settings, &model, &control, &mut streams)?),
            false => None,
        };
        let stateful = model.is_stateful();
        let target = encode::EncodeTarget {
            generation: settings.generation,
            protocol: settings.protocol,
            authority: &server.authority,
            headers: &settings.headers,
            streaming: settings.streaming,
            sequences: stateful,
            batch: settings.batch,
        };
        let url = server.url(settings.protocol);
        let host = server.authority.rsplit_once(':').map_or(&*server.authority, |(host, _)| host);
        // An address of IPv6 is in brackets.
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let tls = server.tls.then(|| settings.tls.client(host, settings.protocol.to_client()));
        let tls = tls.transpose().map_err(|e| format!("-u {url}: {e}"))?;
        let plan = EnginePlan {
            protocol: settings.protocol,
            address: resolve_address(&server.authority)?,
            authority: server.authority.clone(),
            url: if server.tls { url.clone() } else { format!("http://{url}") },
            tls,
            prepared: encode::prepare_requests(&model, &streams, &target),
            sequences: stateful.then(|| Sequences {
                length: settings.sequence_length,
                concurrent: settings.sequences,
                first_id: first_id(),
            }),
            calls_per_connection: settings.calls_per_connection,
            max_connections: settings.max_connections,
            timeout: settings.timeout,
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = (cores / 2).clamp(1, 8).min(settings.max_threads.unwrap_or(usize::MAX));
        Ok(MeasuredTarget {
            server: url,
            model,
            control,
            plan: Arc::new(plan),
            threads,
            batch: settings.batch,
            seed: settings.seed,
            region,
        })
    }

    /// Starts a load.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn load(&self, range: &Range, value: f64) -> Result<Engine, String> {
        let load = match range {
            Range::Concurrency { .. } => Load::Concurrency(value as usize),
            Range::Rate { distribution, .. } => {
                Load::Schedule(Arrivals::at_rate(value, *distribution, self.seed))
            }
            Range::Intervals(gaps) => Load::Schedule(Arrivals::intervals(gaps)),
        };
        Engine::start(&self.plan, &load, self.threads)
    }

    /// Starts or stops the server's profiler.
    ///
    /// # Errors
    /// The server refuses.
    pub fn profile(&self, start: bool) -> Result<(), String> {
        self.control.profile(start)
    }

    /// # Errors
    /// The server has no statistics of the model.
    pub fn statistics(&self) -> Result<ServerStats, String> {
        self.control.statistics(&self.model, self.batch)
    }
}

impl Drop for MeasuredTarget {
    fn drop(&mut self) {
        if let Some(region) = &self.region {
            // The server may be gone; the region is removed anyhow.
            let _ = self.control.unregister(name(region.key()));
        }
    }
}

fn check_target(settings: &Settings, model: &MeasuredModel) -> Result<(), String> {
    let (name, most) = (&model.name, model.max_batch_size);
    if model.is_stateful() && settings.batch > 1 {
        return Err("can not specify batch size > 1 when using a sequence model".to_owned());
    }
    if most == 0 && settings.batch > 1 {
        return Err(
            "can not specify batch size > 1 as the model does not support batching".to_owned()
        );
    }
    if most > 0 && settings.batch > most {
        return Err(format!("expecting batch size <= {most} for model '{name}'"));
    }
    if model.decoupled && !settings.streaming {
        return Err(format!("model '{name}' is decoupled, which needs --streaming (and -i gRPC)"));
    }
    if model.is_stateful()
        && matches!(settings.range, Range::Concurrency { end: 0, .. })
        && settings.asynchronous != Some(false)
    {
        return Err(
            "The 'end' concurrency can not be 0 for sequence models when using asynchronous API."
                .to_owned(),
        );
    }
    Ok(())
}

fn resolve_address(server: &str) -> Result<SocketAddr, String> {
    let addresses = server.to_socket_addrs().map_err(|e| format!("-u {server}: {e}"))?;
    let addresses: Vec<SocketAddr> = addresses.collect();
    // Servers listen on IPv4 more often.
    let first = addresses.iter().find(|address| address.is_ipv4()).or(addresses.first());
    first.copied().ok_or_else(|| format!("-u {server}: no address"))
}

/// Ids of two runs at the same time should differ.
fn first_id() -> u32 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seed = (now.as_micros() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    // The lower half of the ids: many follow.
    let ids = encode::IDS;
    ids.start + (seed % u64::from((ids.end - ids.start) / 2)) as u32
}

/// Moves all tensors into a shared-memory region.
fn share_memory(
    settings: &Settings,
    model: &MeasuredModel,
    control: &Control,
    streams: &mut [Vec<BatchTensors>],
) -> Result<Region, String> {
    let inputs = |streams: &[Vec<BatchTensors>]| -> usize {
        let all = streams.iter().flatten().flat_map(|tensors| &tensors.inputs);
        all.map(|input| input.bytes.len()).sum()
    };
    let outputs: Vec<usize> = model
        .outputs
        .iter()
        .map(|output| {
            let fixed = output.shape.iter().all(|dim| *dim >= 0);
            let elements = output.shape.iter().product::<i64>() as usize;
            match crate::model::element_size(&output.datatype) {
                Some(size) if fixed => size * elements * settings.batch,
                _ => settings.output_shared_memory * settings.batch,
            }
        })
        .collect();
    let size = inputs(streams) + outputs.iter().sum::<usize>();
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let key = format!("/trtserver-perf-{}-{number}", std::process::id());
    let region = Region::create(&key, size.max(1)).map_err(|e| e.to_string())?;
    let place = |byte_size: usize, at: &mut usize| {
        let offset = *at as u64;
        *at += byte_size;
        encode::RegionSlice { name: name(&key).to_owned(), offset, byte_size: byte_size as u64 }
    };
    let mut at = 0;
    let outputs: Vec<_> = outputs.into_iter().map(|size| place(size, &mut at)).collect();
    for tensors in streams.iter_mut().flatten() {
        tensors.outputs.clone_from(&outputs);
        for input in &mut tensors.inputs {
            let slot = place(input.bytes.len(), &mut at);
            let bytes = std::mem::take(&mut input.bytes);
            region.write(slot.offset as usize, &bytes).map_err(|e| e.to_string())?;
            input.region = Some(slot);
        }
    }
    control.register(name(&key), &key, size.max(1) as u64)?;
    Ok(region)
}

/// The name under which a region is registered.
fn name(key: &str) -> &str {
    key.trim_start_matches('/')
}
