//! Unit tests of `region.rs`: what can be opened, and what is mapped.

use super::super::testing::Object;
use super::*;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use trtserver_device::testing::FakeCuda;

fn open(key: &str, offset: u64, len: u64) -> Result<SystemRegion, OpenError> {
    SystemRegion::open("r", key, offset, len)
}

fn bytes(region: &SystemRegion) -> Vec<u8> {
    // SAFETY: the bytes of the region, which only this test changes.
    unsafe { std::slice::from_raw_parts(region.ptr().as_ptr(), region.len()) }.to_vec()
}

#[test]
fn region_is_a_window_at_any_offset() {
    let object = Object::new(20_000);
    let content: Vec<u8> = (0..20_000u32).map(|i| (i % 251) as u8).collect();
    object.write(0, &content);
    for (offset, len) in [(0, 20_000), (0, 1), (4096, 4096), (4095, 2), (1, 9999), (19_999, 1)] {
        let region = open(&object.key, offset, len).unwrap();
        let (offset, len) = (offset as usize, len as usize);
        assert_eq!(bytes(&region), content[offset..offset + len], "{offset} {len}");
    }
    let region = open(object.key.trim_start_matches('/'), 5000, 4).unwrap();
    // SAFETY: in the region.
    unsafe { std::ptr::copy_nonoverlapping(b"abcd".as_ptr(), region.ptr().as_ptr(), 4) };
    assert_eq!(
        object.read(4999, 6),
        [&content[4999..5000], b"abcd", &content[5004..5005]].concat()
    );
}

#[test]
fn window_is_pinned_once_until_its_region_is_dropped() {
    let fake = FakeCuda::new(&[]);
    let device = fake.device();
    let object = Object::new(1 << 20);
    let region = Arc::new(open(&object.key, 5000, 600_000).unwrap());
    let memory = region.memory();
    memory.owner().prepare_upload(device);
    assert!(region.pin(device));
    assert_eq!(fake.count("cuMemHostRegister_v2"), 1);
    // Whole pages, from the one that the region begins in.
    assert_eq!(fake.report()["registered_bytes"], 147 * 4096);
    assert_eq!(memory.fault(), None);
    object.file.set_len(100_000).unwrap();
    memory.owner().prepare_upload(device);
    assert!(memory.fault().is_some_and(|e| e.message.contains("lacks pages")));
    drop(region);
    assert_eq!(fake.count("cuMemHostUnregister"), 0);
    drop(memory);
    let report = fake.report();
    assert_eq!((report["registered_bytes"], report["double_frees"]), (0, 0));
}

#[test]
fn small_windows_and_those_that_the_driver_refuses_are_not_pinned() {
    let fake = FakeCuda::new(&[("FAIL", "cuMemHostRegister_v2:1:801")]);
    let device = fake.device();
    let object = Object::new(1 << 20);
    assert!(!open(&object.key, 0, 200_000).unwrap().pin(device));
    assert_eq!(fake.count("cuMemHostRegister_v2"), 0);
    let region = open(&object.key, 0, 1 << 20).unwrap();
    assert!(!region.pin(device) && !region.pin(device));
    assert_eq!(fake.count("cuMemHostRegister_v2"), 1);
    drop(region);
    assert_eq!(fake.count("cuMemHostUnregister"), 0);
}

#[test]
fn range_outside_of_the_object_is_refused() {
    let object = Object::new(100);
    for (offset, len) in [
        (0, 0),
        (0, 101),
        (100, 1),
        (100, 0),
        (1, 100),
        (u64::MAX, 1),
        (1, u64::MAX),
        (u64::MAX, u64::MAX),
        (u64::MAX - 99, 100),
        (1 << 63, 1 << 63),
    ] {
        let error = open(&object.key, offset, len).err();
        assert_eq!(error, Some(OpenError::Range { object: 100 }), "{offset} {len}");
    }
    let empty = Object::new(0);
    assert_eq!(open(&empty.key, 0, 1).err(), Some(OpenError::Range { object: 0 }));
}

#[test]
fn object_of_terabytes_is_refused_by_the_limit() {
    let object = Object::new(1 << 50);
    let error = open(&object.key, 0, 1 << 50).err().unwrap();
    assert!(matches!(error, OpenError::Limit(_) | OpenError::Map(_)), "{error:?}");
    assert_eq!(bytes(&open(&object.key, (1 << 50) - 2, 2).unwrap()), [0, 0]);
}

#[test]
fn only_objects_are_opened() {
    let object = Object::new(10);
    let beside = |end: &str| Path::new(&format!("{}{end}", object.path.display())).to_owned();
    let [link, fifo, folder] = ["-link", "-fifo", "-folder"].map(beside);
    symlink(&object.path, &link).unwrap();
    let status = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(status.success());
    std::fs::create_dir(&folder).unwrap();
    let refused = ["-link", "-fifo", "-folder", "-absent"].map(|end| {
        match open(&format!("{}{end}", object.key), 0, 10).err() {
            Some(OpenError::Object(why)) => why,
            other => panic!("{end}: {other:?}"),
        }
    });
    std::fs::remove_file(link).unwrap();
    std::fs::remove_file(fifo).unwrap();
    std::fs::remove_dir(folder).unwrap();
    let kinds = ["Symlink", "Fifo", "Directory"];
    for (why, kind) in refused.iter().zip(kinds) {
        assert_eq!(*why, format!("not a shared-memory object but a {kind}"));
    }
    assert!(refused[3].contains("No such file"), "{}", refused[3]);
}

#[test]
fn region_outlives_the_name_of_its_object() {
    let object = Object::new(10);
    let region = open(&object.key, 0, 10).unwrap();
    std::fs::remove_file(&object.path).unwrap();
    object.write(3, b"x");
    assert_eq!(bytes(&region)[3], b'x');
    assert_eq!(region.recheck(), None);
    let RegionSource::File { file, .. } = region.shared_region().source else {
        panic!("not of a file")
    };
    let file = file.try_clone_to_owned().unwrap();
    let copy = SystemRegion::from_descriptor("r", &object.key, file, 3, 1).unwrap();
    assert_eq!(bytes(&copy), b"x");
    assert_eq!(
        open(&object.key, 0, 10).err().map(|e| matches!(e, OpenError::Object(_))),
        Some(true)
    );
}

#[test]
fn descriptor_of_a_pipe_is_refused() {
    let (reader, _writer) = std::io::pipe().unwrap();
    let error = SystemRegion::from_descriptor("r", "/k", reader.into(), 0, 1).err();
    let why = "not a shared-memory object but a Fifo".to_owned();
    assert_eq!(error, Some(OpenError::Object(why)));
}

#[test]
fn errors_are_plain_text() {
    let why = || "GPU 0: cuIpcOpenMemHandle_v2 failed".to_owned();
    for error in [OpenError::Object(why()), OpenError::Map(why()), OpenError::Limit(why())] {
        assert_eq!(error.to_string(), why(), "{error:?}");
    }
    let range = OpenError::Range { object: 100 }.to_string();
    assert_eq!(range, "the region is empty or not within the 100 bytes of its object");
}
