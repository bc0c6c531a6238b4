//! Unit tests of `ring.rs`: order, a full ring, the end of the data, a hostile peer, sleep and
//! wake. `ring_model_tests.rs` has the orders of two threads.

use super::ends::record_words;
use super::*;

/// Both ends of one direction.
fn direction() -> (RingProducer, RingConsumer) {
    let (rings, file) = RingPair::new().unwrap();
    let other = RingPair::open(&file).unwrap();
    (rings.ends(true).0, other.ends(false).1)
}

fn record(number: usize) -> Vec<u8> {
    let len = number * 37 % (MAX_RECORD + 1);
    (0..len).map(|at| (at + number) as u8).collect()
}

#[test]
fn records_arrive_unchanged_around_the_end_of_the_data() {
    let (mut producer, mut consumer) = direction();
    let mut buffer = vec![9];
    let (mut sent, mut taken) = (0, 0);
    while taken < 2000 {
        while producer.push(sent as Kind, &record(sent)).unwrap() {
            sent += 1;
        }
        assert!(sent > taken);
        for _ in 0..=taken % 7 {
            match consumer.pop(&mut buffer).unwrap() {
                Some(kind) => assert_eq!((kind as usize, &buffer), (taken, &record(taken))),
                None => break,
            }
            taken += 1;
        }
    }
    assert_eq!(consumer.is_empty(), sent == taken);
}

#[test]
fn full_ring_accepts_records_once_others_were_taken() {
    let (mut producer, mut consumer) = direction();
    let bytes = [7; MAX_RECORD];
    let mut count = 0;
    while producer.push(0, &bytes).unwrap() {
        count += 1;
    }
    assert!(count >= 3);
    let position = producer.position();
    assert_eq!(producer.push(0, &bytes), Ok(false));
    assert_eq!((producer.position(), producer.taken()), (position, 0));
    assert_eq!(consumer.pop(&mut Vec::new()), Ok(Some(0)));
    assert!(producer.taken() > 0);
    assert_eq!(producer.push(0, &bytes), Ok(true));
}

#[test]
fn both_directions_and_the_closed_flag_are_separate() {
    let (rings, file) = RingPair::new().unwrap();
    let other = RingPair::open(&file).unwrap();
    let (closed, of_other) = (rings.closed(), other.closed());
    let ((mut a_out, mut a_in), (mut b_out, mut b_in)) = (rings.ends(true), other.ends(false));
    a_out.push(1, b"to b").unwrap();
    b_out.push(2, b"to a").unwrap();
    let mut buffer = Vec::new();
    assert_eq!((b_in.pop(&mut buffer), buffer.as_slice()), (Ok(Some(1)), &b"to b"[..]));
    assert_eq!((a_in.pop(&mut buffer), buffer.as_slice()), (Ok(Some(2)), &b"to a"[..]));
    assert!(!closed.is_set());
    of_other.set();
    assert!(closed.is_set());
}

#[test]
fn only_a_sealed_file_of_rings_is_opened() {
    let (_, file) = RingPair::new().unwrap();
    assert!(rustix::fs::ftruncate(&file, 1).is_err());
    let arena = crate::arena::Arena::new("test", 1 << 21).unwrap();
    assert!(RingPair::open(&arena.file().try_clone_to_owned().unwrap()).is_err());
    let plain = OwnedFd::from(tempfile::tempfile().unwrap());
    assert!(RingPair::open(&plain).is_err());
}

/// Whatever a peer writes anywhere, records are inside the ring and at most [`MAX_RECORD`] long.
#[test]
fn hostile_positions_and_lengths_are_refused() {
    let values = [
        0,
        1,
        WORDS - 1,
        WORDS,
        WORDS + 1,
        MAX_RECORD as u64,
        MAX_RECORD as u64 + 1,
        u64::from(u32::MAX),
        1 << 63,
        u64::MAX,
    ];
    for tail in values {
        for head in values {
            let (producer, mut consumer) = direction();
            producer.ring.word(TAIL).store(tail, Ordering::Relaxed);
            producer.ring.data(0).store(head, Ordering::Relaxed);
            let mut buffer = Vec::new();
            let len = (head as u32) as usize;
            let fits = tail <= WORDS && len <= MAX_RECORD && record_words(len) <= tail;
            let expected = match tail {
                0 => Ok(None),
                _ if fits => Ok(Some((head >> 32) as Kind)),
                _ => Err(RingCorruption),
            };
            assert_eq!(consumer.peek(), expected, "{tail} {head}");
            assert_eq!(consumer.pop(&mut buffer), expected, "{tail} {head}");
            assert!(buffer.len() <= MAX_RECORD);
        }
        let (mut producer, consumer) = direction();
        consumer.ring.word(HEAD).store(tail, Ordering::Relaxed);
        // The consumer cannot have taken what was not sent, nor be more than a ring behind.
        let expected = match 0u64.wrapping_sub(tail) {
            used if used > WORDS => Err(RingCorruption),
            used => Ok(record_words(1) <= WORDS - used),
        };
        assert_eq!(producer.push(0, b"x"), expected, "{tail}");
    }
}

/// A peer that changes a record while it is read.
#[test]
fn record_that_changes_while_it_is_read_stays_in_bounds() {
    let (producer, mut consumer) = direction();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for value in (0..).map(|n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)) {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                producer.ring.data(value % 64).store(value >> 52, Ordering::Relaxed);
                producer.ring.word(TAIL).store(value % WORDS, Ordering::Relaxed);
            }
        });
        let mut buffer = Vec::new();
        for _ in 0..20_000 {
            let _ = consumer.pop(&mut buffer);
            assert!(buffer.len() <= MAX_RECORD);
        }
        stop.store(true, Ordering::Relaxed);
    });
}

/// The steps of `RingProducer::must_wake` and `RingConsumer::prepare_sleep` in every order in which
/// two threads can take them. The fences make the stores before them visible to the loads after
/// them, so each step is one access in one order of all.
#[test]
fn no_order_of_sleep_and_wake_loses_a_record() {
    #[derive(Clone, Debug)]
    struct Threads {
        /// Records published and taken, and the flag.
        published: u32,
        taken: u32,
        sleeping: bool,
        /// What the consumer sleeps on.
        wakes: u32,
        producer: u8,
        consumer: u8,
    }
    const RECORDS: u32 = 3;
    /// The thread that takes a step; `None` if it cannot.
    fn produce(mut t: Threads) -> Option<Threads> {
        match t.producer {
            // push
            0 if t.published < RECORDS => t.published += 1,
            // load, then swap
            1 if !t.sleeping => {
                t.producer = 0;
                return Some(t);
            }
            1 => {}
            2 => {
                if std::mem::take(&mut t.sleeping) {
                    t.wakes += 1;
                }
                t.producer = 0;
                return Some(t);
            }
            _ => return None,
        }
        t.producer += 1;
        Some(t)
    }
    fn consume(mut t: Threads) -> Option<Threads> {
        match t.consumer {
            // pop until empty
            0 if t.taken < t.published => {
                t.taken += 1;
                return Some(t);
            }
            0 => {}
            // prepare_sleep
            1 => t.sleeping = true,
            2 if t.taken < t.published => {
                t.sleeping = false;
                t.consumer = 0;
                return Some(t);
            }
            2 => {}
            // asleep
            3 if t.wakes == 0 => return None,
            3 => t.wakes -= 1,
            _ => {
                t.sleeping = false;
                t.consumer = 0;
                return Some(t);
            }
        }
        t.consumer += 1;
        Some(t)
    }
    let start =
        Threads { published: 0, taken: 0, sleeping: false, wakes: 0, producer: 0, consumer: 0 };
    let (mut open, mut ends, mut seen) = (vec![start], 0, std::collections::HashSet::new());
    while let Some(t) = open.pop() {
        if !seen.insert(format!("{t:?}")) {
            continue;
        }
        let next: Vec<_> = [produce(t.clone()), consume(t.clone())].into_iter().flatten().collect();
        if next.is_empty() {
            ends += 1;
            assert_eq!((t.published, t.taken), (RECORDS, RECORDS), "{t:?}");
        }
        open.extend(next);
    }
    assert!(ends > 0 && seen.len() > 50);
}

/// The same with threads.
#[test]
fn every_record_is_taken_by_a_consumer_that_sleeps() {
    const RECORDS: u64 = 20_000;
    let (mut producer, mut consumer) = direction();
    let (wake, woken) = std::sync::mpsc::channel();
    let sending = std::thread::spawn(move || {
        for number in 0..RECORDS {
            while !producer.push(0, &number.to_ne_bytes()).unwrap() {
                if producer.must_wake() {
                    wake.send(()).unwrap();
                }
                std::thread::yield_now();
            }
            if producer.must_wake() {
                wake.send(()).unwrap();
            }
        }
    });
    let mut buffer = Vec::new();
    for number in 0..RECORDS {
        while consumer.pop(&mut buffer).unwrap().is_none() {
            if consumer.prepare_sleep() {
                woken.recv().unwrap();
                consumer.awake();
            }
        }
        assert_eq!(buffer, number.to_ne_bytes());
    }
    sending.join().unwrap();
}
