//! Unit tests of `group.rs`.

use super::*;
use std::collections::BTreeMap;
use trtserver_model_config::MachineGpu;
use trtserver_proto::v2::ModelInstanceGroup;

#[test]
fn groups_expand_by_count_and_gpu() {
    let group = |name: &str, count, kind: Kind, gpus: &[i32]| ModelInstanceGroup {
        name: name.into(),
        count,
        kind: kind as i32,
        gpus: gpus.into(),
        ..Default::default()
    };
    let config = ModelConfig {
        instance_group: vec![
            group("m_0", 2, Kind::Cpu, &[]),
            group("m_1", 1, Kind::Gpu, &[0, 3]),
            ModelInstanceGroup { host_policy: "mine".into(), ..group("m_2", 1, Kind::Model, &[]) },
        ],
        default_model_filename: "default".into(),
        cc_model_filenames: [("8.0".into(), "three".into())].into(),
        ..Default::default()
    };
    let gpu = |id, compute| MachineGpu { id, name: "g".into(), compute };
    let mut bound = HostPolicy::new("gpu_3");
    bound.set("cpu-cores", "1").unwrap();
    let machine = MachineFacts::new(vec![gpu(0, (7, 5)), gpu(3, (8, 0))], 0.0)
        .with_host_policies(&BTreeMap::from([("gpu_3".to_owned(), bound)]));
    let plans = plan_instances(&config, false, &machine).into_iter();
    let got: Vec<_> = plans
        .map(|p| {
            let policy = &p.host_policy;
            (p.name.to_string(), p.device, p.file, policy.name.clone(), policy.cores().to_vec())
        })
        .collect();
    let want = [
        ("m_0_0_cpu", -1, "default", "cpu", vec![]),
        ("m_0_1_cpu", -1, "default", "cpu", vec![]),
        ("m_1_0_gpu0", 0, "default", "gpu_0", vec![]),
        ("m_1_0_gpu3", 3, "three", "gpu_3", vec![1]),
        ("m_2_0_model", -1, "default", "mine", vec![]),
    ];
    let want = want.map(|(name, device, file, policy, cores)| {
        (name.to_owned(), device, file.to_owned(), policy.to_owned(), cores)
    });
    assert_eq!(got, want);
}
