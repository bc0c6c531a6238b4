//! What threads share that ask for a scan at the same time.

use super::*;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

#[test]
fn scans_one_after_the_other_are_all_made() {
    let scans = SharedScan::default();
    let mut made = 0;
    for number in 1..=3 {
        scans.run(|| made += 1);
        assert_eq!((made, scans.latest()), (number, number));
    }
}

#[test]
fn threads_that_ask_during_a_scan_share_the_next() {
    // A thread that is slow to ask makes a scan of its own, so not all attempts show it.
    assert!((0..100).any(|_| scans_of_threads() < 1 + ASKING), "no thread shared a scan");
}

const ASKING: u64 = 8;

/// How many scans are made if one thread scans, and others ask meanwhile.
fn scans_of_threads() -> u64 {
    let (scans, files, asked) = (SharedScan::default(), AtomicU64::new(0), AtomicU64::new(0));
    let (begin, begun) = channel();
    let (end, ended) = channel::<()>();
    thread::scope(|scope| {
        let first = &scans;
        scope.spawn(move || {
            first.run(|| {
                begin.send(()).unwrap();
                ended.recv().unwrap();
            });
        });
        begun.recv().unwrap();
        // The scan that runs has not seen this file.
        files.store(1, Ordering::SeqCst);
        let asking: Vec<_> = (0..ASKING)
            .map(|_| {
                scope.spawn(|| {
                    asked.fetch_add(1, Ordering::SeqCst);
                    scans.run(|| files.store(2, Ordering::SeqCst));
                    files.load(Ordering::SeqCst)
                })
            })
            .collect();
        while asked.load(Ordering::SeqCst) < ASKING {
            thread::yield_now();
        }
        thread::sleep(Duration::from_millis(1));
        end.send(()).unwrap();
        for thread in asking {
            assert_eq!(thread.join().unwrap(), 2, "no scan began after it had asked");
        }
    });
    scans.latest()
}
