//! Unit tests of `config`: command lines and the settings, or the exit code and text, that they
//! result in.

use super::testing::{error_of, run};
use super::*;
use crate::cli::catalogue::FlagStatus;
use std::io::Write;
use std::path::PathBuf;

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
        ("--allow-vertex-ai=true", "the Vertex AI frontend"),
        ("--allow-sagemaker=true", "the SageMaker frontend"),
    ];
    for (line, feature) in table {
        let want = format!("{line} is not supported yet: this server does not have {feature}");
        let error = error_of(&format!("--model-store=/m {line}"));
        assert!(error.starts_with(&want), "{error}");
    }
    let both = error_of("--allow-sagemaker --allow-vertex-ai");
    assert_eq!(both.lines().count(), 2, "{both}");
}

#[test]
fn flags_of_absent_features_that_ask_for_nothing_are_warned_of() {
    let line = "--rate-limit-resource=R:4";
    let start = run(&format!("--model-repository=/m {line}")).expect(line);
    let text = "--rate-limit-resource has no effect without --rate-limit=execution_count";
    assert_eq!(start.notes, [StartNote::Warning(text.to_owned())]);
    for line in ["--allow-sagemaker=false", "--allow-vertex-ai=false", "--rate-limit=off"] {
        let start = run(&format!("--model-repository=/m {line}")).expect(line);
        assert_eq!(start.notes, [], "{line}");
    }
}

#[test]
fn flags_without_full_effect_are_noted() {
    let table = [
        ("--http-thread-count=8", vec![StartNote::Info("--http-thread-count has no effect: the number of threads follows the number of CPU cores".into())]),
        ("--allow-poll-model-repository=true", vec![]),
        ("--file-system-poll-secs=5", vec![]),
        ("--model-control-mode=poll --repository-poll-secs=5 --repository-settle-secs=0.1", vec![]),
        ("--model-control-mode=explicit --repository-poll-secs=5", vec![StartNote::Warning("--repository-poll-secs has no effect without --model-control-mode=poll".into())]),
        ("--model-control-mode=poll --repository-poll-secs=0", vec![StartNote::Warning("--repository-poll-secs=0 disables polling: models are loaded at start only".into())]),
        ("--repository-poll-secs=-1 --allow-poll-model-repository=false", vec![]),
        ("--grpc-keepalive-time=7200000", vec![]),
        ("--model-namespacing=true", vec![]),
        ("--load-model=a", vec![StartNote::Warning("--load-model has no effect without --model-control-mode=explicit: all models are loaded".into())]),
        (
            "--model-control-mode=none --allow-model-control=0",
            vec![StartNote::Warning("--allow-model-control or --allow-poll-model-repository can not be specified if --model-control-mode is specified".into())],
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
    let want = format!(
        "trtserver {} (plugin ABI 1.2)\ncommit: unknown (not built as a package)\n\
         features: tls object-stores\n",
        env!("CARGO_PKG_VERSION")
    );
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
    cli::build_command("0").debug_assert();
    for flag in cli::catalogue::all_flags() {
        assert!(!flag.help.ends_with('.'), "{}", flag.name);
        if let FlagStatus::Unsupported { off, .. } | FlagStatus::Warns { quiet: off, .. } =
            flag.status
        {
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
