//! What the probe was told to do.

use std::io::Write;
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use trtserver_plugin_api::author::{Code, Error, ModelContext, Params, Value};

/// Ways to answer wrongly.
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
    /// One byte less than the shape says.
    Short,
    /// A full answer, then an attempt at another one.
    Twice,
    /// Success, and no answer.
    Never,
}

/// Whose running sum it is. START begins it anew, a call that is not READY is ignored and gets 0; both
/// are control tensors (INT32, FP32 or BOOL) or, where there is no START, the request's flag.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Accumulate {
    /// That of the position in the batch.
    Slot,
    /// That of the correlation id (control tensor CORRID, or the request's); forgotten with END.
    CorrId,
    /// What the state input holds; written to the state outputs.
    State,
}

/// Ways to take the process along.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Death {
    /// A wild pointer is followed.
    Crash,
    Abort,
    /// `exit(7)`.
    Exit,
    /// Never returns.
    Hang,
    /// Writes what is no message to the connection over which it tells its host of itself, and never returns.
    GarbleControl,
    /// The same to the connection over which it answers.
    GarbleWork,
    /// Starts a process that lives on, says its number on standard error, and calls `exit(7)`.
    Orphan,
}

/// What to tell of the batch.
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
/// | `fail`, `fail_code` | fails the call with this text and [`Code`] number |
/// | `panic_in` | `execute`, `model_open`, `instance_open`, `autocomplete`, `close` |
/// | `fail_in` | `model_open`, `instance_open`, `instance_open NAME` (that one alone), `autocomplete`, `execute` (the whole batch) |
/// | `garbage` | `wrong_dtype`, `wrong_shape`, `unknown_output`, `missing_output`, `short`, `twice`, `never` |
/// | `adopt` | outputs are donated |
/// | `report_batch` | an output BATCH: rows and calls of the batch (INT32), or its composition (STRING) |
/// | `record` | the same; `fail`: the call fails with the composition as its text |
/// | `accumulate` | OUTPUT0 is the running sum of INPUT0 (INT32): `slot`, `corrid`, `state`; see [`Accumulate`] |
/// | `merge` | inputs are gathered, outputs scattered: one answer for all calls |
/// | `spin_us` | keeps a CPU busy that long in `execute` |
/// | `responses` | that many answers instead of one |
/// | `detach` | answers later, on a thread of its own |
/// | `until_cancelled` | waits for the cancellation, at most 10 s, and fails with CANCELLED |
/// | `until_notified` | the same, but it waits for what its cancel_handler is told and does not look at the call |
/// | `until_file` | waits in `execute` until this file exists, at most 2 min |
/// | `needs_deadline` | fails unless the caller said how long he waits |
/// | `die` | takes the process along: `crash`, `abort`, `exit`; `hang`, `garble_control`, `garble_work`, `orphan`: see [`Death`] |
/// | `die_in` | where, instead of in `execute`: `autocomplete`, `model_open`, `instance_open`, `close` |
/// | `say` | prints this on standard error, in `execute` and before it dies |
/// | `count` | counts executed requests in the metric of this name, labelled with the instance (model's configuration) |
/// | `broken` | the failure takes the instance out of service |
#[derive(Clone, Default)]
pub struct Commands {
    pub delay: Duration,
    pub fail: Option<String>,
    pub fail_code: Option<Code>,
    pub panic_in: Option<String>,
    pub fail_in: Option<String>,
    pub garbage: Option<Garbage>,
    pub adopt: bool,
    pub report_batch: bool,
    pub responses: Option<u64>,
    pub detach: bool,
    pub until_cancelled: bool,
    pub until_notified: bool,
    pub until_file: Option<PathBuf>,
    pub needs_deadline: bool,
    pub broken: bool,
    pub die: Option<Death>,
    pub die_in: Option<String>,
    pub say: Option<String>,
    pub count: Option<String>,
    pub record: Option<Record>,
    pub accumulate: Option<Accumulate>,
    pub merge: bool,
    pub spin: Duration,
}

impl Commands {
    pub fn of_model(model: &ModelContext) -> Commands {
        Commands::default().with_request(model.parameters())
    }

    /// These commands with those of a request on top.
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
            "panic_in" => self.panic_in = text(),
            "fail_in" => self.fail_in = text(),
            "garbage" => self.garbage = value.text().and_then(garbage),
            "adopt" => self.adopt = yes(),
            "report_batch" => self.report_batch = yes(),
            "responses" => self.responses = number(),
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
            "count" => self.count = text(),
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
            "spin_us" => self.spin = Duration::from_micros(number().unwrap_or(0)),
            _ => {}
        }
    }

    /// Whether it is the caller who ends the execution, by going away.
    pub fn waits(&self) -> bool {
        self.until_cancelled || self.until_notified
    }

    /// Whether BATCH is to be made.
    pub fn reports(&self) -> bool {
        self.report_batch || self.record == Some(Record::Output)
    }

    pub fn panics_in(&self, entry: &str) -> bool {
        self.panic_in.as_deref() == Some(entry)
    }

    /// Dies, panics or fails if that was the command for this entry.
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

    /// An error with the code that was asked for.
    pub fn error(&self, text: &str) -> Error {
        let error = Error::new(self.fail_code.unwrap_or(Code::Internal), text);
        if self.broken { error.model_broken() } else { error }
    }
}

/// Waits until the test has made this file.
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
        // SAFETY: the system ends the process at this very instruction: no page lies there.
        Death::Crash => unsafe { std::ptr::without_provenance_mut::<u8>(8).write_volatile(1) },
        Death::Abort => std::process::abort(),
        Death::Exit => std::process::exit(7),
        Death::Hang => hang(),
        Death::GarbleControl | Death::GarbleWork => {
            // The connection with the host comes first, that of an instance last.
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

/// Writes four bytes that are the length of a message, and a message that is none.
fn garble(socket: i32) {
    // SAFETY: it is open; what happens to whoever else uses it is what this is about. It is not closed here.
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
