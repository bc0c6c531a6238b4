//! Start lines that exist: what the name of the program makes of them.

use super::{ControlMode, ServerSettings, from_args};
use std::ffi::OsString;

/// Whether TRTIS's rules hold, whether configurations must be complete, whether ports open late.
fn rules(settings: &ServerSettings) -> (bool, bool, bool) {
    (settings.trtis_rules, settings.strict_model_config, settings.listen_when_ready)
}

fn settings(line: &str) -> ServerSettings {
    let args = line.split_whitespace().map(OsString::from);
    let start = from_args(args, &|_| None, "1.2").unwrap_or_else(|e| panic!("{line}: {e:?}"));
    start.settings
}

const TRITON: (bool, bool, bool) = (false, false, true);
const TRTIS: (bool, bool, bool) = (true, true, false);
/// Triton's flag under a name of TRTIS.
const MIXED: (bool, bool, bool) = (false, false, false);

#[test]
fn name_of_the_program_decides_what_model_store_means() {
    for (line, expected) in [
        ("tritonserver --model-store=/m", TRITON),
        ("/opt/tritonserver/bin/tritonserver --model-store=/m", TRITON),
        ("bin/tritonserver --modelstore=/m", TRITON),
        ("tritonserver --model-repository=/m", TRITON),
        ("tritonserver --model-store=/m --model-repository=/n", TRITON),
        ("tritonserver --model-store=/m --listen-when-ready=false", MIXED),
        ("tritonserver --model-store=/m --strict-model-config=true", (false, true, true)),
        ("tritonserver --model_base_path=/m", (true, true, true)),
        ("trtserver --model-store=/m", TRTIS),
        ("trtserver --model-store=/m --listen-when-ready=true", (true, true, true)),
        ("/opt/tensorrtserver/bin/trtserver --model-store=/m", TRTIS),
        ("inference_server --model-store=/m", TRTIS),
        ("trtserver --model-repository=/m", MIXED),
        ("trtserver --model-store=/m --strict-model-config=false", (true, false, false)),
    ] {
        assert_eq!(rules(&settings(line)), expected, "{line}");
    }
}

/// The lines of charts and runtimes with their ports, repositories and modes.
#[test]
fn lines_of_charts_and_runtimes() {
    use ControlMode::{Explicit, None, Poll};
    for (line, repository, ports, mode) in [
        (
            "tritonserver --model-store=s3://bucket/models --model-control-mode=poll --repository-poll-secs=5",
            "s3://bucket/models",
            (8000, 8001),
            Poll,
        ),
        (
            "tritonserver --model-store=s3://https://ns.compat.objectstorage.eu.oraclecloud.com:443/bucket/models \
             --model-control-mode=poll --repository-poll-secs=5",
            "s3://https://ns.compat.objectstorage.eu.oraclecloud.com:443/bucket/models",
            (8000, 8001),
            Poll,
        ),
        ("tritonserver --model-store=gs://bucket/models", "gs://bucket/models", (8000, 8001), None),
        (
            "tritonserver --model-store=gs://bucket/models --strict-model-config=False --log-verbose=0 \
             --allow-gpu-metrics=True",
            "gs://bucket/models",
            (8000, 8001),
            None,
        ),
        (
            "tritonserver --model-store=/mnt/models --grpc-port=9000 --http-port=8080 --allow-grpc=true --allow-http=true",
            "/mnt/models",
            (8080, 9000),
            None,
        ),
        (
            "tritonserver --model-repository=/mnt/agent/models --http-port=9000 --grpc-port=9500 --log-verbose=1 \
             --model-control-mode=explicit --backend-config=python,shm-default-byte-size=16777216",
            "/mnt/agent/models",
            (9000, 9500),
            Explicit,
        ),
        (
            "tritonserver --model-repository=/models/_triton_models --model-control-mode=explicit \
             --strict-model-config=false --strict-readiness=false --allow-http=true --allow-sagemaker=false",
            "/models/_triton_models",
            (8000, 8001),
            Explicit,
        ),
        (
            "/opt/tritonserver/bin/tritonserver --model-repository=/cvmfs/models/ --allow-gpu-metrics=true --log-verbose=0 \
             --strict-model-config=false --exit-timeout-secs=60",
            "/cvmfs/models/",
            (8000, 8001),
            None,
        ),
    ] {
        let settings = settings(line);
        assert_eq!(rules(&settings), TRITON, "{line}");
        assert_eq!(settings.model_repositories, [std::path::PathBuf::from(repository)], "{line}");
        assert_eq!((settings.http_port, settings.grpc_port), ports, "{line}");
        assert_eq!(settings.control_mode, mode, "{line}");
    }
}
