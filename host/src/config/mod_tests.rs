//! Unit tests of `config`: command lines and the settings, or the exit code and text, that they result in.

use super::*;
use crate::cli::catalogue::Status;
use crate::stats::LatencySettings;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

fn run_in(line: &str, env: &[(&str, &str)]) -> Result<Start, Exit> {
    let args = std::iter::once("trtserver").chain(line.split_whitespace()).map(OsString::from);
    let env = |name: &str| env.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
    from_args(args, &env, "1.2")
}

fn run(line: &str) -> Result<Start, Exit> {
    run_in(line, &[])
}

fn error_of(line: &str) -> String {
    let stop = run(line).expect_err(line);
    assert_eq!((stop.code, stop.stdout.as_str()), (1, ""), "{line}");
    let hint = format!("Usage: {}\ntrtserver --help lists the flags.\n", cli::USAGE);
    let text = stop.stderr.strip_suffix(&hint).unwrap_or_else(|| panic!("{line}: {}", stop.stderr));
    text.strip_suffix('\n').unwrap().to_owned()
}

fn hosts(hosts: &[&str]) -> Vec<ListenAddress> {
    hosts.iter().map(|host| ListenAddress::Host((*host).to_owned())).collect()
}

fn defaults() -> Settings {
    Settings {
        program: Program::Trtserver,
        server_id: "inference:0".into(),
        server_name: "triton".into(),
        server_version: env!("CARGO_PKG_VERSION").into(),
        before_v1_13: false,
        exit_on_error: true,
        exit_timeout: Duration::from_secs(30),
        exit_sequence_timeout: Duration::from_secs(5),
        strict_readiness: true,
        allow_profiling: false,
        ready_models: vec![],
        log: LogSettings::default(),
        model_repositories: vec!["/m".into()],
        model_cache_dir: None,
        model_cache_size: None,
        store_timeout: Duration::from_secs(30),
        era_a: false,
        strict_model_config: true,
        model_load_thread_count: 4,
        model_load_retries: 0,
        model_config_name: None,
        model_namespacing: false,
        max_instances: None,
        max_instances_per_model: 1024,
        max_load_memory: 256 << 20,
        warmup_timeout: Some(Duration::from_secs(1800)),
        control_mode: ControlMode::None,
        poll_interval: Duration::from_secs(15),
        settle_time: Duration::from_secs(1),
        load_models: vec![],
        allow_http: true,
        http_addresses: hosts(&["0.0.0.0"]),
        http_port: 8000,
        reuse_http_port: false,
        health_addresses: vec![],
        http_health_port: None,
        http_health: true,
        http_max_input_size: 67108864,
        allow_grpc: true,
        grpc_addresses: hosts(&["0.0.0.0"]),
        grpc_port: 8001,
        reuse_grpc_port: false,
        max_request_memory: None,
        unread: UnreadLimits {
            per_stream: 16 << 20,
            per_connection: 256 << 20,
            timeout: Duration::from_secs(30),
        },
        http_max_body_size: i32::MAX as u64,
        grpc_max_message_size: i32::MAX as usize,
        grpc_max_expanded_size: 256 << 20,
        decode_thread_count: None,
        connections: ConnectionSettings {
            max: MaxConnections::Derived,
            header_timeout: Some(Duration::from_secs(30)),
            body_timeout: Some(Duration::from_secs(30)),
            body_min_rate: 1024,
            idle_timeout: Some(Duration::from_secs(300)),
            max_age: None,
            grpc_max_age: None,
            grpc_max_age_grace: None,
            tcp_keepalive: Some(Duration::from_secs(60)),
            grpc_keepalive_time: None,
            grpc_keepalive_timeout: Duration::from_secs(20),
        },
        http_header_forward: None,
        grpc_header_forward: None,
        http_restricted: None,
        grpc_restricted: None,
        grpc_compression: None,
        allow_metrics: true,
        metrics_addresses: hosts(&["0.0.0.0"]),
        metrics_port: 8002,
        allow_gpu_metrics: true,
        allow_cpu_metrics: true,
        metrics_interval: Duration::from_secs(2),
        latency_metrics: LatencySettings::default(),
        backend_dirs: vec![],
        backend_config: BTreeMap::new(),
        platform_config_file: None,
        min_compute_capability: 0.0,
        allow_client_shm: false,
        cpu_only: false,
        pinned_pool: 256 << 20,
        gpu_pools: BTreeMap::new(),
    }
}

type Change = fn(&mut Settings);

#[test]
fn flags_become_settings() {
    let table: &[(&str, Change)] = &[
        ("--model-store=/m", |_| {}),
        ("--model-store /m", |_| {}),
        ("--model-repository=/m", |s| s.strict_model_config = false),
        ("--model-repository=/m --strict-model-config=true", |_| {}),
        ("--model-repository=/m --disable-auto-complete-config", |_| {}),
        ("--model-store=/m --id=mine", |s| {
            (s.server_id, s.server_name) = ("mine".into(), "mine".into())
        }),
        ("--model-store=/m --grpc-infer-response-compression-level=high", |s| {
            s.grpc_compression = Some(9)
        }),
        ("--modelstore=/m", |_| {}),
        ("-model-store=/m", |_| {}),
        ("-model-store /m", |_| {}),
        ("--model-sto=/m", |_| {}),
        ("--model_base_path=/m", |s| s.era_a = true),
        ("--model-store=/m --model-store=/n --model-repository=/m", |s| {
            s.model_repositories = vec!["/m".into(), "/n".into()];
            s.strict_model_config = false
        }),
        ("--model-store=/m --allow-http", |_| {}),
        ("--model-store=/m --allow-http=OFF --http-port=8001", |s| {
            s.allow_http = false;
            s.http_port = 8001
        }),
        ("--allow-grpc 0 --model-store=/m", |s| s.allow_grpc = false),
        ("--allow-metrics=False --strict-readiness=on --model-store=/m", |s| {
            s.allow_metrics = false
        }),
        ("--model-store=/m --http-port=1 --http-port=2", |s| s.http_port = 2),
        ("--model-store=/m --http-port=0 --grpc-port=0 --metrics-port=0", |s| {
            (s.http_port, s.grpc_port, s.metrics_port) = (0, 0, 0)
        }),
        ("--model-store=/m --exit-timeout-secs=-5", |s| s.exit_timeout = Duration::ZERO),
        ("--model-store=/m --exit-timeout-secs -5", |s| s.exit_timeout = Duration::ZERO),
        ("--model-store=/m --max-request-memory=3g --grpc-max-expanded-size=70000", |s| {
            (s.max_request_memory, s.grpc_max_expanded_size) = (Some(3 << 30), 70000)
        }),
        ("--model-store=/m --min-supported-compute-capability=7.5", |s| {
            s.min_compute_capability = 7.5
        }),
        ("--model-store=/m --log-verbose", |s| s.log.verbose = 1),
        ("--model-store=/m --log-verbose=3 --log-info=false", |s| {
            s.log.verbose = 3;
            s.log.info = false
        }),
        ("--model-store=/m --log-verbose=-1", |_| {}),
        ("--model-store=/m --log-json", |s| s.log.format = LogFormat::Json),
        ("--model-store=/m --log-format=iso8601", |s| s.log.format = LogFormat::Iso8601),
        ("--model-store=/m --log-file=/l", |s| s.log.file = Some("/l".into())),
        ("--model-store=/m --http-health-port=8000", |_| {}),
        ("--model-store=/m --http-health-port=9000 --http-port=8000", |s| {
            s.http_health_port = Some(9000);
            s.health_addresses = hosts(&["0.0.0.0"])
        }),
        ("--model-store=/m --http-port -1 --http-health-port=9000", |s| {
            (s.allow_http, s.http_port, s.http_health_port) = (false, 0, Some(9000));
            s.health_addresses = hosts(&["0.0.0.0"])
        }),
        ("--model-store=/m --http-health-port=-1 --grpc-port=-1", |s| {
            (s.http_health, s.allow_grpc, s.grpc_port) = (false, false, 0)
        }),
        ("--model-store=/m --allow-profiling", |s| s.allow_profiling = true),
        ("--model-store=/m --platform-config-file=/p", |s| {
            s.platform_config_file = Some("/p".into())
        }),
        ("--model-store=/m --strict-model-config=false", |s| s.strict_model_config = false),
        ("--model-store=/m --disable-auto-complete-config", |_| {}),
        ("--model-store=/m --http-address=127.0.0.1", |s| {
            s.http_addresses = hosts(&["127.0.0.1"]);
            s.metrics_addresses = hosts(&["127.0.0.1"])
        }),
        (
            "--model-store=/m --http-address=127.0.0.1,[::1] --http-address=unix:/s,::1 --reuse-http-port \
             --grpc-address=unix:/g --reuse-grpc-port=true",
            |s| {
                s.http_addresses = hosts(&["127.0.0.1", "::1"]);
                s.http_addresses.push(ListenAddress::Unix("/s".into()));
                s.metrics_addresses = hosts(&["127.0.0.1", "::1"]);
                s.grpc_addresses = vec![ListenAddress::Unix("/g".into())];
                (s.reuse_http_port, s.reuse_grpc_port) = (true, true);
            },
        ),
        // Nothing is open to other machines, and ports of Unix sockets do not collide.
        ("--model-store=/m --http-address=unix:/s --http-port=8001 --http-health-port=9", |s| {
            s.http_addresses = vec![ListenAddress::Unix("/s".into())];
            s.metrics_addresses = hosts(&["127.0.0.1"]);
            (s.http_port, s.http_health_port) = (8001, Some(9));
            s.health_addresses = hosts(&["127.0.0.1"])
        }),
        ("--model-store=/m --ready-models=b,a --ready-models=b", |s| {
            s.ready_models = vec!["a".into(), "b".into()]
        }),
        ("--model-store=/m --http-health-address=unix:/h", |s| {
            s.health_addresses = vec![ListenAddress::Unix("/h".into())]
        }),
        ("--model-store=/m --backend-dir=/p --backend-directory=/q --backend-dir=/p", |s| {
            s.backend_dirs = vec!["/p".into(), "/q".into()]
        }),
        (
            "--model-store=/m --backend-config=onnx,a=1,2=3 --backend-config x=y,z=w \
             --tf-gpu-memory-fraction=0.50",
            |s| {
                let entry = |k: &str, v: &str| BTreeMap::from([(k.to_owned(), v.to_owned())]);
                s.backend_config = BTreeMap::from([
                    ("".to_owned(), entry("x", "y,z=w")),
                    ("onnx".to_owned(), entry("a", "1,2=3")),
                    ("tensorflow".to_owned(), entry("gpu-memory-fraction", "0.5")),
                ])
            },
        ),
        (
            "--model-store=/m --model-control-mode=none --allow-model-control=false \
             --rate-limit=off --trace-level=off --allow-client-shm=false --grpc-use-ssl=0",
            |_| {},
        ),
        ("--model-store=/m --allow-client-shm", |s| s.allow_client_shm = true),
    ];
    for (line, change) in table {
        let mut want = defaults();
        change(&mut want);
        match run(line) {
            Ok(start) => assert_eq!(start.settings, want, "{line}"),
            Err(stop) => panic!("{line}: {}", stop.stderr),
        }
    }
}

#[test]
fn environment_variables_become_settings() {
    let env = [("TENSORRT_SERVER_VERSION", "19.02"), ("TRITON_SERVER_CPU_ONLY", "")];
    let settings = run_in("--model-store=/m", &env).unwrap().settings;
    assert_eq!((settings.server_version.as_str(), settings.cpu_only), ("19.02", true));
    for (version, before) in
        [("1.11.0", true), ("0.12.0dev", true), ("1.13.0", false), ("19.02", false), ("1", false)]
    {
        let settings = run_in("--model-store=/m", &[("TENSORRT_SERVER_VERSION", version)]);
        assert_eq!(settings.unwrap().settings.before_v1_13, before, "{version}");
    }
    let env = [("TENSORRT_SERVER_VERSION", ""), ("TRITON_SERVER_ESCAPE_LOG_MESSAGES", "0")];
    let settings = run_in("--model-store=/m", &env).unwrap().settings;
    assert_eq!(settings.server_version, env!("CARGO_PKG_VERSION"));
    assert!(!settings.log.escape);
}

#[test]
fn invalid_flags_are_refused() {
    let table = [
        ("", "--model-store must be specified"),
        ("--model-store=", "--model-store must be specified"),
        (
            "--model-store=/m --allow-http=false --allow-grpc=false",
            "At least one of the following options must be true: --allow-http, --allow-grpc",
        ),
        (
            "--model-store=/m --http-port=8001",
            "The server cannot listen to HTTP requests and gRPC requests at the same port",
        ),
        (
            "--model-store=/m --metrics-port=8001",
            "The server cannot provide metrics on same port used for HTTP or gRPC requests",
        ),
        (
            "--model-store=/m --http-port=8002",
            "The server cannot provide metrics on same port used for HTTP or gRPC requests",
        ),
        (
            "--model-store=/m --http-health-port=8001",
            "The server cannot serve health on the port used for gRPC requests or metrics",
        ),
        (
            "--model-store=/m --http-health-address=::1,unix:/h",
            "--http-health-address=::1 requires --http-health-port",
        ),
        (
            "--model-store=/m --http-address=unix:/s --grpc-address=::,unix:/s",
            "unix:/s is given to two listeners: each needs a socket of its own",
        ),
        (
            "--model-store=/m --ready-models=a,",
            "--ready-models=a,: expected names of models, separated by commas",
        ),
        (
            "--model-store=/m --ready-models=a --strict-readiness=false",
            "--ready-models and --strict-readiness=false contradict each other: without strict readiness no model matters",
        ),
        ("--model-store=/m --grpc-address=::1,", "--grpc-address=: an address is empty"),
        ("--http-prot=80", "Unrecognized option: --http-prot\nDid you mean --http-port?"),
        ("--zzzzzzz", "Unrecognized option: --zzzzzzz"),
        (
            "--grpc-max-conn=1",
            "Unrecognized option: --grpc-max-conn\nIt could be --grpc-max-connection-age, \
             --grpc-max-connection-age-grace.",
        ),
        ("-x", "Unrecognized option: -x"),
        ("stray", "Unexpected argument: stray"),
        ("plugins", "Unexpected argument: plugins\nDid you mean the command trtserver plugin?"),
        (
            "--id=a plugin",
            "Unexpected argument: plugin\nThe command must come first: trtserver plugin …",
        ),
        ("--allow-httpX", "Unrecognized option: --allow-httpX\nDid you mean --allow-http?"),
        (
            "--allow-http=maybe",
            "Couldn't interpret value maybe for flag --allow-http. It takes true or false.",
        ),
        (
            "--http-port=65536",
            "Couldn't interpret value 65536 for flag --http-port. It takes a whole number from -1 \
             to 65535.",
        ),
        (
            "--http-port=",
            "Couldn't interpret value  for flag --http-port. It takes a whole number from -1 to \
             65535.",
        ),
        ("--http-port", "a value is required for '--http-port <N>' but none was supplied"),
        (
            "--model-store=/m --max-request-memory=5X",
            "Couldn't interpret value 5X for flag --max-request-memory. It takes a number of bytes, \
             at least 1, such as 1000000 or 512M.",
        ),
        (
            "--http-thread-count=x",
            "Couldn't interpret value x for flag --http-thread-count. It takes a whole number.",
        ),
        (
            "--log-format=xml",
            "Couldn't interpret value xml for flag --log-format. It takes one of default, \
             ISO8601, json.",
        ),
        (
            "--log-json --log-format=ISO8601",
            "--log-json and --log-format ask for two different formats",
        ),
        (
            "--strict-model-config=false --disable-auto-complete-config",
            "--disable-auto-complete-config and --strict-model-config=false contradict each other",
        ),
        ("--backend-config=onnx", "--backend-config=onnx: expected [NAME,]KEY=VALUE"),
        ("--backend-config=onnx,=1", "--backend-config=onnx,=1: expected [NAME,]KEY=VALUE"),
        ("--backend-config=,a=1", "--backend-config=,a=1: expected [NAME,]KEY=VALUE"),
        ("--metrics-interval-ms=0", "--metrics-interval-ms=0 must be more than 0"),
    ];
    for (line, want) in table {
        assert_eq!(error_of(line), want, "{line}");
    }
}

#[test]
fn unsupported_flags_are_refused() {
    let table = [
        ("--grpc-use-ssl=true", "gRPC over TLS"),
        ("--grpc-use-ssl-mutual=false", "gRPC over TLS"),
        ("--grpc-server-cert=/c", "gRPC over TLS"),
        ("--trace-level=MIN", "request tracing"),
        ("--trace-config=rate=1", "request tracing"),
        ("--rate-limit=execution_count", "the rate limiter"),
        ("--cache-config=local,size=1", "the response cache"),
        ("--response-cache-byte-size=1", "the response cache"),
        ("--allow-vertex-ai=true", "the Vertex AI frontend"),
        ("--allow-sagemaker=true", "the SageMaker frontend"),
        ("--host-policy=a,numa-node=0", "host policies"),
    ];
    for (line, feature) in table {
        let want = format!("{line} is not supported yet: this server does not have {feature}");
        let error = error_of(&format!("--model-store=/m {line}"));
        assert!(error.starts_with(&want), "{error}");
    }
    let both = error_of("--allow-sagemaker --grpc-use-ssl");
    assert_eq!(both.lines().count(), 2, "{both}");
}

#[test]
fn model_control_mode_of_old_and_new_flags() {
    use ControlMode::{Explicit, None, Poll};
    let table = [
        ("", None, &[][..]),
        ("--model-control-mode=none --allow-model-control=true", None, &[]),
        ("--model-control-mode=EXPLICIT", Explicit, &[]),
        ("--model-control-mode=explicit --load-model=a --load-model b", Explicit, &["a", "b"]),
        ("--allow-model-control=true --allow-poll-model-repository=false", Explicit, &[]),
        ("--allow-model-control=false --allow-poll-model-repository=true", Poll, &[]),
        ("--model-control-mode=poll", Poll, &[]),
        ("--model-control-mode=poll --repository-poll-secs=0", None, &[]),
        ("--model-control-mode=poll --allow-poll-model-repository=false", Poll, &[]),
        ("--model-control-mode=none --repository-poll-secs=5", None, &[]),
        ("--repository-poll-secs=5", Poll, &[]),
        ("--file-system-poll-secs=5", Poll, &[]),
        ("--repository-poll-secs=0", None, &[]),
        ("--repository-poll-secs=-1", None, &[]),
        ("--allow-poll-model-repository", Poll, &[]),
        ("--allow-model-load-unload=true", Poll, &[]),
        ("--allow-poll-model-repository=true --repository-poll-secs=0", None, &[]),
        ("--allow-poll-model-repository=false --repository-poll-secs=5", None, &[]),
    ];
    for (line, mode, models) in table {
        let settings = run(&format!("--model-store=/m {line}")).unwrap().settings;
        assert_eq!(
            (settings.control_mode, &settings.load_models[..]),
            (mode, &models.iter().map(|m| (*m).to_owned()).collect::<Vec<_>>()[..]),
            "{line}"
        );
    }
    let both =
        "--allow-model-control and --allow-poll-model-repository can not be both set to true";
    for line in ["--allow-model-control", "--allow-model-control --allow-poll-model-repository"] {
        assert_eq!(error_of(&format!("--model-store=/m {line}")), both);
    }
    let all =
        error_of("--model-store=/m --model-control-mode=explicit --load-model=* --load-model=a");
    assert_eq!(all, "--load-model=* loads all models and must be the only --load-model");
}

#[test]
fn flags_without_full_effect_are_noted() {
    let table = [
        ("--http-thread-count=8", vec![Note::Info("--http-thread-count has no effect: the number of threads follows the number of CPU cores".into())]),
        ("--allow-poll-model-repository=true", vec![]),
        ("--file-system-poll-secs=5", vec![]),
        ("--model-control-mode=poll --repository-poll-secs=5 --repository-settle-secs=0.1", vec![]),
        ("--model-control-mode=explicit --repository-poll-secs=5", vec![Note::Warning("--repository-poll-secs has no effect without --model-control-mode=poll".into())]),
        ("--model-control-mode=poll --repository-poll-secs=0", vec![Note::Warning("--repository-poll-secs=0 disables polling: models are loaded at start only".into())]),
        ("--repository-poll-secs=-1 --allow-poll-model-repository=false", vec![]),
        ("--grpc-keepalive-time=7200000", vec![]),
        ("--model-namespacing=true", vec![]),
        ("--load-model=a", vec![Note::Warning("--load-model has no effect without --model-control-mode=explicit: all models are loaded".into())]),
        (
            "--model-control-mode=none --allow-model-control=0",
            vec![Note::Warning("--allow-model-control or --allow-poll-model-repository can not be specified if --model-control-mode is specified".into())],
        ),
    ];
    for (line, want) in table {
        assert_eq!(run(&format!("--model-store=/m {line}")).unwrap().notes, want, "{line}");
    }
}

#[test]
fn help_lists_all_flags_and_version_names_the_abi() {
    let help = run("--help").unwrap_err();
    assert_eq!((help.code, help.stderr.as_str()), (1, ""));
    let mut from = 0;
    for (section, flags) in cli::catalogue::SECTIONS {
        let heading = format!("\n{section}:\n");
        let at = help.stdout.find(&heading).unwrap_or_else(|| panic!("no section {section}"));
        assert!(at > from, "{section} is out of order");
        from = at;
        for flag in *flags {
            assert!(help.stdout.contains(&format!("--{}", flag.name)), "{}", flag.name);
        }
    }
    assert!(help.stdout.contains("Accepted, no effect: "));
    assert!(help.stdout.contains("Not supported yet: "));
    let version = run("--version").unwrap_err();
    let want = format!("trtserver {} (plugin ABI 1.2)\n", env!("CARGO_PKG_VERSION"));
    assert_eq!((version.code, version.stdout, version.stderr), (0, want, String::new()));
}

#[test]
fn name_of_the_program_decides_the_exit_status_of_help() {
    for (name, code) in [
        ("trtserver", 1),
        ("/opt/inference_server/bin/inference_server", 1),
        ("/opt/tritonserver/bin/tritonserver", 0),
    ] {
        let args = [name, "--help"].map(OsString::from);
        assert_eq!(from_args(args, &|_| None, "1").unwrap_err().code, code, "{name}");
    }
}

#[test]
fn catalogue_is_consistent() {
    cli::command("0").debug_assert();
    for flag in cli::catalogue::all() {
        assert!(!flag.help.ends_with('.'), "{}", flag.name);
        if let Status::Unsupported { off, .. } | Status::Warns { quiet: off, .. } = flag.status {
            let quiet = flag.default.is_empty() || off.is_empty() || off.contains(&flag.default);
            assert!(quiet, "{}: its own default is refused", flag.name);
        }
    }
}

#[test]
fn command_line_takes_precedence_over_config_file() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(
        b"# ours\nmodel_store = [\"/a\", \"/b\"]\nhttp-port = 9000\ngrpc_port = 9001\nlog-verbose = 2\n",
    )
    .unwrap();
    let path = file.path().display().to_string();
    let settings = run(&format!("--config={path} --http-port=7000")).unwrap().settings;
    assert_eq!(settings.model_repositories, [PathBuf::from("/a"), "/b".into()]);
    assert_eq!((settings.http_port, settings.grpc_port, settings.log.verbose), (7000, 9001, 2));
    let settings = run(&format!("--config={path} --model-store=/c")).unwrap().settings;
    assert_eq!(settings.model_repositories, [PathBuf::from("/c")]);

    file.write_all(b"metrics-port = 70000\n").unwrap();
    let text = error_of(&format!("--config={path}"));
    let want = "Couldn't interpret value 70000 for flag --metrics-port. It takes a whole number";
    assert!(text.starts_with(&format!("{path}:6: {want}")), "{text}");

    let text = error_of("--config=/no/such/file");
    assert!(text.starts_with("/no/such/file: cannot read the configuration file: "), "{text}");
}

#[cfg(unix)]
#[test]
fn paths_need_not_be_utf8() {
    use std::os::unix::ffi::OsStringExt;
    let with_invalid_byte = |flag: &str| {
        let mut bytes = flag.as_bytes().to_vec();
        bytes.push(0xff);
        OsString::from_vec(bytes)
    };
    let run = |arg: OsString| from_args(["trtserver".into(), arg], &|_| None, "1");
    let settings = run(with_invalid_byte("--model-store=/m")).unwrap().settings;
    assert_eq!(settings.model_repositories[0].as_os_str(), with_invalid_byte("/m"));
    let stop = run(with_invalid_byte("--id=")).unwrap_err();
    assert!(stop.stderr.contains("It takes text in UTF-8."), "{}", stop.stderr);
}

#[test]
fn memory_pools_by_gpu() {
    let line = "--model-repository=/m --cuda-memory-pool-byte-size=1:5 --cuda-memory-pool-byte-size=0:0 \
                --cuda-memory-pool-byte-size=1:1048576 --pinned-memory-pool-byte-size=0";
    let settings = run(line).unwrap().settings;
    assert_eq!(settings.gpu_pools, [(0, 0), (1, 1 << 20)].into());
    assert_eq!(settings.pinned_pool, 0);
    for text in ["5", "0:", ":5", "-1:5", "0:-1", "0:5:6", "a:5", "0:5M"] {
        let error = error_of(&format!("--model-repository=/m --cuda-memory-pool-byte-size={text}"));
        let expected = "expected GPU:BYTES, such as 0:67108864";
        assert_eq!(error, format!("--cuda-memory-pool-byte-size={text}: {expected}"));
    }
}

#[test]
fn latency_metrics_by_key() {
    let with = |text: &str| format!("--model-repository=/m --metrics-config={text}");
    let line = with("summary_latencies=true --metrics-config counter_latencies=FALSE ")
        + "--metrics-config histogram_latencies=0 --metrics-config summary_quantiles=0.5:0.05,1:0";
    let expected = LatencySettings {
        counters: false,
        histograms: false,
        summaries: true,
        quantiles: vec![0.5, 1.0],
    };
    assert_eq!(run(&line).unwrap().settings.latency_metrics, expected);
    for (text, needed) in [
        ("summary_latencies", "KEY=VALUE"),
        ("summary_latencies=maybe", "true or false"),
        ("summary_quantiles=0.5", "QUANTILE:ERROR,…"),
        ("summary_quantiles=2:0.1", "QUANTILE:ERROR,…"),
        ("summary_quantiles=", "QUANTILE:ERROR,…"),
        ("latency=true", "one of the keys counter_latencies, histogram_latencies"),
    ] {
        let error = error_of(&with(text));
        let start = format!("--metrics-config={text}: expected {needed}");
        assert!(error.starts_with(&start), "{error}");
    }
}
