//! Unit tests of `poll_turn.rs`, and of the reads that it limits.

use super::*;
use crate::connections::{ConnectionState, PrefaceWatch, Wire};
use crate::socket::SocketStream;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::task::{Context, Poll, Wake, Waker};
use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf};
use tokio::net::UnixStream;
use tokio::runtime::Builder;

const HEADERS: u8 = 1;
const WINDOW_UPDATE: u8 = 8;

fn frame(kind: u8, length: usize) -> Vec<u8> {
    let mut frame = (length as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, 0, 0, 0, 0, 1]);
    frame.resize(FRAME_HEAD + length, 7);
    frame
}

/// The bytes of a connection that sends these frames.
fn connection(frames: &[(u8, usize)]) -> Vec<u8> {
    let frames = frames.iter().flat_map(|(kind, length)| frame(*kind, *length));
    [0; PREFACE].into_iter().chain(frames).collect()
}

#[test]
fn frames_without_tensor_bytes_cost_something() {
    for (frames, cost) in [
        (vec![], 0),
        (vec![(DATA, 16 << 10), (DATA, 0)], 0),
        (vec![(HEADERS, 6)], 1),
        (vec![(HEADERS, 640), (DATA, 70), (WINDOW_UPDATE, 4)], 12),
    ] {
        let bytes = connection(&frames);
        for step in [1, 2, 5, 9, 64, bytes.len()] {
            let mut counter = HeaderCost::default();
            let counted: u32 = bytes.chunks(step).map(|part| counter.count(part)).sum();
            assert_eq!(counted, cost, "{frames:?} in steps of {step}");
        }
    }
}

#[test]
fn a_turn_that_is_over_makes_the_next_one_read_less() {
    for (cost, over) in [(TURN_COST - 1, false), (TURN_COST, true), (u32::MAX, true)] {
        let turn = PollTurn::default();
        turn.begin();
        turn.add(1);
        turn.add(cost - 1);
        assert_eq!(turn.is_over(), over, "{cost}");
        assert!(!turn.reads_less());
        turn.begin();
        assert!(!turn.is_over());
        assert_eq!(turn.reads_less(), over, "{cost}");
        // A poll that reads nothing, for example one that writes, changes nothing.
        turn.begin();
        assert_eq!(turn.reads_less(), over);
        turn.add(1);
        turn.begin();
        assert!(!turn.reads_less());
    }
}

#[tokio::test]
async fn a_poll_that_read_many_headers_reads_no_further_and_the_next_one_reads_less() {
    let (server, mut client) = UnixStream::pair().unwrap();
    client.write_all(&connection(&vec![(HEADERS, 1); 2000])).await.unwrap();
    let state = ConnectionState::alone(Wire::Http2);
    let mut stream = PrefaceWatch::new(SocketStream::Unix(server), state.clone());
    let mut bytes = vec![0; 4 * SHORT_READ];
    let (mut polls, mut reads) = (0, Vec::new());
    poll_fn(|cx| {
        polls += 1;
        state.turn.begin();
        // As the poll of a connection: it reads until nothing comes.
        while reads.len() < 2 {
            let mut buf = ReadBuf::new(&mut bytes);
            match Pin::new(&mut stream).poll_read(cx, &mut buf) {
                Poll::Ready(result) => result.unwrap(),
                Poll::Pending => return Poll::Pending,
            }
            reads.push((polls, buf.filled().len()));
        }
        Poll::Ready(())
    })
    .await;
    // The second read of the poll was refused, and the task was woken for the next poll.
    let first = reads[0].0;
    assert_eq!(reads, [(first, 4 * SHORT_READ), (first + 1, SHORT_READ)]);
}

/// Counts its wakes.
#[derive(Default)]
struct WakeCount(AtomicUsize);

impl Wake for WakeCount {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

#[test]
fn each_refused_read_wakes_the_waker_that_it_got() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let (server, _client) = runtime.block_on(async {
        let (server, mut client) = UnixStream::pair().unwrap();
        client.write_all(&connection(&[(HEADERS, 1)])).await.unwrap();
        server.readable().await.unwrap();
        (server, client)
    });
    let state = ConnectionState::alone(Wire::Http2);
    let mut stream = PrefaceWatch::new(SocketStream::Unix(server), state.clone());
    let mut bytes = vec![0; SHORT_READ];
    let mut read = |count: &Arc<WakeCount>| {
        let waker = Waker::from(Arc::clone(count));
        let mut buf = ReadBuf::new(&mut bytes);
        let polled = Pin::new(&mut stream).poll_read(&mut Context::from_waker(&waker), &mut buf);
        (polled.map(Result::unwrap), buf.filled().len())
    };
    state.turn.add(TURN_COST);
    // The socket is readable throughout and wakes nobody. This thread belongs to no runtime, so
    // the wake is not put off. Wakers change, as those of a connection do.
    let counts = [Arc::<WakeCount>::default(), Arc::default()];
    for polls in 1..=3 {
        for count in &counts {
            assert_eq!(read(count), (Poll::Pending, 0));
            assert_eq!(count.0.load(Relaxed), polls);
        }
    }
    state.turn.begin();
    assert_eq!(read(&counts[0]), (Poll::Ready(()), PREFACE + FRAME_HEAD + 1));
}
