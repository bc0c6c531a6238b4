//! Unit tests of `guard.rs`: the table of windows, and a real SIGBUS.

use super::super::region::SystemRegion;
use super::super::testing::Object;
use super::*;
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const ALL: WindowLimits = WindowLimits { windows: usize::MAX, bytes: usize::MAX };

fn at(address: usize) -> NonNull<u8> {
    NonNull::new(std::ptr::without_provenance_mut(address)).unwrap()
}

#[test]
fn table_finds_the_window_of_an_address() {
    let table: WindowTable<4> = WindowTable::new();
    let slots = [0x1000, 0x3000].map(|start| table.insert(at(start), 0x1000, ALL).unwrap());
    let found = |address| table.slots.iter().find_map(|slot| slot.window_at(address));
    for (address, window) in [
        (0xfff, None),
        (0x1000, Some((0x1000, 0x1000))),
        (0x1fff, Some((0x1000, 0x1000))),
        (0x2000, None),
        (0x3800, Some((0x3000, 0x1000))),
        (0, None),
        (usize::MAX, None),
    ] {
        assert_eq!(found(address), window, "{address:#x}");
    }
    table.remove(slots[0]);
    assert_eq!(found(0x1000), None);
    assert_eq!(table.insert(at(0x8000), 1, ALL), Ok(slots[0]), "the slot is used again");
    assert_eq!(found(0x8000), Some((0x8000, 1)));
}

#[test]
fn slot_that_is_used_again_has_no_fault() {
    let table: WindowTable<1> = WindowTable::new();
    let slot = table.insert(at(0x1000), 1, ALL).unwrap();
    table.set_faulted(slot);
    assert!(table.is_faulted(slot));
    table.remove(slot);
    assert_eq!(table.insert(at(0x1000), 1, ALL), Ok(slot));
    assert!(!table.is_faulted(slot));
}

#[test]
fn slot_that_changes_has_no_window() {
    let slot = WindowSlot::new();
    slot.set(0x1000, 0x1000);
    slot.version.fetch_add(1, Ordering::SeqCst);
    assert_eq!(slot.window_at(0x1000), None);
}

#[test]
fn table_is_limited_in_windows_and_bytes() {
    let table: WindowTable<2> = WindowTable::new();
    let limits = WindowLimits { windows: 9, bytes: 100 };
    let first = table.insert(at(0x1000), 60, limits).unwrap();
    assert_eq!(table.insert(at(0x2000), 41, limits), Err(WindowLimit::Bytes(100)));
    assert_eq!(table.insert(at(0x2000), usize::MAX, limits), Err(WindowLimit::Bytes(100)));
    table.insert(at(0x2000), 40, limits).unwrap();
    assert_eq!(table.insert(at(0x3000), 0, limits), Err(WindowLimit::Windows(2)));
    table.remove(first);
    let one = WindowLimits { windows: 1, ..limits };
    assert_eq!(table.insert(at(0x3000), 1, one), Err(WindowLimit::Windows(1)));
    table.insert(at(0x3000), 60, limits).unwrap();
}

/// Reads one byte of each page.
fn read_pages(region: &SystemRegion) -> usize {
    let pages = (0..region.len()).step_by(4096);
    // SAFETY: in the region; another process may change the bytes, so they are read as volatile.
    pages.map(|at| usize::from(unsafe { region.ptr().add(at).read_volatile() })).sum()
}

#[test]
fn reader_of_a_truncated_object_reads_zeros_and_the_region_is_marked() {
    const LEN: usize = 1 << 20;
    for _ in 0..20 {
        let object = Object::new(LEN as u64);
        object.write(0, &[1; LEN]);
        let region = Arc::new(SystemRegion::open("r", &object.key, 0, LEN as u64).unwrap());
        let other = SystemRegion::open("other", &object.key, 0, 4096).unwrap();
        assert_eq!(read_pages(&region), LEN / 4096);
        let stop = Arc::new(AtomicBool::new(false));
        let readers: Vec<_> = (0..3)
            .map(|_| {
                let (region, stop) = (Arc::clone(&region), Arc::clone(&stop));
                std::thread::spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        read_pages(&region);
                    }
                    read_pages(&region)
                })
            })
            .collect();
        object.file.set_len(4096).unwrap();
        while region.fault().is_none() {
            std::thread::yield_now();
        }
        stop.store(true, Ordering::Relaxed);
        for reader in readers {
            assert_eq!(reader.join().unwrap(), 0);
        }
        assert_eq!(read_pages(&other), 1, "a region of the pages that are left stays usable");
        assert_eq!(other.fault(), None);
        object.file.set_len(LEN as u64).unwrap();
        assert!(region.fault().unwrap().message.contains("shared memory region 'r'"));
    }
}

#[test]
fn writer_of_a_truncated_object_changes_memory_of_its_own() {
    let object = Object::new(8192);
    let region = SystemRegion::open("r", &object.key, 0, 8192).unwrap();
    object.file.set_len(0).unwrap();
    // SAFETY: in the region.
    unsafe { region.ptr().add(5000).write_volatile(7) };
    // SAFETY: in the region.
    assert_eq!(unsafe { region.ptr().add(5000).read_volatile() }, 7);
    assert!(region.fault().is_some());
    assert_eq!(object.file.metadata().unwrap().len(), 0);
}

#[test]
fn system_call_on_missing_pages_fails_and_recheck_marks_the_region() {
    let object = Object::new(8192);
    let region = SystemRegion::open("r", &object.key, 4096, 4096).unwrap();
    assert_eq!(region.recheck(), None);
    object.file.set_len(4096).unwrap();
    let mut pipe = [0; 2];
    // SAFETY: two descriptors, and bytes of the region.
    let written = unsafe {
        assert_eq!(libc::pipe(pipe.as_mut_ptr()), 0);
        libc::write(pipe[1], region.ptr().as_ptr().cast(), 4096)
    };
    let error = std::io::Error::last_os_error();
    // SAFETY: opened above.
    let _ = pipe.map(|end| unsafe { libc::close(end) });
    assert_eq!((written, error.raw_os_error()), (-1, Some(libc::EFAULT)));
    assert_eq!(region.fault(), None, "the guard is not asked");
    assert!(region.recheck().is_some());
    assert!(region.fault().is_some());
}

#[test]
fn regions_are_guarded_while_others_are_mapped_and_unmapped() {
    let stop = Arc::new(AtomicBool::new(false));
    let object = Object::new(4096);
    let key = object.key.clone();
    let changing = {
        let stop = Arc::clone(&stop);
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let regions: Vec<_> =
                    (0..64).map(|_| SystemRegion::open("x", &key, 0, 4096).unwrap()).collect();
                drop(regions);
            }
        })
    };
    for _ in 0..200 {
        let object = Object::new(4096);
        let region = SystemRegion::open("r", &object.key, 0, 4096).unwrap();
        object.file.set_len(0).unwrap();
        assert_eq!(read_pages(&region), 0);
        assert!(region.fault().is_some());
    }
    stop.store(true, Ordering::Relaxed);
    changing.join().unwrap();
}

/// A thread of a C library has no alternate stack.
#[test]
fn thread_without_an_alternate_stack_is_guarded() {
    extern "C" fn read(region: *mut c_void) -> *mut c_void {
        let none = libc::stack_t { ss_sp: null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
        // SAFETY: of this thread; the region outlives the thread.
        let region = unsafe {
            assert_eq!(libc::sigaltstack(&none, null_mut()), 0);
            &*region.cast::<SystemRegion>()
        };
        assert_eq!(read_pages(region), 0);
        null_mut()
    }
    let object = Object::new(4096);
    let region = SystemRegion::open("r", &object.key, 0, 4096).unwrap();
    object.file.set_len(0).unwrap();
    let argument = (&raw const region).cast_mut().cast();
    // SAFETY: a thread that is joined before the region is dropped.
    unsafe {
        let mut thread = MaybeUninit::uninit();
        assert_eq!(libc::pthread_create(thread.as_mut_ptr(), null(), read, argument), 0);
        assert_eq!(libc::pthread_join(thread.assume_init(), null_mut()), 0);
    }
    assert!(region.fault().is_some());
}

/// Runs one test of this file, which ends its process, in a process of its own.
fn in_child(test: &str) -> std::process::ExitStatus {
    let name = format!("shared_memory::guard::tests::{test}");
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", &name, "--ignored"]).env("TRTSERVER_TEST_CHILD", "1");
    child.output().unwrap().status
}

/// A fault in another mapping is not the guard's.
#[test]
#[ignore = "ends its process; started by other_sigbus_has_its_default_action"]
fn child_faults_outside_of_regions() {
    if std::env::var_os("TRTSERVER_TEST_CHILD").is_none() {
        return;
    }
    let object = Object::new(4096);
    let _region = SystemRegion::open("r", &object.key, 0, 4096).unwrap();
    // SAFETY: a mapping of this test, which is never unmapped.
    let other = unsafe {
        let file = object.file.as_raw_fd();
        libc::mmap(null_mut(), 4096, libc::PROT_READ, libc::MAP_SHARED, file, 0)
    };
    object.file.set_len(0).unwrap();
    let _ = std::fs::remove_file(&object.path);
    // SAFETY: mapped above.
    unsafe { other.cast::<u8>().read_volatile() };
}

#[test]
#[ignore = "ends its process; started by other_sigbus_has_its_default_action"]
fn child_is_sent_the_signal() {
    if std::env::var_os("TRTSERVER_TEST_CHILD").is_none() {
        return;
    }
    // SAFETY: no memory is involved. The handler of Rust's library ignores a signal that was sent.
    unsafe {
        libc::signal(libc::SIGBUS, libc::SIG_DFL);
        install_sigbus_guard();
        libc::raise(libc::SIGBUS);
    }
}

#[test]
fn other_sigbus_has_its_default_action() {
    for test in ["child_faults_outside_of_regions", "child_is_sent_the_signal"] {
        assert_eq!(in_child(test).signal(), Some(libc::SIGBUS), "{test}");
    }
}
