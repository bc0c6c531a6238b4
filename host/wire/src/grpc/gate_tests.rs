//! Unit tests of `gate.rs`.

use super::*;
use crate::testing;
use trtserver_config::Settings;

fn gate(flags: &[&str], env: &[(&str, &str)]) -> Option<Gate> {
    let args = ["trtserver", "--model-store=/m"].into_iter().chain(flags.iter().copied());
    let args = args.map(std::ffi::OsString::from);
    let settings: Settings = trtserver_config::from_args(args, &|_| None, "1").unwrap().settings;
    let context = testing::context(settings, []);
    let value = |name: &str| {
        env.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    };
    Gate::new(&context, &value)
}

#[test]
fn no_flag_and_no_hook_mean_no_gate() {
    assert!(gate(&[], &[]).is_none());
    assert!(gate(&[], &[("TRITONSERVER_DELAY_GRPC_PROCESS", "0")]).is_none());
    assert!(gate(&[], &[("TRITONSERVER_DELAY_GRPC_PROCESS", "x")]).is_none());
}

#[test]
fn hooks_become_delays() {
    let env = [
        ("TRITONSERVER_DELAY_GRPC_PROCESS", "5"),
        ("TRITONSERVER_DELAY_GRPC_PROCESS_ENTRY", " 1 "),
        ("TRITONSERVER_DELAY_RESPONSE_COMPLETION", "7"),
        ("TRITONSERVER_DELAY_GRPC_NOTIFICATION", "9"),
        ("TRITONSERVER_SERVER_DELAY_GRPC_RESPONSE_SEC", "2"),
    ];
    let gate = gate(&[], &env).unwrap();
    let [before, after, cancel] = [6, 7, 9].map(Duration::from_millis);
    assert_eq!(gate.delays(true), Some(Delays { before, after, cancel }));
    let after = Duration::from_secs(2);
    assert_eq!(gate.delays(false), Some(Delays { after, ..Delays::default() }));
}

#[test]
fn restricted_call_needs_its_metadata() {
    let gate = gate(&["--grpc-restricted-protocol=inference:Key=v"], &[]).unwrap();
    assert_eq!(gate.delays(true), None);
    let mut headers = HeaderMap::new();
    let infer = "/inference.GRPCInferenceService/ModelInfer";
    let status = gate.refusal(infer, &headers).unwrap();
    assert_eq!(status.code(), tonic::Code::Unavailable);
    let want = "This protocol is restricted, expecting header 'triton-grpc-protocol-Key'";
    assert_eq!(status.message(), want);
    assert!(gate.refusal("/inference.GRPCInferenceService/ServerLive", &headers).is_none());
    headers.insert("triton-grpc-protocol-key", "v".parse().unwrap());
    assert!(gate.refusal(infer, &headers).is_none());
}
