//! The free end of a thread's heap goes back to the system.

use super::*;

/// Resident anonymous memory of the process, in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<usize>().ok());
    kilobytes.map_or(0, |kilobytes| kilobytes << 10)
}

/// In a process of its own: other tests allocate too.
#[test]
fn free_end_of_a_heap_is_released() {
    const CHILD: &str = "TRTSERVER_TEST_HEAP";
    if std::env::var_os(CHILD).is_none() {
        let test = "heap::tests::free_end_of_a_heap_is_released";
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
        return;
    }
    configure();
    let heap = Heap::default();
    // The heap of the main thread ends elsewhere.
    let thread = std::thread::spawn(move || {
        // Small blocks that are allocated behind the large ones would be kept by the thread's cache, and no free end.
        let small: Vec<Vec<u8>> = (0..2000).map(|n| vec![1; n % 1000]).collect();
        let blocks: Vec<Vec<u8>> = (0..7).map(|_| vec![1; 1 << 20]).collect();
        drop(small);
        let used = resident();
        drop(blocks);
        heap.on_deadline();
        let kept = resident();
        assert!(used - kept < 1 << 20, "malloc_trim has released {} bytes", used - kept);
        heap.trim_own();
        let released = kept - resident();
        assert!(released > 6 << 20, "{released} bytes were released");
        assert_eq!(heap.trimmed_threads(), 1);
        // Once after each trim.
        heap.trim_own();
        assert_eq!(heap.trimmed_threads(), 1);
    });
    thread.join().unwrap();
}
