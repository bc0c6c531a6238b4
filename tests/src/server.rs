//! Starts the server binary, sends it requests, and stops it.

use crate::http1::{Connection, Response, request};
use crate::install::{backends, dist};
use crate::process::{Ended, Process, TIMEOUT, pause_since};
use crate::repository::Repository;
pub use rustix::process::Signal;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

/// Builder of a server: models and flags.
#[derive(Default)]
pub struct Server {
    models: Repository,
    flags: Vec<OsString>,
    environment: Vec<(&'static str, OsString)>,
    backends: Vec<PathBuf>,
    program: Vec<OsString>,
    triton_start_line: bool,
}

impl Server {
    /// Free loopback ports, the installed backends, no models.
    pub fn new() -> Self {
        Self::default()
    }

    /// A model with this configuration and an empty version 1.
    pub fn model(self, name: &str, config: impl AsRef<str>) -> Self {
        self.models.model(name, config.as_ref());
        self
    }

    /// Copies a model of the checkout, such as `tests/models/addsub_fp32`.
    pub fn copy_model(self, path: impl AsRef<Path>) -> Self {
        self.models.copy(path.as_ref());
        self
    }

    /// Copies all models of a folder of the checkout.
    pub fn copy_models(self, folder: impl AsRef<Path>) -> Self {
        self.models.copy_all(folder.as_ref());
        self
    }

    /// Removes a model.
    pub fn without(self, name: &str) -> Self {
        self.models.remove(name);
        self
    }

    /// Writes a file into the repository.
    pub fn file(self, path: &str, contents: impl AsRef<[u8]>) -> Self {
        self.models.file(path, contents);
        self
    }

    pub fn flag(mut self, flag: impl Into<OsString>) -> Self {
        self.flags.push(flag.into());
        self
    }

    /// Gives the repository by `--model-repository`, not by `--model-store`: the rules of TRTIS for
    /// configurations do not hold.
    pub fn triton_start_line(mut self) -> Self {
        self.triton_start_line = true;
        self
    }

    pub fn env(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.environment.push((name, value.into()));
        self
    }

    /// Loads backends from this folder instead of the install's. Repeatable.
    pub fn backend_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.backends.push(dir.into());
        self
    }

    /// Runs this command instead of `bin/trtserver`: another server, or a tool such as strace. The
    /// server's flags are appended, and the process must be or exec the server.
    pub fn program<W: Into<OsString>>(mut self, args: impl IntoIterator<Item = W>) -> Self {
        self.program = args.into_iter().map(Into::into).collect();
        self
    }

    /// The model repository.
    pub fn models(&self) -> &Path {
        self.models.path()
    }

    fn command(&self) -> Command {
        let mut command = match self.program.split_first() {
            None => Command::new(dist().join("bin/trtserver")),
            Some((program, args)) => {
                let mut command = Command::new(program);
                command.args(args);
                command
            }
        };
        for flag in ["--http-address=", "--grpc-address="] {
            let is_given = |given: &OsString| given.as_encoded_bytes().starts_with(flag.as_bytes());
            if !self.flags.iter().any(is_given) {
                command.arg(format!("{flag}127.0.0.1"));
            }
        }
        command.args(["--http-port=0", "--grpc-port=0", "--metrics-port=0"]);
        let flag = if self.triton_start_line { "--model-repository=" } else { "--model-store=" };
        command.arg(joined(flag, self.models.path()));
        if self.backends.is_empty() {
            command.arg(joined("--backend-dir=", &backends()));
        }
        command.args(self.backends.iter().map(|dir| joined("--backend-dir=", dir)));
        command.args(&self.flags);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Starts the server and waits until it listens. Its models may still be loading.
    #[track_caller]
    pub fn launch(self) -> Running {
        let process = Process::spawn(self.command());
        let address = |kind: &str| {
            let off = [format!("--allow-{kind}=false"), format!("--{kind}-port=-1")];
            if self.flags.iter().any(|flag| off.iter().any(|off| *flag == **off)) {
                return None;
            }
            let line = format!("line `listening {kind} …`");
            Some(process.stdout_until(&line, |out| listening(out, kind)))
        };
        let (http, grpc, metrics) = (address("http"), address("grpc"), address("metrics"));
        Running { process, http, grpc, metrics, models: self.models }
    }

    /// Starts a server that opens its ports when its models are loaded, and does not wait.
    #[track_caller]
    pub fn launch_closed(self) -> Running {
        let server = self.flag("--listen-when-ready");
        let process = Process::spawn(server.command());
        Running { process, http: None, grpc: None, metrics: None, models: server.models }
    }

    /// Starts the server and waits until it is ready.
    #[track_caller]
    pub fn start(self) -> Running {
        let server = self.launch();
        server.wait_until_ready();
        server
    }

    /// For a server in a `static`. Statics are not dropped, so its repository is removed as soon as
    /// it is loaded; the server is killed when the test program ends.
    #[track_caller]
    pub fn start_shared(self) -> Running {
        let server = self.start();
        server.models.remove_all();
        server
    }

    /// Starts a server that must fail, and waits for its end.
    #[track_caller]
    pub fn refuses_to_start(self) -> Ended {
        let process = Process::spawn(self.command());
        let ended = process.wait(TIMEOUT);
        assert!(!ended.status.success(), "the server started\n{process}");
        ended
    }
}

fn joined(flag: &str, path: &Path) -> OsString {
    let mut word = OsString::from(flag);
    word.push(path);
    word
}

/// The address in the line `listening KIND ADDRESS`, as one to connect to.
fn listening(out: &str, kind: &str) -> Option<String> {
    let whole_lines = &out[..out.rfind('\n')?];
    let prefix = format!("listening {kind} ");
    let address = whole_lines.lines().find_map(|line| line.strip_prefix(&prefix))?;
    Some(address.replace("0.0.0.0", "127.0.0.1").replace("[::]", "127.0.0.1"))
}

/// Runs `bin/trtserver` with these arguments to its end.
pub fn trtserver<W: Into<OsString>>(args: impl IntoIterator<Item = W>) -> Ended {
    let mut command = Command::new(dist().join("bin/trtserver"));
    command.args(args.into_iter().map(Into::into));
    Process::spawn(command).wait(TIMEOUT)
}

/// The HTTP request of [`Running::infer`].
pub fn inference(model: &str, parameters: &str) -> Vec<u8> {
    let json = format!(
        r#"{{"parameters":{{{parameters}}},"inputs":[{{"name":"INPUT0","datatype":"FP32","shape":[1,2],"data":[1,2]}}]}}"#
    );
    request("POST", &format!("/v2/models/{model}/infer"), &[], json.as_bytes())
}

/// A listening server, killed when dropped.
pub struct Running {
    process: Process,
    http: Option<String>,
    grpc: Option<String>,
    metrics: Option<String>,
    models: Repository,
}

impl Running {
    /// `127.0.0.1:PORT`, unless the server has other flags.
    pub fn http(&self) -> &str {
        self.http.as_deref().unwrap_or_else(|| panic!("HTTP is disabled"))
    }

    pub fn grpc(&self) -> &str {
        self.grpc.as_deref().unwrap_or_else(|| panic!("gRPC is disabled"))
    }

    pub fn metrics_address(&self) -> &str {
        self.metrics.as_deref().unwrap_or_else(|| panic!("metrics are disabled"))
    }

    /// The address in any other line `listening KIND ADDRESS`.
    #[track_caller]
    pub fn listening(&self, kind: &str) -> String {
        let line = format!("line `listening {kind} …`");
        self.process.stdout_until(&line, |out| listening(out, kind))
    }

    /// The addresses in all lines `listening KIND ADDRESS`.
    pub fn addresses(&self, kind: &str) -> Vec<String> {
        let prefix = format!("listening {kind} ");
        let out = self.process.stdout();
        out.lines().filter_map(|line| line.strip_prefix(&prefix)).map(str::to_owned).collect()
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

    /// Waits for a log line with this text and returns it.
    #[track_caller]
    pub fn wait_for_log(&self, text: &str) -> String {
        self.wait_for_log_with(&[text])
    }

    /// Waits for a log line with all these texts and returns it.
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

    /// Sends these bytes to the HTTP port on a new connection, and reads the response.
    #[track_caller]
    pub fn send(&self, bytes: impl AsRef<[u8]>) -> Response {
        self.connect().send(bytes).response()
    }

    /// As a client that parses JSON.
    #[track_caller]
    pub fn get_json(&self, path: &str) -> Response {
        self.send(request("GET", path, &[("Accept", "application/json")], b""))
    }

    #[track_caller]
    pub fn get(&self, path: &str) -> Response {
        self.send(request("GET", path, &[], b""))
    }

    /// Inference over HTTP v2 with INPUT0 = [1, 2], for models of [`crate::probe`];
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

    /// The names in the lines `logged 0 NAME` that the probe wrote when it executed a request, in
    /// their order.
    pub fn logged_names(&self) -> Vec<String> {
        // The text is followed by the scope of the instance.
        let name = |line: &str| {
            line.split_once("logged 0 ")
                .map(|(_, rest)| rest[..rest.find([' ', '"']).unwrap_or(rest.len())].to_owned())
        };
        self.log().lines().filter_map(name).collect()
    }

    /// The value of one sample, such as `nv_inference_count{model="echo",version="1"}`; none when
    /// there is no such sample.
    #[track_caller]
    pub fn metrics(&self, sample: &str) -> Option<f64> {
        let text = self.metrics_text();
        let value = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '))?;
        Some(value.parse().unwrap_or_else(|e| panic!("{sample} {value}: {e}")))
    }

    /// Polls until `condition` is true. For conditions without an event.
    #[track_caller]
    pub fn poll_until(&self, what: &str, condition: impl Fn(&Running) -> bool) {
        let begin = Instant::now();
        while !condition(self) {
            assert!(begin.elapsed() < TIMEOUT, "not within {TIMEOUT:?}: {what}\n{}", self.process);
            pause_since(begin);
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

    /// CPU time of its threads of this name.
    #[track_caller]
    pub fn thread_cpu_time(&self, name: &str) -> Duration {
        let tasks = format!("/proc/{}/task", self.process.pid().as_raw_nonzero());
        let read = |task: &Path, file| std::fs::read_to_string(task.join(file)).unwrap_or_default();
        let tasks = std::fs::read_dir(&tasks).unwrap_or_else(|e| panic!("{tasks}: {e}"));
        let tasks = tasks.flatten().map(|task| task.path());
        let named = tasks.filter(|task| read(task, "comm").trim() == name);
        let times = named
            .filter_map(|task| read(&task, "schedstat").split(' ').next()?.parse::<u64>().ok());
        Duration::from_nanos(times.sum())
    }

    #[track_caller]
    pub fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// Sends SIGTERM and waits for the end.
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

    /// The same with this limit.
    #[track_caller]
    pub fn wait_within(&self, time: Duration) -> Ended {
        self.process.wait(time)
    }
}
