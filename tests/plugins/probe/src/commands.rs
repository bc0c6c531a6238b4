//! Commands that the probe reads from the parameters of models and requests.

use std::io::Write;
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use trtserver_plugin_api::abi::types::level;
use trtserver_plugin_api::author::{Code, Error, ModelContext, Params, Scope, Value};

/// Invalid responses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Garbage {
    /// Another type than declared, of the same size where there is one.
    WrongDtype,
    /// One more dimension than declared.
    WrongShape,
    /// An output that the model does not have.
    UnknownOutput,
    /// All outputs but the first.
    MissingOutput,
    /// One byte less than the shape requires.
    Short,
    /// A complete response, then an attempt at another one.
    Twice,
    /// Success without a response.
    Never,
}

/// Where the running sum is kept. START resets it; a request that is not READY is ignored and gets
/// 0. Both are control tensors (INT32, FP32 or BOOL); without a START tensor the request's flag is
/// used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Accumulate {
    /// Per position in the batch.
    Slot,
    /// Per correlation id (control tensor CORRID, or the request's); removed with END.
    CorrId,
    /// In the state input; written to the state outputs.
    State,
}

/// Ways to end or block the process.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Death {
    /// Writes through an invalid pointer.
    Crash,
    Abort,
    /// Overflows the stack.
    Overflow,
    /// `exit(7)`.
    Exit,
    /// Never returns.
    Hang,
    /// Writes an invalid message to the control connection, and never returns.
    GarbleControl,
    /// The same to the work connection.
    GarbleWork,
    /// Starts a process that outlives it, prints its process id to standard error, and calls
    /// `exit(7)`.
    Orphan,
}

/// Where the batch's composition is reported.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Record {
    Output,
    Failure,
}

/// All commands, by their parameter names:
///
/// | name | value |
/// |---|---|
/// | `delay_ms` | sleeps that long in `execute` |
/// | `fail`, `fail_code` | fails the request with this text and [`Code`] number |
/// | `fail_last` | fails instead of sending the last response |
/// | `panic_in` | `execute`, `model_open`, `instance_open`, `autocomplete`, `close` |
/// | `fail_in` | `model_open`, `instance_open`, `instance_open NAME` (only that instance), `autocomplete`, `execute` (the whole batch) |
/// | `garbage` | `wrong_dtype`, `wrong_shape`, `unknown_output`, `missing_output`, `short`, `twice`, `never` |
/// | `adopt` | outputs are donated |
/// | `report_batch` | an output BATCH: rows and requests of the batch (INT32), or its composition (STRING) |
/// | `record` | the same; `fail`: the request fails with the composition as its text |
/// | `accumulate` | OUTPUT0 is the running sum of INPUT0 (INT32): `slot`, `corrid`, `state`; see [`Accumulate`] |
/// | `merge` | inputs are gathered, outputs scattered: one set of outputs for all requests |
/// | `infer` | sends its inputs as a request to this model, and answers with the outputs of the first response and parameters: `responses` is their number, `version` that of the first, `of_KEY` its parameter KEY |
/// | `infer_responses` | the parameter `responses` of that request |
/// | `infer_cancelled` | cancels that request at once |
/// | `infer_until_file` | the handler of that request waits until this file exists |
/// | `status`, `load`, `unload` | fails with the status of this model; loads it (`load_config`: with this configuration); unloads it |
/// | `spin_us` | keeps a CPU busy that long in `execute` |
/// | `responses` | number of responses instead of one |
/// | `try_more` | responses are sent without waiting for the client; fails with the backlog when one would have to wait |
/// | `detach` | responds later, on another thread |
/// | `until_cancelled` | sends as many responses as `responses` says, waits for the cancellation, at most 10 s, and fails with CANCELLED |
/// | `until_notified` | the same, but waits until `cancel_handler` is notified instead of polling the request |
/// | `until_file` | waits in `execute` until this file exists, at most 2 min |
/// | `needs_deadline` | fails unless the request has a deadline |
/// | `die` | ends or blocks the process: `crash`, `abort`, `overflow`, `exit`; `hang`, `garble_control`, `garble_work`, `orphan`: see [`Death`] |
/// | `die_in` | where, instead of in `execute`: `autocomplete`, `model_open`, `instance_open`, `close` |
/// | `say` | prints this to standard error, in `execute` and before `die` |
/// | `log_lines`, `log_file` | logs so many lines of 900 characters, as from this source file |
/// | `print_lines` | prints so many such lines to standard output |
/// | `log_text` | the text of those lines, instead of 900 characters |
/// | `count` | counts executed requests in the metric of this name, labelled with the instance (model's configuration) |
/// | `base_file` | adds the whole number in this file of the version's directory to FP32 outputs, and begins sums with it (model's configuration) |
/// | `count_label` | name of that label instead of `at` |
/// | `observe` | observes the requests of each batch in the histogram of this name, with the same label (model's configuration) |
/// | `gauges` | sets gauges: name of the family, name of their label, then `VALUE=NUMBER` for each (model's configuration) |
/// | `report_bytes` | `model_open` reports this many bytes of CPU memory and of the memory of GPU 0, and never takes that back |
/// | `patch` | `autocomplete` adds this text |
/// | `broken` | the failure takes the instance out of service |
/// | `open_until_file` | `model_open` reports its progress until this file exists, and fails when the load was abandoned |
/// | `failing_opens` | `model_open` removes a byte from the end of this file, and fails if there was one |
#[derive(Clone, Default)]
pub struct Commands {
    pub delay: Duration,
    pub fail: Option<String>,
    pub fail_code: Option<Code>,
    pub fail_last: bool,
    pub panic_in: Option<String>,
    pub fail_in: Option<String>,
    pub garbage: Option<Garbage>,
    pub adopt: bool,
    pub report_batch: bool,
    pub responses: Option<u64>,
    pub try_more: bool,
    pub detach: bool,
    pub until_cancelled: bool,
    pub until_notified: bool,
    pub until_file: Option<PathBuf>,
    pub needs_deadline: bool,
    pub broken: bool,
    pub die: Option<Death>,
    pub die_in: Option<String>,
    pub say: Option<String>,
    pub log_lines: u64,
    pub log_file: Option<String>,
    pub print_lines: u64,
    pub log_text: Option<String>,
    pub report_bytes: Option<u64>,
    pub count: Option<String>,
    pub count_label: Option<String>,
    pub observe: Option<String>,
    pub gauges: Option<String>,
    pub base_file: Option<String>,
    pub record: Option<Record>,
    pub accumulate: Option<Accumulate>,
    pub merge: bool,
    pub infer: Option<String>,
    pub infer_responses: Option<i64>,
    pub infer_cancelled: bool,
    pub infer_until_file: Option<PathBuf>,
    pub status: Option<String>,
    pub load: Option<String>,
    pub load_config: Option<String>,
    pub unload: Option<String>,
    pub spin: Duration,
    pub patch: Option<String>,
    pub open_until_file: Option<PathBuf>,
    pub failing_opens: Option<PathBuf>,
}

impl Commands {
    pub fn from_model(model: &ModelContext) -> Commands {
        Commands::default().with_request(model.parameters())
    }

    /// These commands, overridden by those of a request.
    pub fn with_request(&self, params: Params<'_>) -> Commands {
        let mut commands = self.clone();
        for (key, value) in params.iter() {
            commands.set(key, value);
        }
        commands
    }

    fn set(&mut self, key: &str, value: Value<'_>) {
        let text = || value.text().map(str::to_owned);
        let yes = || value.to_bool().unwrap_or(false);
        let number = || value.to_i64().and_then(|n| u64::try_from(n).ok());
        match key {
            "delay_ms" => self.delay = Duration::from_millis(number().unwrap_or(0)),
            "fail" => self.fail = text(),
            "fail_code" => {
                self.fail_code = number().and_then(|n| n.try_into().ok()).map(Code::from_abi)
            }
            "fail_last" => self.fail_last = yes(),
            "panic_in" => self.panic_in = text(),
            "fail_in" => self.fail_in = text(),
            "garbage" => self.garbage = value.text().and_then(garbage),
            "adopt" => self.adopt = yes(),
            "report_batch" => self.report_batch = yes(),
            "responses" => self.responses = number(),
            "try_more" => self.try_more = yes(),
            "detach" => self.detach = yes(),
            "until_cancelled" => self.until_cancelled = yes(),
            "until_notified" => self.until_notified = yes(),
            "until_file" => self.until_file = text().map(PathBuf::from),
            "needs_deadline" => self.needs_deadline = yes(),
            "broken" => self.broken = yes(),
            "die" => {
                self.die = match value.text() {
                    Some("crash") => Some(Death::Crash),
                    Some("abort") => Some(Death::Abort),
                    Some("overflow") => Some(Death::Overflow),
                    Some("exit") => Some(Death::Exit),
                    Some("hang") => Some(Death::Hang),
                    Some("garble_control") => Some(Death::GarbleControl),
                    Some("garble_work") => Some(Death::GarbleWork),
                    Some("orphan") => Some(Death::Orphan),
                    _ => None,
                }
            }
            "die_in" => self.die_in = text(),
            "say" => self.say = text(),
            "log_lines" => self.log_lines = number().unwrap_or(0),
            "log_file" => self.log_file = text(),
            "print_lines" => self.print_lines = number().unwrap_or(0),
            "log_text" => self.log_text = text(),
            "report_bytes" => self.report_bytes = number(),
            "count" => self.count = text(),
            "count_label" => self.count_label = text(),
            "observe" => self.observe = text(),
            "gauges" => self.gauges = text(),
            "base_file" => self.base_file = text(),
            "record" => {
                self.record = match value.text() {
                    Some("fail") => Some(Record::Failure),
                    _ => yes().then_some(Record::Output),
                }
            }
            "accumulate" => {
                self.accumulate = match value.text() {
                    Some("slot") => Some(Accumulate::Slot),
                    Some("corrid") => Some(Accumulate::CorrId),
                    Some("state") => Some(Accumulate::State),
                    _ => None,
                }
            }
            "merge" => self.merge = yes(),
            "infer" => self.infer = text(),
            "infer_responses" => self.infer_responses = value.to_i64(),
            "infer_cancelled" => self.infer_cancelled = yes(),
            "infer_until_file" => self.infer_until_file = text().map(PathBuf::from),
            "status" => self.status = text(),
            "load" => self.load = text(),
            "load_config" => self.load_config = text(),
            "unload" => self.unload = text(),
            "patch" => self.patch = text(),
            "open_until_file" => self.open_until_file = text().map(PathBuf::from),
            "failing_opens" => self.failing_opens = text().map(PathBuf::from),
            "spin_us" => self.spin = Duration::from_micros(number().unwrap_or(0)),
            _ => {}
        }
    }

    /// Whether execution waits for cancellation.
    pub fn waits(&self) -> bool {
        self.until_cancelled || self.until_notified
    }

    /// Whether to write the output BATCH.
    pub fn reports(&self) -> bool {
        self.report_batch || self.record == Some(Record::Output)
    }

    pub fn panics_in(&self, entry: &str) -> bool {
        self.panic_in.as_deref() == Some(entry)
    }

    /// Ends the process, panics or fails if commanded for this entry.
    pub fn misstep(&self, entry: &str) -> Result<(), Error> {
        if self.die_in.as_deref().unwrap_or("execute") == entry {
            if let Some(text) = self.say.as_deref() {
                eprintln!("{text}");
            }
            if let Some(how) = self.die {
                die(how);
            }
        }
        if self.panics_in(entry) {
            panic!("told to panic in {entry}");
        }
        if self.fail_in.as_deref() == Some(entry) {
            let text = self.fail.clone().unwrap_or_else(|| format!("told to fail in {entry}"));
            return Err(self.error(&text));
        }
        Ok(())
    }

    /// Logs and prints lines as commanded.
    pub fn flood(&self, log: &Scope) {
        let padding = "p".repeat(900);
        for line in 0..self.log_lines {
            let file = self.log_file.as_deref().unwrap_or("flood.rs");
            let text = self.log_text.as_deref().unwrap_or(&padding);
            log.log(level::INFO, file, 7, format_args!("logged {line} {text}"));
        }
        for line in 0..self.print_lines {
            println!("printed {line} {padding}");
        }
    }

    /// An error with the commanded code.
    pub fn error(&self, text: &str) -> Error {
        let error = Error::new(self.fail_code.unwrap_or(Code::Internal), text);
        if self.broken { error.model_broken() } else { error }
    }
}

/// Reports the progress of a load until the test has created this file.
///
/// # Errors
/// The load was abandoned.
pub fn open_until_file(path: &Path, log: &Scope) -> Result<(), Error> {
    while !path.exists() {
        if log.progress("waiting for the test", 250) {
            return Err(Error::unavailable("the load was abandoned"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Fails as often as the file has bytes.
pub fn fail_while_bytes_are_left(path: &Path) -> Result<(), Error> {
    let mut bytes = std::fs::read(path).unwrap_or_default();
    match bytes.pop() {
        None => Ok(()),
        Some(_) => {
            let left = bytes.len();
            let written = std::fs::write(path, bytes);
            Err(Error::unavailable(format!("{left} failures are left ({written:?})")))
        }
    }
}

/// Waits until the test has created this file.
pub fn wait_for_file(path: &Path) -> Result<(), Error> {
    const LIMIT: Duration = Duration::from_secs(120);
    let begin = Instant::now();
    while !path.exists() {
        if begin.elapsed() > LIMIT {
            return Err(Error::deadline(format!("no file {} within {LIMIT:?}", path.display())));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

fn die(how: Death) {
    match how {
        // SAFETY: no page is mapped there, so the write ends the process.
        Death::Crash => unsafe { std::ptr::without_provenance_mut::<u8>(8).write_volatile(1) },
        Death::Abort => std::process::abort(),
        Death::Overflow => drop(overflow(0)),
        Death::Exit => std::process::exit(7),
        Death::Hang => hang(),
        Death::GarbleControl | Death::GarbleWork => {
            // The control connection was opened first, the work connection last.
            let sockets = sockets();
            let socket = if how == Death::GarbleWork { sockets.last() } else { sockets.first() };
            if let Some(socket) = socket {
                garble(*socket);
            }
            hang()
        }
        Death::Orphan => {
            if let Ok(child) = Command::new("sleep").arg("600").spawn() {
                eprintln!("left process {} behind", child.id());
            }
            std::process::exit(7)
        }
    }
}

#[allow(unconditional_recursion)] // until the stack ends
fn overflow(depth: u64) -> u64 {
    let frame = std::hint::black_box([depth; 64]);
    overflow(depth + 1) + frame[0]
}

fn hang() -> ! {
    loop {
        std::thread::park();
    }
}

/// Open sockets of this process.
fn sockets() -> Vec<i32> {
    let files = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let is_socket = |path: &std::path::Path| {
        std::fs::read_link(path).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"))
    };
    let sockets = files.filter(|file| is_socket(&file.path()));
    let mut numbers: Vec<i32> =
        sockets.filter_map(|file| file.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

/// Writes a valid message length followed by an invalid message.
fn garble(socket: i32) {
    // SAFETY: the descriptor is open and not closed here. Disturbing its other users is the
    // purpose.
    let mut socket = ManuallyDrop::new(unsafe { UnixStream::from_raw_fd(socket) });
    let _ = socket.write_all(&[8, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
}

fn garbage(name: &str) -> Option<Garbage> {
    Some(match name {
        "wrong_dtype" => Garbage::WrongDtype,
        "wrong_shape" => Garbage::WrongShape,
        "unknown_output" => Garbage::UnknownOutput,
        "missing_output" => Garbage::MissingOutput,
        "short" => Garbage::Short,
        "twice" => Garbage::Twice,
        "never" => Garbage::Never,
        _ => return None,
    })
}
