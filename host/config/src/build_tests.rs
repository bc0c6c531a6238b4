//! Unit tests of `build.rs`.

use super::super::testing::{error_of, run, run_in};
use super::*;
use crate::{ClientSource, FairnessSettings, RateLimitResource, RateLimitSettings, TlsSettings};
use std::collections::BTreeMap;
use trtserver_base::stats::LatencySettings;

fn hosts(hosts: &[&str]) -> Vec<ListenAddress> {
    hosts.iter().map(|host| ListenAddress::Host((*host).to_owned())).collect()
}

fn defaults() -> ServerSettings {
    ServerSettings {
        rate_limit: None,
        fairness: None,
        program: ProgramName::Trtserver,
        server_id: "inference:0".into(),
        server_name: "triton".into(),
        server_version: env!("CARGO_PKG_VERSION").into(),
        before_v1_13: false,
        exit_on_error: true,
        exit_timeout: Duration::from_secs(30),
        exit_sequence_timeout: Duration::from_secs(5),
        drain_delay: Duration::ZERO,
        load_reports: LoadReportMode::OnRequest,
        queue_wait_target: Duration::from_millis(100),
        refuse_late_requests: false,
        strict_readiness: true,
        allow_profiling: false,
        ready_models: vec![],
        log: LogSettings::default(),
        access_log: None,
        model_repositories: vec!["/m".into()],
        repositories_come_late: false,
        model_cache_dir: None,
        model_cache_size: None,
        store_timeout: Duration::from_secs(30),
        emulate_18_04: false,
        trtis_rules: true,
        strict_model_config: true,
        strict_bare_models: false,
        bare_model_name: None,
        inference_service: None,
        model_load_thread_count: 4,
        model_load_retries: 0,
        model_config_name: None,
        model_namespacing: false,
        max_instances: None,
        max_instances_per_model: 1024,
        max_load_memory: 256 << 20,
        warmup_timeout: Some(Duration::from_secs(1800)),
        control_mode: ControlMode::None,
        model_link_dirs: Vec::new(),
        allow_uploaded_code: false,
        poll_interval: Duration::from_secs(15),
        settle_time: Duration::from_secs(1),
        load_models: vec![],
        listen_when_ready: false,
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
            max_open_calls: Some(65536),
            first_message_timeout: Some(Duration::from_secs(30)),
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
        trace: crate::TraceConfig::default(),
        tls: TlsSettings {
            http: None,
            grpc: None,
            metrics: None,
            health: None,
            reload_interval: Some(Duration::from_secs(10)),
            handshake_timeout: Some(Duration::from_secs(10)),
            max_handshakes: 1024,
        },
        access: AccessSettings {
            auth_file: None,
            reload_interval: Some(Duration::from_secs(10)),
            control: None,
            control_grpc: None,
        },
        ui: true,
        cors_origins: None,
        http_header_forward: None,
        grpc_header_forward: None,
        http_restricted: None,
        grpc_restricted: None,
        grpc_compression: None,
        response_cache: None,
        allow_metrics: true,
        metrics_addresses: hosts(&["0.0.0.0"]),
        metrics_port: 8002,
        http_metrics: false,
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
        gpu_load_limits: BTreeMap::new(),
        host_policies: BTreeMap::new(),
    }
}

type Change = fn(&mut ServerSettings);

#[test]
fn flags_become_settings() {
    let table: &[(&str, Change)] = &[
        ("--model-store=/m", |_| {}),
        ("--model-store /m", |_| {}),
        ("--model-repository=/m", |s| (s.trtis_rules, s.strict_model_config) = (false, false)),
        ("--model-repository=/m --strict-model-config=true", |s| {
            (s.trtis_rules, s.strict_bare_models) = (false, true)
        }),
        ("--model-repository=/m --disable-auto-complete-config", |s| {
            (s.trtis_rules, s.strict_bare_models) = (false, true)
        }),
        ("--model-store=/m --model-name=m", |s| s.bare_model_name = Some("m".into())),
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
        ("--model_base_path=/m", |s| s.emulate_18_04 = true),
        ("--model-store=/m --model-store=/n --model-repository=/m", |s| {
            s.model_repositories = vec!["/m".into(), "/n".into()];
            (s.trtis_rules, s.strict_model_config) = (false, false)
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
        ("--model-store=/m --listen-when-ready", |s| s.listen_when_ready = true),
        ("--model-store=/m --http-metrics", |s| s.http_metrics = true),
        ("--model-store=/m --ui=off", |s| s.ui = false),
        ("--model-store=/m --http-cors-origin=*", |s| {
            s.cors_origins = Some(crate::CorsOrigins::Any)
        }),
        ("--model-store=/m --http-cors-origin=http://a --http-cors-origin=http://b", |s| {
            let origins = vec!["http://a".into(), "http://b".into()];
            s.cors_origins = Some(crate::CorsOrigins::Listed(origins))
        }),
        ("--model-store=/m --drain-delay-secs=20", |s| s.drain_delay = Duration::from_secs(20)),
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
        ("--model-store=/m --load-reports=always", |s| s.load_reports = LoadReportMode::Always),
        ("--model-store=/m --load-reports=off", |s| s.load_reports = LoadReportMode::Off),
        ("--model-store=/m --refuse-late-requests --queue-wait-target-ms=5", |s| {
            s.refuse_late_requests = true;
            s.queue_wait_target = Duration::from_millis(5);
        }),
        ("--model-store=/m --access-log=-", |s| s.access_log = Some("-".into())),
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
        ("--model-store=/m --disable-auto-complete-config", |s| s.strict_bare_models = true),
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
                s.allow_uploaded_code = true;
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
             --rate-limit=off --allow-client-shm=false --grpc-use-ssl=0",
            |_| {},
        ),
        ("--model-store=/m --rate-limit=execution_count", |s| {
            s.rate_limit = Some(RateLimitSettings::default())
        }),
        (
            "--model-store=/m --rate-limit=execution_count --rate-limit-resource=R:4:1 \
             --rate-limit-resource=S:2",
            |s| {
                let resource = |name: &str, count, device| RateLimitResource {
                    name: name.to_owned(),
                    count,
                    device,
                };
                let resources = vec![resource("R", 4, Some(1)), resource("S", 2, None)];
                s.rate_limit = Some(RateLimitSettings { resources })
            },
        ),
        ("--model-store=/m --fairness-header=X-Client --fairness-weight=a:3", |s| {
            s.fairness = Some(FairnessSettings {
                source: ClientSource::Header("x-client".to_owned()),
                weights: BTreeMap::from([("a".to_owned(), 3)]),
            })
        }),
        (
            "--model-store=/m --trace-level=OFF --trace-file=/t --trace-rate=7 \
             --trace-config=triton,log-frequency=4 --trace-config=rate=1 --trace-slow-ms=20",
            |s| {
                s.trace.file = "/t".to_owned();
                s.trace.rate_given = true;
                (s.trace.values.rate, s.trace.values.log_frequency) = (1, 4);
                s.trace.slow = Some(Duration::from_millis(20));
            },
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

#[test]
fn uploaded_code_is_taken_where_no_other_machine_can_load_models() {
    let local = "--http-address=127.0.0.1,unix:/s --grpc-address=localhost,::1,127.0.0.2";
    let http_key = "--http-restricted-api=model-repository:key=secret";
    let grpc_key = "--grpc-restricted-protocol=model-repository:key=secret";
    for (line, allowed) in [
        (String::new(), false),
        (local.to_owned(), true),
        (format!("{local} --grpc-address=0.0.0.0"), false),
        ("--http-address=127.0.0.1".to_owned(), false),
        ("--grpc-address=127.0.0.1".to_owned(), false),
        ("--http-address=127.0.0.1 --allow-grpc=false".to_owned(), true),
        ("--http-address=127.0.0.1 --grpc-port=-1".to_owned(), true),
        ("--http-address=example.com --allow-grpc=false".to_owned(), false),
        (http_key.to_owned(), false),
        (format!("{http_key} {grpc_key}"), true),
        (format!("{http_key} --grpc-address=::1"), true),
        ("--http-restricted-api=health:key=secret --allow-grpc=false".to_owned(), false),
        ("--allow-uploaded-code=true".to_owned(), true),
        (format!("{local} --allow-uploaded-code=false"), false),
    ] {
        let settings = run(&format!("--model-repository=/m {line}")).unwrap().settings;
        assert_eq!(settings.allow_uploaded_code, allowed, "{line}");
    }
    let dirs =
        run("--model-repository=/m --model-link-dir=/a --model-link-dir=/b").unwrap().settings;
    assert_eq!(dirs.model_link_dirs, ["/a", "/b"].map(PathBuf::from));
}
