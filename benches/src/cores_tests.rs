//! Unit tests of `cores.rs`.

use super::*;

#[test]
fn every_core_has_one_side() {
    let described = |cores: &[usize]| split(cores).describe();
    assert_eq!(described(&[0, 1]), "servers pinned to core 0, load to core 1");
    assert_eq!(described(&[2, 3, 5]), "servers pinned to core 2, load to cores 3,5");
    assert!(described(&[7]).contains("nothing is pinned"));
}

#[test]
fn affinity_is_restored() {
    let cores = || {
        let own = sched_getaffinity(None).unwrap();
        (0..CpuSet::MAX_CPU).filter(|&core| own.is_set(core)).collect::<Vec<_>>()
    };
    let before = cores();
    let shared = Cores::share().unwrap();
    let inside = shared.as_load(|| Ok(cores())).unwrap();
    assert_eq!((inside, cores()), (shared.load, before));
}
