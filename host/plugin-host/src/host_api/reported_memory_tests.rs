//! Unit tests of `reported_memory.rs`.

use super::*;
use crate::host_api::scope::Scope;

fn of(model: &str) -> Vec<(String, Memory, u64)> {
    let mut all = reported_memory();
    all.retain(|r| r.reporter.model.as_ref().is_some_and(|(name, _)| &**name == model));
    all.into_iter().map(|r| (r.reporter.label.to_string(), r.memory, r.bytes)).collect()
}

#[test]
fn report_replaces_the_former_one_and_ends_with_its_scope() {
    let model = Scope::for_model("reports", 3);
    let instance = Scope::for_instance("reports_0_gpu1", &model);
    model.report(Memory::CPU, 10);
    instance.report(Memory::gpu(1), 20);
    instance.report(Memory::gpu(1), 30);
    instance.report(Memory::gpu(0), 5);
    instance.report(Memory::gpu(0), 0);
    let expected = [
        ("model reports:3".to_owned(), Memory::CPU, 10),
        ("instance reports_0_gpu1".to_owned(), Memory::gpu(1), 30),
    ];
    assert_eq!(of("reports"), expected);
    drop(instance);
    assert_eq!(of("reports"), expected[..1]);
    drop(model);
    assert_eq!(of("reports"), []);
}
