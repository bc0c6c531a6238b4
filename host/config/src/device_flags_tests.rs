//! Unit tests of `device_flags.rs`.

use crate::testing::{error_of, run};
use std::collections::BTreeMap;

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
fn load_limits_by_gpu() {
    for (values, want) in [
        (&["0:0.5"][..], &[(0, 0.5)][..]),
        (&["0:0.5", "1:0", "0:.25"], &[(0, 0.25), (1, 0.0)]),
        // They ask for nothing.
        (&["0:1", "1:1.0", "2:7"], &[]),
        (&["0:0.5", "0:1"], &[]),
    ] {
        let flags = values.iter().map(|value| format!(" --model-load-gpu-limit={value}"));
        let line = format!("--model-repository=/m{}", flags.collect::<String>());
        let start = run(&line).unwrap();
        assert_eq!(start.settings.gpu_load_limits, want.iter().copied().collect(), "{line}");
        assert_eq!(start.notes, [], "{line}");
    }
    for text in ["0.5", "0:", ":0.5", "-1:0.5", "0:-0.1", "0:inf", "0:NaN", "a:0.5", "0:50%"] {
        let error = error_of(&format!("--model-repository=/m --model-load-gpu-limit={text}"));
        let want = format!("--model-load-gpu-limit={text}: expected GPU:FRACTION, such as 0:0.8");
        assert_eq!(error, want);
    }
}

#[test]
fn host_policies_by_name() {
    let line = "--model-repository=/m --host-policy=gpu_0,cpu-cores=0-3,8 --host-policy=cpu,numa-node=1 \
                --host-policy=gpu_0,numa-node=0 --host-policy=cpu,numa-node=0";
    let policies = run(line).unwrap().settings.host_policies;
    let shown: Vec<_> = policies.values().map(|policy| policy.describe()).collect();
    let want =
        ["host policy 'cpu' (numa-node=0)", "host policy 'gpu_0' (cpu-cores=0-3,8, numa-node=0)"];
    assert_eq!(shown, want);
    let names: BTreeMap<_, _> =
        policies.iter().map(|(name, policy)| (name, &policy.name)).collect();
    assert!(names.iter().all(|(key, name)| key == name));
}

#[test]
fn wrong_host_policies_are_named() {
    const FORM: &str = "expected NAME,SETTING=VALUE, such as gpu_0,cpu-cores=0-3";
    for (text, want) in [
        ("cpu", FORM),
        ("cpu,numa-node", FORM),
        ("numa-node=0", FORM),
        (",numa-node=0", FORM),
        ("cpu,numa-node=x", "'x' is not the number of a memory node below 1024"),
        ("cpu,cpu-cores=3-1", "'3-1' is not a list of CPU cores below 1024, such as 0-3,8"),
        (
            "cpu,cores=1",
            "Unsupported host policy setting 'cores' is specified, supported settings are 'numa-node', 'cpu-cores'",
        ),
    ] {
        let error = error_of(&format!("--model-repository=/m --host-policy={text}"));
        assert_eq!(error, format!("--host-policy={text}: {want}"));
    }
}
