//! A model is reloaded many times under full load: no request fails, memory stays flat, and the
//! latency of another model stays near that without reloads. `cargo xtask soak -- --reloads` runs
//! it.

use crate::polling::{Polled, numbered, polling};
use crate::repository::parameters;
use crate::server::{Running, Server, inference};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Connections to each model.
const CONNECTIONS: usize = 2;

/// `steady` does not change; opening `heavy` takes this time of a CPU.
pub fn server(opening: Duration) -> Server {
    let count = opening.as_micros() / 500;
    let warmup = format!(
        "model_warmup {{ name: \"w\" batch_size: 1 count: {count} inputs {{ key: \"INPUT0\" value \
         {{ data_type: TYPE_FP32 dims: 1 zero_data: true }} }} }}\n"
    );
    polling()
        .file("steady/1/value", "1")
        .file("steady/config.pbtxt", numbered("steady"))
        .file("heavy/1/value", "1000")
        .file(
            "heavy/config.pbtxt",
            numbered("heavy") + &parameters(&[("spin_us", "500")]) + &warmup,
        )
}

/// What was measured.
#[derive(Debug)]
pub struct Report {
    pub reloads: usize,
    pub requests: u64,
    pub failed: u64,
    /// 99th percentile of `steady`, without and with reloads.
    pub quiet: Duration,
    pub loading: Duration,
    /// Resident memory after a tenth of the reloads, and at the end.
    pub kib: [u64; 2],
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reloads, requests, failed, quiet, loading, kib: [first, last] } = self;
        write!(
            f,
            "{reloads} reloads, {requests} requests, {failed} failed; p99 of another model {quiet:?} quiet, \
             {loading:?} while loading; memory {first} KiB to {last} KiB"
        )
    }
}

/// Sends requests to both models on all connections; `work` runs meanwhile. Returns the 99th
/// percentile of `steady`.
fn measure(server: &Running, counts: &[AtomicU64; 2], work: impl FnOnce()) -> Duration {
    let end = AtomicBool::new(false);
    let client = |model: &'static str| {
        let mut connection = server.connect();
        let bytes = inference(model, "");
        let mut times = Vec::new();
        while !end.load(Ordering::Relaxed) {
            let begin = Instant::now();
            let response = connection.send(&bytes).response();
            times.push(begin.elapsed());
            counts[usize::from(response.status != 200)].fetch_add(1, Ordering::Relaxed);
        }
        times
    };
    thread::scope(|scope| {
        let steady: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(|| client("steady"))).collect();
        let heavy = scope.spawn(|| client("heavy"));
        work();
        end.store(true, Ordering::Relaxed);
        let join = |client: thread::ScopedJoinHandle<'_, Vec<Duration>>| {
            client.join().unwrap_or_else(|_| panic!("a client failed"))
        };
        let mut times: Vec<Duration> = steady.into_iter().flat_map(join).collect();
        join(heavy);
        times.sort_unstable();
        times.get(times.len() * 99 / 100).copied().unwrap_or_default()
    })
}

pub fn run(server: &Running, quiet: Duration, reloads: usize) -> Report {
    let counts = Default::default();
    let quiet = measure(server, &counts, || thread::sleep(quiet));
    let mut first = 0;
    let loading = measure(server, &counts, || {
        for reload in 1..=reloads {
            let number = 1000 + i64::try_from(reload).unwrap_or_default();
            server.models().number("heavy", 1, number);
            let loaded = |server: &Running| {
                thread::sleep(Duration::from_millis(5));
                server.answer("heavy") == Some((1, number))
            };
            server.poll_until("the reloaded model serves", loaded);
            if reload == reloads.div_ceil(10) {
                first = server.resident_kib();
            }
        }
    });
    let [right, failed] = counts.map(AtomicU64::into_inner);
    let kib = [first, server.resident_kib()];
    Report { reloads, requests: right + failed, failed, quiet, loading, kib }
}
