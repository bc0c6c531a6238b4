//! Start lines of charts and runtimes that exist, word for word, with their probes and the metrics
//! that their dashboards and autoscalers read.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use trtserver_tests::fakes::Fakes;
use trtserver_tests::http1::request;
use trtserver_tests::{Connection, Process, Repository, TIMEOUT, backends, dist, folder, root};

/// A start line of Triton.
struct StartLine {
    who: &'static str,
    /// Words of a command line, or the script of a shell.
    start: Start,
    /// The repository in it.
    models: &'static str,
    env: &'static [(&'static str, &'static str)],
    /// The models are loaded by request.
    explicit: bool,
    probes: &'static [&'static str],
}

enum Start {
    Words(&'static [&'static str]),
    Shell(&'static str),
}

const LIVE: &str = "/v2/health/live";
const READY: &str = "/v2/health/ready";
const BOTH: &[&str] = &[LIVE, READY];
const AWS: &[(&str, &str)] = &[
    ("AWS_DEFAULT_REGION", "us-east-1"),
    ("AWS_ACCESS_KEY_ID", "id"),
    ("AWS_SECRET_ACCESS_KEY", "secret"),
    ("AWS_SESSION_TOKEN", "token"),
];
const POLLING: &[&str] = &[
    "tritonserver",
    "--model-store=/models",
    "--model-control-mode=poll",
    "--repository-poll-secs=5",
];

const fn line(who: &'static str, start: Start, models: &'static str) -> StartLine {
    StartLine { who, start, models, env: &[], explicit: false, probes: BOTH }
}

const LINES: &[StartLine] = &[
    StartLine { env: AWS, ..line("chart aws", Start::Words(POLLING), "/models") },
    StartLine { env: AWS, ..line("chart oci", Start::Words(POLLING), "/models") },
    line("chart gcp", Start::Words(&["tritonserver", "--model-store=/models"]), "/models"),
    line(
        "chart gke-marketplace",
        Start::Words(&[
            "tritonserver",
            "--model-store=/models",
            "--strict-model-config=False",
            "--log-verbose=1",
            "--allow-gpu-metrics=True",
        ]),
        "/models",
    ),
    StartLine {
        env: AWS,
        ..line(
            "chart fleetcommand",
            Start::Words(&["tritonserver", "--model-repository=/models"]),
            "/models",
        )
    },
    line(
        "chart k8s-onprem",
        Start::Words(&["tritonserver", "--model-repository=/models"]),
        "/models",
    ),
    line(
        "KServe",
        Start::Words(&[
            "tritonserver",
            "--model-store=/mnt/models",
            "--grpc-port=9000",
            "--http-port=8080",
            "--allow-grpc=true",
            "--allow-http=true",
        ]),
        "/mnt/models",
    ),
    StartLine {
        explicit: true,
        probes: &[LIVE],
        ..line(
            "Seldon Core 2",
            Start::Words(&[
                "tritonserver",
                "--model-repository=/mnt/agent/models",
                "--http-port=9000",
                "--grpc-port=9500",
                "--log-verbose=1",
                "--model-control-mode=explicit",
                "--backend-config=python,shm-default-byte-size=16777216",
            ]),
            "/mnt/agent/models",
        )
    },
    StartLine {
        explicit: true,
        probes: &[LIVE],
        ..line(
            "ModelMesh",
            Start::Shell(
                "mkdir -p /models/_triton_models; chmod 777 /models/_triton_models; exec tritonserver \
                 \"--model-repository=/models/_triton_models\" \"--model-control-mode=explicit\" \
                 \"--strict-model-config=false\" \"--strict-readiness=false\" \"--allow-http=true\" \
                 \"--allow-sagemaker=false\" ",
            ),
            "/models/_triton_models",
        )
    },
    line(
        "SuperSONIC",
        Start::Shell(
            "/opt/tritonserver/bin/tritonserver \\\n--model-repository=/cvmfs/models/ \\\n--allow-gpu-metrics=true \\\n\
             --log-verbose=0 \\\n--strict-model-config=false \\\n--exit-timeout-secs=60",
        ),
        "/cvmfs/models/",
    ),
    line(
        "tutorials",
        Start::Shell(
            "bin/tritonserver --model-repository=/models --allow-cpu-metrics=true --metrics-interval-ms=1000 \
             --model-load-thread-count=2 --strict-readiness=true --log-format=ISO8601 --id=rank0 \
             --backend-config=python,shm-region-prefix-name=rank0_ --backend-config=tensorflow,version=2",
        ),
        "/models",
    ),
];

/// Names that rules, dashboards and autoscalers of these deployments read once a model has answered.
const METRICS: &[&str] = &[
    "nv_inference_request_success",
    "nv_inference_request_failure",
    "nv_inference_count",
    "nv_inference_exec_count",
    "nv_inference_request_duration_us",
    "nv_inference_queue_duration_us",
    "nv_inference_compute_input_duration_us",
    "nv_inference_compute_infer_duration_us",
    "nv_inference_compute_output_duration_us",
    "nv_inference_pending_request_count",
    "nv_inference_compute_duration_us",
    "nv_inference_load_ratio_bucket",
    "nv_cpu_utilization",
    "nv_cpu_memory_used_bytes",
    "nv_inference_first_response_histogram_ms_bucket",
    "nv_gpu_utilization",
    "nv_gpu_memory_used_bytes",
    "nv_gpu_power_usage",
];

/// The install with Triton's paths.
fn triton_root(dir: &Path) -> PathBuf {
    let root = dir.join("opt/tritonserver");
    std::fs::create_dir_all(root.join("bin")).unwrap_or_else(|e| panic!("{e}"));
    let link = symlink(dist().join("bin/trtserver"), root.join("bin/tritonserver"));
    link.unwrap_or_else(|e| panic!("{e}"));
    root
}

impl StartLine {
    /// The line with this repository, on free ports of the loopback interface.
    /// `fakes`: the libraries of a machine with a GPU.
    fn command(&self, root: &Path, models: &Path, fakes: &Fakes) -> Command {
        let place = |text: &str| {
            let text = text.replace(self.models, &models.display().to_string());
            text.replace("/opt/tritonserver", &root.display().to_string())
        };
        let ours = [
            "--http-port=0".to_owned(),
            "--grpc-port=0".to_owned(),
            "--metrics-port=0".to_owned(),
            "--http-address=127.0.0.1".to_owned(),
            "--grpc-address=127.0.0.1".to_owned(),
            format!("--backend-directory={}", backends().display()),
        ];
        let mut command = match &self.start {
            Start::Words(words) => {
                let mut command = Command::new("env");
                command.args(words.iter().map(|word| place(word))).args(ours);
                command
            }
            Start::Shell(script) => {
                // Some shells would stay, and keep the test's signals to themselves.
                let exec = if script.contains("exec ") { "" } else { "exec " };
                let script = format!("{exec}{} {}", place(script), ours.join(" "));
                let mut command = Command::new("/bin/sh");
                command.args(["-c", &script]);
                command
            }
        };
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", root.join("bin").display()));
        command.envs(self.env.iter().copied()).current_dir(root);
        command.env("LD_LIBRARY_PATH", fakes.path("")).env("FAKE_CUDA_VISIBLE", "0");
        command.env("FAKE_CUDA_DEVICES", "Fake A/7.5/1024").env("FAKE_NVML_DEVICES", "1");
        command
    }

    fn check(&self, fakes: &Fakes) {
        let who = self.who;
        let (dir, models) = (folder(), Repository::new());
        models.copy(Path::new("tests/models/identity_fp32"));
        // TRTIS's rules would refuse this group, and a complete configuration would need outputs.
        models.file(
            "identity_fp32/config.pbtxt",
            "backend: \"onnxruntime\"\nmax_batch_size: 8\ninstance_group { kind: KIND_MODEL }\n",
        );
        let process = Process::spawn(self.command(&triton_root(dir.path()), models.path(), fakes));
        let ready = |out: &str| out.lines().any(|line| line == "ready").then_some(());
        process.stdout_until("line `ready`", ready);
        let address = |kind: &str| {
            let prefix = format!("listening {kind} ");
            let out = process.stdout();
            let found = out.lines().find_map(|line| line.strip_prefix(&prefix)).map(str::to_owned);
            found.unwrap_or_else(|| panic!("{who}: no {kind} in {out}"))
        };
        let (http, metrics) = (address("http"), address("metrics"));
        let send = |bytes: Vec<u8>| Connection::open(&http).send(bytes).response();
        if self.explicit {
            let load = "/v2/repository/models/identity_fp32/load";
            let loaded = send(request("POST", load, &[], b"{}"));
            assert_eq!(loaded.status, 200, "{who}: {}", loaded.text());
        }
        for path in self.probes {
            let probe = [("User-Agent", "kube-probe/1.31"), ("Accept", "*/*")];
            let response = send(request("GET", path, &probe, b""));
            assert_eq!((response.status, response.body.len()), (200, 0), "{who}: {path}");
            // What scripts compare.
            let mut curl = Command::new("curl");
            curl.args(["-s", "-w", "%{http_code}", &format!("http://{http}{path}")]);
            assert_eq!(Process::spawn(curl).wait(TIMEOUT).stdout, "200", "{who}: {path}");
        }
        let tensor =
            r#"{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,2],"data":[1,2]}]}"#;
        let path = "/v2/models/identity_fp32/infer";
        let response = send(request("POST", path, &[], tensor.as_bytes()));
        assert_eq!(response.status, 200, "{who}: {}", response.text());
        let page = Connection::open(&metrics).send(request("GET", "/metrics", &[], b"")).response();
        let page = page.text();
        for name in METRICS {
            let starts = |line: &str| {
                line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']))
            };
            assert!(page.lines().any(starts), "{who}: no {name} in {page}");
        }
        process.signal(trtserver_tests::Signal::TERM);
        assert_eq!(process.wait(TIMEOUT).code(), 0, "{who}");
    }
}

#[test]
fn charts_and_runtimes_start_probe_and_measure_the_server_unchanged() {
    let fakes = Fakes::new();
    for line in LINES {
        line.check(&fakes);
    }
}

#[test]
fn page_of_charts_has_what_was_run() {
    let page = std::fs::read_to_string(root().join("docs/charts.md")).expect("the page");
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let rows: Vec<_> = page.lines().filter(|line| line.starts_with('|')).map(cells).collect();
    for line in LINES {
        // Line breaks and what comes before and after the program are the shell's.
        let words = match line.start {
            Start::Words(words) => words.join(" "),
            Start::Shell(script) => {
                script.split("exec ").last().unwrap_or(script).replace("\\\n", "")
            }
        };
        let probes = line.probes.iter().map(|path| path.rsplit('/').next().unwrap_or(path));
        let probes = probes.collect::<Vec<_>>().join(", ");
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        let row = ["", line.who, &format!("`{words}`"), &probes, ""].map(str::to_owned).to_vec();
        assert!(rows.contains(&row), "docs/charts.md has no row\n{}", row.join(" | "));
    }
    let shown = page.split("## Metric names").nth(1).expect("the section").split('`');
    let shown = shown.skip(1).step_by(2).filter(|name| !name.contains('…'));
    let (mut shown, mut checked) = (shown.collect::<Vec<_>>(), METRICS.to_vec());
    shown.sort_unstable();
    checked.sort_unstable();
    assert_eq!(shown, checked);
}
