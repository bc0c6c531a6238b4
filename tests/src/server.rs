//! Starting the real server, talking to it, and ending it.

use crate::http1::{Connection, Response, request};
use crate::install::{backends, dist};
use crate::process::{Ended, Process, TIMEOUT};
use crate::repository::Repository;
pub use rustix::process::Signal;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

/// A server to be: its models and flags.
#[derive(Default)]
pub struct Server {
    models: Repository,
    flags: Vec<OsString>,
    environment: Vec<(&'static str, OsString)>,
    backends: Vec<PathBuf>,
    program: Vec<OsString>,
}

impl Server {
    /// On free ports of the loopback interface, with the backends of the install and no models.
    pub fn new() -> Self {
        Self::default()
    }

    /// A model with this configuration and an empty version 1.
    pub fn model(self, name: &str, config: impl AsRef<str>) -> Self {
        self.models.model(name, config.as_ref());
        self
    }

    /// A model of the checkout, such as `tests/models/addsub_fp32`.
    pub fn copy_model(self, path: impl AsRef<Path>) -> Self {
        self.models.copy(path.as_ref());
        self
    }

    /// All models of a folder of the checkout.
    pub fn copy_models(self, folder: impl AsRef<Path>) -> Self {
        self.models.copy_all(folder.as_ref());
        self
    }

    /// Takes a model away again.
    pub fn without(self, name: &str) -> Self {
        self.models.remove(name);
        self
    }

    /// Any file of the repository.
    pub fn file(self, path: &str, contents: impl AsRef<[u8]>) -> Self {
        self.models.file(path, contents);
        self
    }

    pub fn flag(mut self, flag: impl Into<OsString>) -> Self {
        self.flags.push(flag.into());
        self
    }

    pub fn env(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.environment.push((name, value.into()));
        self
    }

    /// Takes backends from this folder instead of the install's; may be called more than once.
    pub fn backend_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.backends.push(dir.into());
        self
    }

    /// Starts these words instead of the install's `bin/trtserver`: another server, or a program that watches one. It
    /// must be, or become, the process that gets the flags behind them.
    pub fn program<W: Into<OsString>>(mut self, words: impl IntoIterator<Item = W>) -> Self {
        self.program = words.into_iter().map(Into::into).collect();
        self
    }

    /// Where its models lie.
    pub fn models(&self) -> &Path {
        self.models.path()
    }

    fn command(&self) -> Command {
        let mut command = match self.program.split_first() {
            None => Command::new(dist().join("bin/trtserver")),
            Some((program, words)) => {
                let mut command = Command::new(program);
                command.args(words);
                command
            }
        };
        command.args(["--http-address=127.0.0.1", "--grpc-address=127.0.0.1"]);
        command.args(["--http-port=0", "--grpc-port=0", "--metrics-port=0"]);
        command.arg(joined("--model-store=", self.models.path()));
        if self.backends.is_empty() {
            command.arg(joined("--backend-dir=", &backends()));
        }
        command.args(self.backends.iter().map(|dir| joined("--backend-dir=", dir)));
        command.args(&self.flags);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Starts it and waits until it listens: from then on it answers, but its models may still be loading.
    #[track_caller]
    pub fn launch(self) -> Running {
        let process = Process::spawn(self.command());
        let address = |kind: &str| {
            let off = format!("--allow-{kind}=false");
            if self.flags.iter().any(|flag| *flag == *off) {
                return None;
            }
            let line = format!("line `listening {kind} …`");
            Some(process.stdout_until(&line, |out| listening(out, kind)))
        };
        let (http, grpc, metrics) = (address("http"), address("grpc"), address("metrics"));
        Running { process, http, grpc, metrics, models: self.models }
    }

    /// Starts it and waits until it is ready.
    #[track_caller]
    pub fn start(self) -> Running {
        let server = self.launch();
        server.wait_until_ready();
        server
    }

    /// For a server in a `static`, which several tests share. Nothing drops those, so its repository goes as soon as
    /// it is loaded; the server itself goes with the test program.
    #[track_caller]
    pub fn start_shared(self) -> Running {
        let server = self.start();
        server.models.remove_all();
        server
    }

    /// For servers that refuse to serve: starts it and waits for its end.
    #[track_caller]
    pub fn refuses_to_start(self) -> Ended {
        let process = Process::spawn(self.command());
        let ended = process.wait(TIMEOUT);
        assert!(!ended.status.success(), "it should have failed\n{process}");
        ended
    }
}

fn joined(flag: &str, path: &Path) -> OsString {
    let mut word = OsString::from(flag);
    word.push(path);
    word
}

/// The address of `listening KIND ADDRESS`, as one to connect to.
fn listening(out: &str, kind: &str) -> Option<String> {
    let whole_lines = &out[..out.rfind('\n')?];
    let prefix = format!("listening {kind} ");
    let address = whole_lines.lines().find_map(|line| line.strip_prefix(&prefix))?;
    Some(address.replace("0.0.0.0", "127.0.0.1").replace("[::]", "127.0.0.1"))
}

/// Runs the server's program with these words alone, to its end.
pub fn trtserver<W: Into<OsString>>(words: impl IntoIterator<Item = W>) -> Ended {
    let mut command = Command::new(dist().join("bin/trtserver"));
    command.args(words.into_iter().map(Into::into));
    Process::spawn(command).wait(TIMEOUT)
}

/// The request of [`Running::infer`], for tests that send it themselves.
pub fn inference(model: &str, parameters: &str) -> Vec<u8> {
    let json = format!(
        r#"{{"parameters":{{{parameters}}},"inputs":[{{"name":"INPUT0","datatype":"FP32","shape":[1,2],"data":[1,2]}}]}}"#
    );
    request("POST", &format!("/v2/models/{model}/infer"), &[], json.as_bytes())
}

/// A server that listens. Dropped, it is killed.
pub struct Running {
    process: Process,
    http: Option<String>,
    grpc: Option<String>,
    metrics: Option<String>,
    models: Repository,
}

impl Running {
    /// `127.0.0.1:PORT`.
    pub fn http(&self) -> &str {
        self.http.as_deref().unwrap_or_else(|| panic!("it serves no HTTP"))
    }

    pub fn grpc(&self) -> &str {
        self.grpc.as_deref().unwrap_or_else(|| panic!("it serves no gRPC"))
    }

    pub fn metrics_address(&self) -> &str {
        self.metrics.as_deref().unwrap_or_else(|| panic!("it serves no metrics"))
    }

    /// The address of any other `listening KIND ADDRESS`.
    #[track_caller]
    pub fn listening(&self, kind: &str) -> String {
        let line = format!("line `listening {kind} …`");
        self.process.stdout_until(&line, |out| listening(out, kind))
    }

    pub fn models(&self) -> &Repository {
        &self.models
    }

    pub fn process(&self) -> &Process {
        &self.process
    }

    #[track_caller]
    pub fn wait_until_ready(&self) {
        let ready = |out: &str| out.lines().any(|line| line == "ready").then_some(());
        self.process.stdout_until("line `ready`", ready);
    }

    pub fn has_reported_ready(&self) -> bool {
        self.process.stdout().lines().any(|line| line == "ready")
    }

    /// The log so far.
    pub fn log(&self) -> String {
        self.process.stderr()
    }

    /// Waits until the log has a line with this text and gives it.
    #[track_caller]
    pub fn wait_for_log(&self, text: &str) -> String {
        self.wait_for_log_with(&[text])
    }

    /// Waits until the log has a line with all these texts and gives it.
    #[track_caller]
    pub fn wait_for_log_with(&self, texts: &[&str]) -> String {
        let fits = |line: &&str| texts.iter().all(|text| line.contains(text));
        let find = |log: &str| {
            let whole_lines = &log[..log.rfind('\n')?];
            whole_lines.lines().find(fits).map(str::to_owned)
        };
        self.process.stderr_until(&format!("log line with {texts:?}"), find)
    }

    /// A new connection to the HTTP port.
    #[track_caller]
    pub fn connect(&self) -> Connection {
        Connection::open(self.http())
    }

    /// Sends these bytes to the HTTP port, on a connection of their own, and reads the answer.
    #[track_caller]
    pub fn send(&self, bytes: impl AsRef<[u8]>) -> Response {
        self.connect().send(bytes).response()
    }

    #[track_caller]
    pub fn get(&self, path: &str) -> Response {
        self.send(request("GET", path, &[], b""))
    }

    /// An inference over HTTP v2 of two numbers, 1 and 2, in INPUT0, as the models of [`crate::probe`] take it;
    /// `parameters` are members of a JSON object.
    #[track_caller]
    pub fn infer(&self, model: &str, parameters: &str) -> Response {
        self.send(inference(model, parameters))
    }

    #[track_caller]
    pub fn post(&self, path: &str, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Response {
        self.send(request("POST", path, headers, body.as_ref()))
    }

    /// All metrics.
    #[track_caller]
    pub fn metrics_text(&self) -> String {
        let get = request("GET", "/metrics", &[("Connection", "close")], b"");
        let response = Connection::open(self.metrics_address()).send(get).response();
        assert_eq!(response.status, 200, "{}", response.text());
        response.text()
    }

    /// The value of one sample, such as `nv_inference_count{model="echo",version="1"}`; none when there is no
    /// such sample.
    #[track_caller]
    pub fn metrics(&self, sample: &str) -> Option<f64> {
        let text = self.metrics_text();
        let value = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '))?;
        Some(value.parse().unwrap_or_else(|e| panic!("{sample} {value}: {e}")))
    }

    /// Asks the server again and again, until it gives the answer that is waited for. For what no event tells.
    #[track_caller]
    pub fn poll_until(&self, what: &str, question: impl Fn(&Running) -> bool) {
        let begin = Instant::now();
        while !question(self) {
            assert!(begin.elapsed() < TIMEOUT, "not within {TIMEOUT:?}: {what}\n{}", self.process);
            std::thread::yield_now();
        }
    }

    /// Resident memory in KiB.
    pub fn resident_kib(&self) -> u64 {
        let path = format!("/proc/{}/status", self.process.pid().as_raw_nonzero());
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
        let value = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let value = value.and_then(|v| v.trim().strip_suffix(" kB")?.parse().ok());
        value.unwrap_or_else(|| panic!("no VmRSS in {path}"))
    }

    #[track_caller]
    pub fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// Asks it to end, and waits for that.
    #[track_caller]
    pub fn stop(self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.wait().status
    }

    /// Waits for its end.
    #[track_caller]
    pub fn wait(&self) -> Ended {
        self.process.wait(TIMEOUT)
    }

    /// The same with a time of one's own.
    #[track_caller]
    pub fn wait_within(&self, time: Duration) -> Ended {
        self.process.wait(time)
    }
}
