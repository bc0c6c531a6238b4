//! Tests of finding the driver and its devices, with a fake driver.

use super::{DriverAbsence, GpuDriver};
use crate::DeviceSettings;
use crate::testing::FakeCuda;
use std::path::Path;

#[test]
fn visible_devices_are_found_with_their_facts() {
    let fake = FakeCuda::new(&[
        ("DEVICES", "Fake A/7.5/1024,Fake B/8.0/2048,Fake C/9.0/4096"),
        ("VISIBLE", "2,0"),
    ]);
    let driver = fake.open().unwrap();
    let facts: Vec<_> = driver
        .devices()
        .iter()
        .map(|d| (d.ordinal, &*d.name, d.compute_capability_text(), d.total_memory >> 20))
        .collect();
    assert_eq!(facts, [(0, "Fake C", "9.0".into(), 4096), (1, "Fake A", "7.5".into(), 1024)]);
    assert_eq!(driver.devices()[1].uuid_text(), "GPU-f0f7fe05-0c13-1a21-282f-363d444b5259");
    assert_eq!(driver.devices()[1].pci_bus_id, "0000:3B:00.0");
    assert_eq!(driver.version, 12080);
    let error = driver.device(2).err().unwrap();
    assert_eq!(error.message, "GPU 2 is not available: this process sees 2 GPUs");
    assert!(driver.device(-1).is_err());
    // Finding devices costs no device memory.
    assert_eq!(fake.count("cuDevicePrimaryCtxRetain"), 0);
}

#[test]
fn missing_library_is_an_error_in_words() {
    let settings = DeviceSettings::default();
    let absent = GpuDriver::open(Path::new("libno-such-cuda.so.1"), &settings).err().unwrap();
    let text = absent.to_string();
    assert!(text.starts_with("the CUDA driver cannot be used: libno-such-cuda.so.1: "), "{text}");
}

#[test]
fn library_without_a_needed_function_names_it() {
    let settings = DeviceSettings::default();
    let absent = GpuDriver::open(Path::new("libc.so.6"), &settings).err().unwrap();
    let text = absent.to_string();
    assert!(text.starts_with("the CUDA driver cannot be used: it has no function cu"), "{text}");
}

#[test]
fn old_driver_is_refused_with_both_versions() {
    let fake = FakeCuda::new(&[("VERSION", "9020")]);
    let absent = fake.open().err().unwrap();
    assert_eq!(absent, DriverAbsence::TooOld { version: 9020 });
    assert_eq!(
        absent.to_string(),
        "the CUDA driver is too old: it supports CUDA 9.2, at least 10.0 is needed"
    );
    assert_eq!(fake.count("cuInit"), 0);
}

#[test]
fn driver_without_device_is_absent() {
    for settings in [[("DEVICES", "")], [("VISIBLE", "")], [("VISIBLE", "-1")]] {
        let absent = FakeCuda::new(&settings).open().err().unwrap();
        assert!(matches!(absent, DriverAbsence::NoDevice { .. }), "{absent}");
    }
    let empty = DriverAbsence::NoDevice { visible_devices: Some(String::new()) };
    assert_eq!(
        empty.to_string(),
        "the CUDA driver finds no GPU; the environment has CUDA_VISIBLE_DEVICES=''"
    );
}

#[test]
fn failure_of_the_driver_is_reported_with_its_name() {
    let mismatch = FakeCuda::new(&[("FAIL", "cuInit:1:803")]).open().err().unwrap().to_string();
    assert_eq!(
        mismatch,
        "cuInit failed: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (system has unsupported display driver / cuda driver \
         combination): the driver library and the kernel module are of different versions"
    );
    let unknown = FakeCuda::new(&[("FAIL", "cuInit:1:998")]).open().err().unwrap().to_string();
    assert_eq!(unknown, "cuInit failed: CUDA error 998");
    let later = FakeCuda::new(&[("FAIL", "cuDeviceTotalMem_v2:2:1"), ("DEVICES", "A,B")]);
    let later = later.open().err().unwrap().to_string();
    assert_eq!(later, "cuDeviceTotalMem_v2 failed: CUDA_ERROR_INVALID_VALUE (invalid argument)");
}
