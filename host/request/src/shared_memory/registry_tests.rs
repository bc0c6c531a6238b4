//! Unit tests of `registry.rs`.

use super::super::testing::Object;
use super::*;

#[test]
fn name_is_registered_once() {
    let object = Object::new(100);
    let registry = RegionRegistry::default();
    let register = |name: &str, len| registry.register_system(name, &object.key, 0, len);
    assert_eq!(register("a", 100), Ok(()));
    assert_eq!(register("a", 100), Err(RegisterError::Exists));
    assert_eq!(register("a", 101), Err(RegisterError::Exists), "before the object is opened");
    assert_eq!(register("b", 50), Ok(()));
    let list = |registry: &RegionRegistry| {
        let regions = registry.system_regions();
        let line =
            |r: &Arc<SystemRegion>| format!("{} {} {} {}", r.name(), r.key(), r.offset(), r.len());
        regions.iter().map(line).collect::<Vec<_>>()
    };
    let key = &object.key;
    assert_eq!(list(&registry), [format!("a {key} 0 100"), format!("b {key} 0 50")]);
    registry.unregister(Some(RegionKind::Cuda), "a");
    registry.unregister(Some(RegionKind::System), "unknown");
    registry.unregister_all(Some(RegionKind::Cuda));
    assert_eq!(list(&registry).len(), 2);
    registry.unregister(Some(RegionKind::System), "a");
    assert_eq!(list(&registry), [format!("b {key} 0 50")]);
    assert_eq!(register("a", 10), Ok(()));
    registry.unregister_all(Some(RegionKind::System));
    assert!(list(&registry).is_empty());
    assert_eq!(register("a", 10), Ok(()));
    registry.unregister_all(None);
    assert!(list(&registry).is_empty());
}

#[test]
fn failed_registration_leaves_nothing() {
    let object = Object::new(100);
    let registry = RegionRegistry::default();
    let reserved = "/triton_python_backend_shm_region_1";
    let cases = [
        ("", &*object.key, 0, 1, "Name(\"the name is empty\")"),
        (&"n".repeat(1025), &object.key, 0, 1, "Name(\"the name has 1025 bytes"),
        ("n", reserved, 0, 1, "ReservedKey"),
        ("n", "/a/b", 0, 1, "Open(Object(\"the name contains a slash\"))"),
        ("n", "/trtserver-absent", 0, 1, "Open(Object(\"No such file"),
        ("n", &object.key, 0, 101, "Open(Range { object: 100 })"),
        ("n", &object.key, u64::MAX, u64::MAX, "Open(Range { object: 100 })"),
    ];
    for (name, key, offset, len, want) in cases {
        let error = registry.register_system(name, key, offset, len).unwrap_err();
        assert!(format!("{error:?}").starts_with(want), "{error:?}, expected {want}");
    }
    assert!(registry.system_regions().is_empty());
    assert_eq!(registry.register_system(&"n".repeat(1024), &object.key, 0, 1), Ok(()));
}

#[test]
fn part_lies_in_the_region() {
    let object = Object::new(100);
    let registry = RegionRegistry::default();
    registry.register_system("r", &object.key, 10, 50).unwrap();
    for (offset, len, want) in [
        (0, 50, None),
        (0, 0, None),
        (49, 1, None),
        (0, 51, Some(UseError::Range)),
        (49, 2, Some(UseError::Range)),
        (49, u64::MAX, Some(UseError::Range)),
        (50, 0, Some(UseError::Offset)),
        (u64::MAX, u64::MAX, Some(UseError::Offset)),
    ] {
        let got = registry.part("r", offset, len);
        assert_eq!(got.err(), want, "{offset} {len}");
    }
    assert_eq!(registry.part("other", 0, 1).err(), Some(UseError::Unknown));
}

#[test]
fn region_in_use_outlives_its_registration() {
    let object = Object::new(100);
    let registry = RegionRegistry::default();
    registry.register_system("r", &object.key, 0, 100).unwrap();
    let used = registry.system_region("r").unwrap();
    registry.unregister(Some(RegionKind::System), "r");
    assert_eq!(registry.part("r", 0, 100).err(), Some(UseError::Unknown));
    object.write(7, b"y");
    // SAFETY: in the region.
    assert_eq!(unsafe { used.ptr().add(7).read_volatile() }, b'y');
    assert_eq!(registry.register_system("r", &object.key, 0, 10), Ok(()), "the name is free");
    assert_eq!(used.len(), 100);
}

#[test]
fn truncated_region_is_refused_until_it_is_registered_again() {
    let object = Object::new(4096);
    let registry = RegionRegistry::default();
    registry.register_system("r", &object.key, 0, 4096).unwrap();
    object.file.set_len(0).unwrap();
    let region = registry.system_region("r").unwrap();
    // SAFETY: in the region.
    unsafe { region.ptr().read_volatile() };
    object.file.set_len(4096).unwrap();
    let error = registry.part("r", 0, 1).err();
    assert_eq!(error, Some(UseError::Fault(region.fault().unwrap())));
    registry.unregister(None, "r");
    registry.register_system("r", &object.key, 0, 4096).unwrap();
    assert!(registry.part("r", 0, 1).is_ok());
}

#[test]
fn two_thousand_regions_are_registered_by_many_threads() {
    let object = Object::new(4096);
    let registry = RegionRegistry::default();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (registry, key) = (&registry, &object.key);
            scope.spawn(move || {
                for i in 0..500 {
                    let name = format!("{thread}/{i}");
                    registry.register_system(&name, key, i, 4096 - i).unwrap();
                    assert!(registry.part(&name, 0, 4096 - i).is_ok());
                }
            });
        }
    });
    assert_eq!(registry.system_regions().len(), 2000);
    let region = registry.system_region("3/499").unwrap();
    object.file.set_len(0).unwrap();
    // SAFETY: in the region.
    assert_eq!(unsafe { region.ptr().read_volatile() }, 0);
    assert!(region.fault().is_some());
    registry.unregister_all(Some(RegionKind::System));
}
