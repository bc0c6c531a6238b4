//! Unit tests of `process.rs`.

use super::*;

#[test]
fn fields_of_the_status_file_are_read() {
    let status = "Name:\tserver\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\nRssAnon:\t     512 kB\nRssFile:\t     256 kB\n";
    let want = ProcessMemory {
        resident: 1 << 20,
        peak: 2 << 20,
        anonymous: 512 << 10,
        file: 256 << 10,
        shared: 0,
    };
    assert_eq!(ProcessMemory::parse(status), Some(want));
    assert_eq!(ProcessMemory::parse("Name:\tzombie\nState:\tZ (zombie)\n"), None);
}

#[test]
fn own_process_is_resident_and_an_unknown_one_is_not() {
    let own = ProcessMemory::own_process();
    assert!(own.resident > 1 << 20 && own.peak >= own.resident, "{own:?}");
    assert_eq!(
        ProcessMemory::from_pid(std::process::id()).map(|of| of.resident > 1 << 20),
        Some(true)
    );
    assert_eq!(ProcessMemory::from_pid(u32::MAX), None);
}
