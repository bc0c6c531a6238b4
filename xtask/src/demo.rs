//! `cargo xtask demo`: builds, serves examples/models and classifies pictures over all four
//! frontends, with the model `digits` in the formats of all frameworks that are installed.

use crate::build;
use crate::command::{Result, run, say};
use crate::paths::Paths;
use crate::runtimes::{self, tensorflow};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Names of the pictures: the digit each shows.
const PICTURES: [&str; 3] = ["seven", "three", "zero"];
const READY_WITHIN_SECONDS: u64 = 60;
const STOPPED_WITHIN: Duration = Duration::from_secs(40);

/// The model `digits` in other formats: repository and models.
const CAFFE2: (&str, &[&str]) = ("examples/models-caffe2", &["digits_netdef"]);
const TENSORFLOW: (&str, &[&str]) =
    ("examples/models-tensorflow", &["digits_graphdef", "digits_savedmodel"]);

pub struct Options {
    /// Exit after the classification.
    pub once: bool,
    pub debug: bool,
    pub http_port: Option<u16>,
    pub grpc_port: Option<u16>,
    pub metrics_port: Option<u16>,
}

pub fn demo(paths: &Paths, options: &Options) -> Result<()> {
    runtimes::fetch(paths)?;
    let (mut backends, mut others) = (vec!["onnxruntime", "caffe2"], vec![CAFFE2]);
    let tensorflow = tensorflow::is_installed(paths);
    if tensorflow {
        backends.push("tensorflow");
        others.push(TENSORFLOW);
    }
    let dist = match options.debug {
        true => build::build(paths, true)?,
        false => build::build_demo(paths, &backends)?,
    };
    let mut server = Server::start(paths, &dist, options, &others)?;
    if let Err(e) = classify(paths, &dist, &mut server, &others) {
        return Err(format!("{e}\n  {}", server.log_end()));
    }
    if !tensorflow {
        say(format!(
            "demo: left out: {} (TensorFlow is not in {}; `cargo xtask runtimes --tensorflow` fetches it)",
            TENSORFLOW.1.join(", "),
            paths.short(&paths.lib())
        ));
    }
    if options.once {
        server.stop()?;
        say("demo: all results were right, and the server stopped cleanly");
        return Ok(());
    }
    print_instructions(paths, &dist, &server);
    let status = server.child.wait().map_err(|e| format!("cannot wait for the server: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("the server exited: {status}")) }
}

/// Classifies each picture over all four frontends, the first with each other model, too. The
/// client fails on a wrong or missing result.
fn classify(
    paths: &Paths,
    dist: &Path,
    server: &mut Server,
    others: &[(&str, &[&str])],
) -> Result<()> {
    let (http, grpc) = (server.http.clone(), server.grpc.clone());
    let client = || {
        let mut command = Command::new(dist.join("bin/trtserver-classify"));
        command.current_dir(&paths.root);
        command.args(["--http", &http, "--grpc", &grpc]);
        command
    };
    say("demo: waiting until the models are loaded (up to a minute)");
    server.wait_until_ready(client().args(["--wait", &READY_WITHIN_SECONDS.to_string()]))?;
    println!();
    for (index, digit) in PICTURES.iter().enumerate() {
        let picture = format!("examples/digits/pictures/{digit}.png");
        let mut command = client();
        command.args(["--expect", digit, &picture, "--model=digits"]);
        if index == 0 {
            let models = others.iter().flat_map(|(_, models)| *models);
            command.args(models.map(|model| format!("--model={model}")));
        }
        run(&mut command, "a result was wrong or missing")?;
    }
    println!();
    Ok(())
}

fn print_instructions(paths: &Paths, dist: &Path, server: &Server) {
    let Server { http, grpc, metrics, log, .. } = server;
    let (bin, log) = (paths.short(&dist.join("bin")), paths.short(log));
    println!(
        "The server runs until Ctrl-C (log: {log}):\n\
         \x20 HTTP     http://{http}\n\
         \x20 gRPC     {grpc}\n\
         \x20 metrics  http://{metrics}/metrics\n\
         Try:\n\
         \x20 curl -s http://{http}/v2/models/dynamic_shape/infer -d \
         '{{\"inputs\":[{{\"name\":\"INPUT\",\"datatype\":\"FP32\",\"shape\":[2,2],\"data\":[1,2,3,4]}}]}}'\n\
         \x20 {bin}/trtserver-classify --http {http} --grpc {grpc} examples/digits/pictures/*.png\n"
    );
}

/// A running server; killed when dropped.
struct Server {
    child: Child,
    http: String,
    grpc: String,
    metrics: String,
    log: PathBuf,
}

impl Server {
    fn start(
        paths: &Paths,
        dist: &Path,
        options: &Options,
        others: &[(&str, &[&str])],
    ) -> Result<Self> {
        let log = paths.target.join("demo.log");
        let log_file =
            File::create(&log).map_err(|e| format!("cannot write {}: {e}", log.display()))?;
        let mut command = Command::new(dist.join("bin/trtserver"));
        command.current_dir(&paths.root);
        for repository in
            others.iter().map(|(repository, _)| *repository).chain(["examples/models"])
        {
            command.arg(format!("--model-store={}", paths.root.join(repository).display()));
        }
        command.arg(format!("--backend-dir={}", dist.join("backends").display()));
        for (name, port, default) in [
            ("http", options.http_port, 8000),
            ("grpc", options.grpc_port, 8001),
            ("metrics", options.metrics_port, 8002),
        ] {
            command.arg(format!("--{name}-port={}", port.unwrap_or_else(|| free_or_any(default))));
        }
        say(format!("demo: starting {}", paths.short(&dist.join("bin/trtserver"))));
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log_file)
            .spawn()
            .map_err(|e| format!("cannot start the server: {e}"))?;
        let addresses = child.stdout.take().map(read_lines).ok_or("the server has no output")?;
        let mut server =
            Server { child, http: String::new(), grpc: String::new(), metrics: String::new(), log };
        server.read_addresses(&addresses)?;
        Ok(server)
    }

    /// The server prints `listening <name> <address>` for each listener before it loads models.
    fn read_addresses(&mut self, lines: &Receiver<String>) -> Result<()> {
        let limit = Instant::now() + Duration::from_secs(READY_WITHIN_SECONDS);
        while [&self.http, &self.grpc, &self.metrics].iter().any(|address| address.is_empty()) {
            let left = limit.saturating_duration_since(Instant::now());
            let line = match lines.recv_timeout(left) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) => {
                    return Err(self.failure("did not open its ports in time"));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let status = self.child.wait().map(|status| status.to_string());
                    let status = status.unwrap_or_else(|e| e.to_string());
                    return Err(
                        self.failure(&format!("exited before its ports were open ({status})"))
                    );
                }
            };
            let mut fields = line.split_whitespace().skip(1);
            match (fields.next(), fields.next()) {
                (Some("http"), Some(address)) => self.http = reachable(address),
                (Some("grpc"), Some(address)) => self.grpc = reachable(address),
                (Some("metrics"), Some(address)) => self.metrics = reachable(address),
                _ => {}
            }
        }
        Ok(())
    }

    /// Runs the waiting client, and stops it if the server exits.
    fn wait_until_ready(&mut self, waiting: &mut Command) -> Result<()> {
        let mut client = waiting.spawn().map_err(|e| format!("cannot start the client: {e}"))?;
        let wrap = |e| format!("cannot wait for the client: {e}");
        loop {
            if let Some(status) = client.try_wait().map_err(wrap)? {
                let error = || "the server did not become ready".to_owned();
                return if status.success() { Ok(()) } else { Err(error()) };
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                client.kill().and_then(|()| client.wait()).map_err(wrap)?;
                return Err(format!("the server exited while loading models ({status})"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Stops the server with SIGTERM and checks its exit status.
    fn stop(&mut self) -> Result<()> {
        say("demo: stopping the server");
        // The standard library can send SIGKILL only.
        let kill = ["-c", "kill -TERM \"$1\"", "sh", &self.child.id().to_string()];
        run(Command::new("sh").args(kill), "")?;
        let limit = Instant::now() + STOPPED_WITHIN;
        loop {
            let exited =
                self.child.try_wait().map_err(|e| format!("cannot wait for the server: {e}"))?;
            match exited {
                Some(status) if status.success() => return Ok(()),
                Some(status) => {
                    return Err(self.failure(&format!("exited with an error ({status})")));
                }
                None if Instant::now() >= limit => {
                    return Err(self.failure("did not stop in time"));
                }
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    fn failure(&self, what: &str) -> String {
        format!("the server {what}\n  {}", self.log_end())
    }

    fn log_end(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        let last = &lines[lines.len().saturating_sub(20)..];
        let last: String = last.iter().map(|line| format!("\n    {line}")).collect();
        let last = if last.is_empty() { " none".to_owned() } else { last };
        format!("last lines of its log ({}):{last}", self.log.display())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only if the server has exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends the `listening …` lines and prints the others, on a thread that reads until the end of the
/// output, so that the server never blocks.
fn read_lines(output: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(std::result::Result::ok) {
            if line.starts_with("listening ") {
                let _ = sender.send(line);
            } else {
                println!("{line}");
            }
        }
    });
    lines
}

/// `port` if it is free, else 0: the system then selects a free port.
fn free_or_any(port: u16) -> u16 {
    let free = TcpListener::bind(("0.0.0.0", port)).is_ok()
        && TcpListener::bind(("127.0.0.1", port)).is_ok();
    if !free {
        say(format!("demo: port {port} is in use, using another"));
    }
    if free { port } else { 0 }
}

/// Address for clients: a wildcard address is replaced by the loopback address.
fn reachable(address: &str) -> String {
    match address.rsplit_once(':') {
        Some(("0.0.0.0" | "[::]" | "*", port)) => format!("127.0.0.1:{port}"),
        _ => address.to_owned(),
    }
}

#[cfg(test)]
#[path = "demo_tests.rs"]
mod tests;
