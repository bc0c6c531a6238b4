//! Unit tests of `delay_hooks.rs`.

use super::*;

fn hooks(env: &[(&str, &str)]) -> Option<DelayHooks> {
    DelayHooks::from_env(&|name: &str| {
        env.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    })
}

#[test]
fn no_variable_means_no_hook() {
    assert!(hooks(&[]).is_none());
    assert!(hooks(&[("TRITONSERVER_DELAY_GRPC_PROCESS", "0")]).is_none());
    assert!(hooks(&[("TRITONSERVER_DELAY_GRPC_PROCESS", "x")]).is_none());
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
    let hooks = hooks(&env).unwrap();
    let [before, after, cancel] = [6, 7, 9].map(Duration::from_millis);
    assert_eq!(hooks.delays(true), Some(CallDelays { before, after, cancel }));
    let after = Duration::from_secs(2);
    assert_eq!(hooks.delays(false), Some(CallDelays { after, ..CallDelays::default() }));
}
