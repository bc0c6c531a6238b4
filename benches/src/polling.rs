//! CPU time that polling a repository of a thousand models costs, with file events and without.

use crate::Result;
use crate::options::Options;
use crate::process::Process;
use crate::repository;
use crate::table::{Table, verdict};
use rustix::fs::inotify;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

pub const COLUMNS: &[&str] =
    &["polling", "CPU ms per poll", "CPU ms of a changed model", "target", ""];
/// Polls that are measured; the interval is one second.
const POLLS: u32 = 5;
/// A changed model has settled and been loaded after this time.
const LOADED: Duration = Duration::from_secs(4);
const TARGET_MS: f64 = 10.0;

pub fn measure(options: &Options, table: &mut Table) -> Result<()> {
    if !options.wants("poll of thousand-onnx") || !repository::has_onnxruntime(options) {
        return Ok(());
    }
    let models = repository::thousand(options)?;
    let mut row = |name: &str| match poll(options, models.path()) {
        Ok((poll, change)) => {
            let met = poll < TARGET_MS && change < TARGET_MS;
            table.row(vec![
                name.to_owned(),
                format!("{poll:.2}"),
                format!("{change:.2}"),
                format!("<{TARGET_MS:.0} ms"),
                verdict(met).to_owned(),
            ]);
        }
        Err(problem) => table.failure(name, &problem),
    };
    row("poll of thousand-onnx");
    // Stands for a file system without events: no instance is left for the server to watch with.
    let all_instances: Vec<OwnedFd> =
        std::iter::from_fn(|| inotify::init(inotify::CreateFlags::CLOEXEC).ok()).collect();
    row("poll of thousand-onnx, no events");
    drop(all_instances);
    Ok(())
}

/// Milliseconds of the polling thread: for a poll that finds nothing, and for the polls that find
/// and load one model.
fn poll(options: &Options, models: &Path) -> Result<(f64, f64)> {
    let flags = ["--model-control-mode=poll", "--repository-poll-secs=1"];
    let server = Process::server_with(options, models, &flags)?;
    sleep(Duration::from_secs(1));
    let measured = |duration: Duration| {
        let before = server.thread_time("poll")?;
        sleep(duration);
        Ok::<_, String>((server.thread_time("poll")?.saturating_sub(before)).as_secs_f64() * 1e3)
    };
    let nothing = measured(Duration::from_secs(POLLS.into()))? / f64::from(POLLS);
    let config = models.join("m7/config.pbtxt");
    OpenOptions::new()
        .append(true)
        .open(&config)
        .and_then(|mut file| file.write_all(b"# changed\n"))
        .map_err(|e| format!("{}: {e}", config.display()))?;
    let polls = LOADED.as_secs_f64();
    Ok((nothing, (measured(LOADED)? - polls * nothing).max(0.0)))
}
