//! Model tests of `ring/ends.rs`: its source, compiled with loom's atomics, in every order of two
//! threads that their memory orderings permit. A store that another thread may not see yet is one
//! of these orders.

#[path = "ring/ends.rs"]
#[allow(clippy::duplicate_mod, dead_code)] // compiled twice on purpose, used in part
mod ends;

use super::{Kind, RingCorruption};
use loom::sync::atomic::{Ordering, fence};
use loom::sync::{Condvar, Mutex};
use loom::thread;
use std::sync::Arc;

// What `ends.rs` finds in its parent module: a ring of four words.
const WORDS: u64 = 4;
const MAX_RECORD: usize = 8;
const TAIL: usize = 0;
const HEAD: usize = 1;
const SLEEPING: usize = 2;
const DATA: usize = 3;

/// A word. Loom gives no place to a store of another thread between one that an exchange has read
/// and the exchange; where stores are exchanges, too, all have one order.
struct AtomicU64(loom::sync::atomic::AtomicU64);

impl AtomicU64 {
    fn load(&self, ordering: Ordering) -> u64 {
        self.0.load(ordering)
    }

    fn store(&self, value: u64, ordering: Ordering) {
        self.0.swap(value, ordering);
    }

    fn swap(&self, value: u64, ordering: Ordering) -> u64 {
        self.0.swap(value, ordering)
    }
}

/// The words of one ring.
#[derive(Clone)]
struct MappedRing(Arc<Vec<AtomicU64>>);

impl MappedRing {
    fn word(&self, at: usize) -> &AtomicU64 {
        &self.0[at]
    }

    fn data(&self, position: u64) -> &AtomicU64 {
        self.word(DATA + (position % WORDS) as usize)
    }
}

/// Both ends of one ring.
fn direction() -> (ends::RingProducer, ends::RingConsumer) {
    let words = (0..DATA + WORDS as usize).map(|_| AtomicU64(0.into())).collect();
    let ring = MappedRing(Arc::new(words));
    (ends::RingProducer::new(ring.clone()), ends::RingConsumer::new(ring))
}

/// The bytes of a record.
fn record(number: u64) -> [u8; 8] {
    (number + 1).wrapping_mul(0x0101_0101_0101_0101).to_ne_bytes()
}

/// Runs `model` in all orders in which so many steps are interrupted by the other thread.
fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// What a consumer sleeps on, as a socket: a wake-up before its sleep ends that sleep.
#[derive(Default)]
struct WakeUps(Mutex<usize>, Condvar);

impl WakeUps {
    fn send(&self) {
        *self.0.lock().unwrap() += 1;
        self.1.notify_one();
    }

    fn wait(&self) {
        let mut wakes = self.0.lock().unwrap();
        while *wakes == 0 {
            wakes = self.1.wait(wakes).unwrap();
        }
        *wakes -= 1;
    }
}

/// A consumer that sleeps when it finds nothing gets every record and is never left asleep: loom
/// fails when no thread can go on.
#[test]
fn sleeping_consumer_is_woken_for_every_record() {
    const RECORDS: u64 = 2;
    check(|| {
        let (mut producer, mut consumer) = direction();
        let wake = Arc::new(WakeUps::default());
        let woken = Arc::clone(&wake);
        let sending = thread::spawn(move || {
            for number in 0..RECORDS {
                assert_eq!(producer.push(number as Kind, &record(number)), Ok(true));
                if producer.must_wake() {
                    wake.send();
                }
            }
        });
        let mut buffer = Vec::new();
        for number in 0..RECORDS {
            loop {
                if let Some(kind) = consumer.pop(&mut buffer).unwrap() {
                    assert_eq!((u64::from(kind), &buffer[..]), (number, &record(number)[..]));
                    break;
                }
                if consumer.prepare_sleep() {
                    woken.wait();
                    consumer.awake();
                }
            }
        }
        sending.join().unwrap();
    });
}

/// Words are written again only when they were read: three records in a ring that has space for
/// two.
#[test]
fn full_ring_overwrites_no_record_that_was_not_taken() {
    const RECORDS: u64 = 3;
    check(|| {
        let (mut producer, mut consumer) = direction();
        let sending = thread::spawn(move || {
            for number in 0..RECORDS {
                while !producer.push(number as Kind, &record(number)).unwrap() {
                    thread::yield_now();
                }
            }
        });
        let mut buffer = Vec::new();
        for number in 0..RECORDS {
            let kind = loop {
                match consumer.pop(&mut buffer).unwrap() {
                    Some(kind) => break u64::from(kind),
                    None => thread::yield_now(),
                }
            };
            assert_eq!((kind, &buffer[..]), (number, &record(number)[..]));
        }
        sending.join().unwrap();
    });
}
