//! Wire tests: the real server binary, tested through its sockets, its command line and its files.
//! One test binary, so that the test kit is linked once;
//! `cargo test -p trtserver-tests --test wire v2_http::` runs one file.

mod access_log;
mod administration;
mod api_description;
mod backend_fetch;
mod backends;
mod bare_repository;
mod boards;
mod cancellation;
mod check_command;
mod client_fairness;
mod clients;
mod command_line;
mod completion;
mod connections;
mod cross_origin;
mod cuda_regions;
mod custom;
mod decoupled;
mod docs;
mod dynamic_batching;
mod ensembles;
mod frameworks;
mod generate;
mod gpu;
mod gpu_batches;
mod gpu_placement;
mod host_policies;
mod inline_execution;
mod instance_groups;
mod invalid_scheduling;
mod isolation;
mod kserve;
mod late_requests;
mod lifecycle;
mod load_limits;
mod load_reports;
mod logs;
mod malformed;
mod memory;
mod metrics;
mod model_control;
mod nested;
mod object_stores;
mod onnx_buckets;
mod onnx_gpu;
mod onnx_gpu_copies;
mod overload;
mod packages;
mod perf_analyzer;
mod plugin_command;
mod protocol_rows;
mod queue_policy;
mod ragged_batching;
mod rate_limiter;
mod readiness;
mod repository_poll;
mod response_cache;
mod sequence_batching;
mod shared_memory_regions;
mod shared_memory_tensors;
mod sockets;
mod start_lines;
mod status_page;
mod telemetry;
mod tensorrt;
mod tls;
mod tokens;
mod tracing;
mod triton_backends;
mod trtis_start;
mod unread_responses;
mod v1_grpc;
mod v1_http;
mod v2_grpc;
mod v2_http;
mod warmup;
mod zoo;

/// A file that no `mod` names would never be compiled, and its tests would be missing without
/// notice.
#[test]
fn every_file_is_a_module() {
    let folder = trtserver_tests::root().join("tests/wire");
    let mut open = vec![(folder.clone(), folder.join("main.rs"))];
    while let Some((folder, parent)) = open.pop() {
        let text = std::fs::read_to_string(&parent).unwrap();
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push((path.clone(), path.join("mod.rs")));
            }
            let name = path.file_stem().unwrap().to_str().unwrap();
            let listed = text.lines().any(|line| line == format!("mod {name};"));
            assert!(listed || path == parent, "{}: no `mod {name};`", parent.display());
        }
    }
}
