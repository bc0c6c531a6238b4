//! Unit tests of `group.rs`.

use super::*;
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
        ..Default::default()
    };
    let file_on = |device: i32| if device == 3 { "three" } else { "default" };
    let plans = plan_instances(&config, false, file_on).into_iter();
    let got: Vec<_> = plans.map(|p| (p.name, p.device, p.file, p.host_policy)).collect();
    let want = [
        ("m_0_0_cpu", -1, "default", "cpu"),
        ("m_0_1_cpu", -1, "default", "cpu"),
        ("m_1_0_gpu0", 0, "default", "gpu_0"),
        ("m_1_0_gpu3", 3, "three", "gpu_3"),
        ("m_2_0_model", -1, "default", "mine"),
    ];
    let want = want.map(|(name, device, file, policy)| {
        (name.to_owned(), device, file.to_owned(), policy.to_owned())
    });
    assert_eq!(got, want);
}
