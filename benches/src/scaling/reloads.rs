//! Reloads of a thousand models while another one serves: its p99 during reloads divided by the p99
//! of neighbouring passes without.

use super::{FRONTENDS, SMALL};
use crate::Result;
use crate::load::{self, Pass};
use crate::options::Options;
use crate::pairs;
use crate::process::Process;
use crate::repository;
use crate::requests::{Frontend, Work, exchanges};
use crate::status;
use crate::table::{Table, verdict};
use rustix::process::setpriority_process;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub const COLUMNS: &[&str] = &[
    "reloads while serving",
    "reloads/s",
    "req/s",
    "quiet",
    "p50 µs",
    "quiet",
    "p99 µs",
    "quiet",
    "ratio",
    "p99.9 µs",
    "quiet",
    "spread",
    "target",
];
/// Largest factor by which reloads may raise p99.
const MOST: f64 = 1.5;
const RELOADED: usize = 1000;
const AT_ONCE: usize = 16;
/// Passes in which all models are reloaded by polling, or some thousands by request.
const PASS: Duration = Duration::from_secs(2);
/// Time in which the models of the pass before that have begun to load have loaded.
const REST: Duration = Duration::from_millis(300);

/// Niceness of the clients of the load API, which share the cores with the load.
const CLIENT_NICE: i32 = 10;

/// What reloads the models.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reloader {
    /// So many clients of the load API, each with one model at a time.
    Clients(usize),
    /// The repository poll, which finds all of them changed at once.
    Poll,
}

impl Reloader {
    const ALL: [Self; 3] = [Self::Clients(1), Self::Clients(8), Self::Poll];

    fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Clients(_) => &["--model-control-mode=explicit", "--load-model=*"],
            Self::Poll => &[
                "--model-control-mode=poll",
                "--repository-poll-secs=1",
                "--repository-settle-secs=0.1",
            ],
        }
    }
}

fn name((frontend, reloader): (Frontend, Reloader)) -> String {
    let reloader = match reloader {
        Reloader::Clients(count) => format!("by {count}"),
        Reloader::Poll => "by poll".to_owned(),
    };
    format!("scaling reload {} {RELOADED} {reloader} c{AT_ONCE}", frontend.name())
}

pub fn measure(options: &Options, table: &mut Table) -> Result<()> {
    if !repository::has_onnxruntime(options) {
        return Ok(());
    }
    for reloader in Reloader::ALL {
        let mut rows = FRONTENDS.map(|frontend| (frontend, reloader)).to_vec();
        rows.retain(|row| options.wants(&name(*row)));
        if rows.is_empty() {
            continue;
        }
        let server = ReloadingServer::start(options, reloader)?;
        for row in rows {
            table.measured(name(row), server.row(options, row.0));
        }
    }
    Ok(())
}

/// A server of `identity`, which is asked, and a thousand ONNX models, which change.
struct ReloadingServer {
    process: Process,
    address: SocketAddr,
    models: TempDir,
    reloader: Reloader,
    /// Changes of models so far: each is written into the file that it changes.
    changes: AtomicUsize,
}

impl ReloadingServer {
    fn start(options: &Options, reloader: Reloader) -> Result<Self> {
        let models = repository::thousand(options)?;
        repository::identity(models.path())?;
        let process = Process::server_with(options, models.path(), reloader.flags())?;
        let address = process.http.ok_or("the server has no HTTP address")?;
        Ok(Self { process, address, models, reloader, changes: AtomicUsize::new(0) })
    }

    fn row(&self, options: &Options, frontend: Frontend) -> Result<Vec<String>> {
        let exchanges = exchanges(frontend, Work::Identity(SMALL));
        let pass = |length| load::pass(&self.process, frontend.wire(), &exchanges, AT_ONCE, length);
        let length = if options.check_only { REST } else { PASS };
        let mut rates = Vec::new();
        let pairs = pairs::alternate(
            options.passes,
            length,
            |length| {
                let (passed, rate) = self.while_reloading(|| pass(length))?;
                rates.push(rate);
                thread::sleep(REST);
                Ok(passed)
            },
            pass,
        )?;
        let (rate, quiet_rate) = pairs.both(|pass| pass.per_second);
        let (p50, quiet_p50) = pairs.both(|pass| pass.p50_us);
        let (p99, quiet_p99) = pairs.both(|pass| pass.p99_us);
        let (p999, quiet_p999) = pairs.both(|pass| pass.p999_us);
        let ratio = pairs.ratio(|pass| pass.p99_us);
        Ok(vec![
            format!("{:.0}", rates.iter().sum::<f64>() / rates.len().max(1) as f64),
            format!("{rate:.0}"),
            format!("{quiet_rate:.0}"),
            format!("{p50:.0}"),
            format!("{quiet_p50:.0}"),
            format!("{p99:.0}"),
            format!("{quiet_p99:.0}"),
            format!("{ratio:.2}"),
            format!("{p999:.0}"),
            format!("{quiet_p999:.0}"),
            pairs.spread(|pass| pass.p99_us),
            format!("<={MOST}  {}", verdict(ratio <= MOST)),
        ])
    }

    /// The result of `pass` while models are reloaded, and how many are in a second.
    fn while_reloading(&self, pass: impl FnOnce() -> Result<Pass>) -> Result<(Pass, f64)> {
        match self.reloader {
            Reloader::Clients(count) => self.while_clients_reload(count, pass),
            Reloader::Poll => {
                let begin = Instant::now();
                let change = self.change_all()?;
                let passed = pass()?;
                self.await_change(change)?;
                Ok((passed, RELOADED as f64 / begin.elapsed().as_secs_f64()))
            }
        }
    }

    fn while_clients_reload(
        &self,
        count: usize,
        pass: impl FnOnce() -> Result<Pass>,
    ) -> Result<(Pass, f64)> {
        let (ended, reloaded) = (AtomicBool::new(false), AtomicUsize::new(0));
        let begin = Instant::now();
        let client = || {
            // Fails only if its niceness is higher already. Clients are on other machines.
            let _ = setpriority_process(None, CLIENT_NICE);
            while !ended.load(Ordering::Relaxed) {
                let change = self.changes.fetch_add(1, Ordering::Relaxed);
                let model = format!("m{}", change % RELOADED);
                change_model(self.models.path(), &model, change)?;
                status::post(self.address, &format!("/v2/repository/models/{model}/load"), "{}")?;
                reloaded.fetch_add(1, Ordering::Relaxed);
            }
            Ok::<_, String>(())
        };
        thread::scope(|scope| {
            let clients: Vec<_> = (0..count).map(|_| scope.spawn(client)).collect();
            let passed = pass();
            ended.store(true, Ordering::Relaxed);
            for client in clients {
                client.join().map_err(|_| "a client of the load API panicked")??;
            }
            let rate = reloaded.load(Ordering::Relaxed) as f64 / begin.elapsed().as_secs_f64();
            Ok((passed?, rate))
        })
    }

    /// Changes all models.
    fn change_all(&self) -> Result<usize> {
        let change = self.changes.fetch_add(1, Ordering::Relaxed);
        (0..RELOADED)
            .try_for_each(|model| change_model(self.models.path(), &format!("m{model}"), change))?;
        Ok(change)
    }

    /// Waits until each hundredth model has been loaded with this change.
    fn await_change(&self, change: usize) -> Result<()> {
        let (limit, expected) = (Instant::now() + 10 * PASS, change.to_string());
        for model in (0..RELOADED).step_by(100).chain([RELOADED - 1]) {
            loop {
                let config = status::get(self.address, &format!("/v2/models/m{model}/config"))?;
                let value = config.pointer("/parameters/change/string_value");
                if value.and_then(|value| value.as_str()) == Some(&*expected) {
                    break;
                }
                if Instant::now() > limit {
                    return Err(format!("m{model} was changed and not loaded"));
                }
                thread::sleep(Duration::from_millis(20));
            }
        }
        Ok(())
    }
}

/// Writes the number of the change into the configuration of `model`.
fn change_model(models: &Path, model: &str, change: usize) -> Result<()> {
    let file = models.join(model).join("config.pbtxt");
    let wrap = |e| format!("{}: {e}", file.display());
    let text = fs::read_to_string(&file).map_err(wrap)?;
    let unchanged = text.split("parameters {").next().unwrap_or_default();
    let parameter =
        format!("parameters {{ key: \"change\" value {{ string_value: \"{change}\" }} }}\n");
    fs::write(&file, format!("{unchanged}{parameter}")).map_err(wrap)
}
