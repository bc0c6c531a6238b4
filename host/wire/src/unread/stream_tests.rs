//! Unit tests of `stream.rs`.

use super::*;
use crate::unread::testing::limits;
use std::thread::spawn;

fn stream(per_stream: usize, per_connection: usize) -> Arc<StreamUnread> {
    StreamUnread::new(ConnectionUnread::new(limits(per_stream, per_connection)), 1)
}

fn admit(stream: &Arc<StreamUnread>, bytes: usize, wait: bool) -> Result<UnreadResponse> {
    let mut unread = Arc::clone(stream).admit(bytes, wait, &CancelToken::default())?;
    unread.set_delivered();
    Ok(unread)
}

#[test]
fn responses_are_admitted_below_the_limit() {
    let stream = stream(100, 1000);
    let first = admit(&stream, 90, false).unwrap();
    let second = admit(&stream, 200, false).unwrap();
    assert_eq!(stream.backlog(), UnreadBacklog { bytes: 290, responses: 2, limit: 100 });
    let refused = admit(&stream, 1, false).unwrap_err();
    assert_eq!(
        (refused.code, &*refused.message),
        (
            Code::ResourceExhausted,
            "the client has not read earlier responses: 290 bytes of this stream are unread, the limit for a further \
             response of 1 bytes is 100 bytes (--max-unread-per-stream)"
        )
    );
    drop(second);
    drop(admit(&stream, 1, false).unwrap());
    drop(first);
    assert_eq!(stream.backlog(), UnreadBacklog { bytes: 0, responses: 0, limit: 100 });
}

#[test]
fn sender_waits_until_responses_are_read() {
    let stream = stream(100, 1000);
    let first = admit(&stream, 100, true).unwrap();
    let waits = spawn({
        let stream = Arc::clone(&stream);
        move || admit(&stream, 100, true).map(drop)
    });
    while stream.connection.senders() == 0 {
        std::thread::yield_now();
    }
    drop(first);
    waits.join().unwrap().unwrap();
}

#[test]
fn cancellation_and_the_end_of_the_stream_end_a_wait() {
    for closes in [false, true] {
        let stream = stream(100, 1000);
        let _first = admit(&stream, 100, true).unwrap();
        let token = Arc::new(CancelToken::default());
        let waits = spawn({
            let (stream, token) = (Arc::clone(&stream), Arc::clone(&token));
            move || stream.admit(1, true, &token).map(drop)
        });
        while stream.connection.senders() == 0 {
            std::thread::yield_now();
        }
        if closes {
            stream.close()
        } else {
            token.cancel()
        }
        assert_eq!(waits.join().unwrap().unwrap_err().code, Code::Cancelled);
    }
}

#[test]
fn stalled_client_fails_senders_at_once_until_it_reads() {
    let stream = stream(100, 1000);
    let first = admit(&stream, 100, true).unwrap();
    let second = admit_unlimited(&stream);
    for _ in 0..2 {
        let error = admit(&stream, 1, true).unwrap_err();
        assert!(error.message.contains("has read nothing for 100ms: 200 bytes"), "{error}");
    }
    let begin = Instant::now();
    admit(&stream, 1, true).unwrap_err();
    assert!(begin.elapsed() < Duration::from_millis(90));
    drop((first, second));
    admit(&stream, 1, true).unwrap();
}

fn admit_unlimited(stream: &Arc<StreamUnread>) -> UnreadResponse {
    stream.count_response(100).unwrap()
}

/// Responses held back for the order of their model cannot be read, so the response that they wait
/// for is admitted.
#[test]
fn sender_does_not_wait_for_responses_that_cannot_be_read() {
    let stream = stream(100, 1000);
    let _held_back = Arc::clone(&stream).admit(200, true, &CancelToken::default()).unwrap();
    let first = admit(&stream, 50, false).unwrap();
    assert!(admit(&stream, 50, false).is_err());
    drop(first);
    assert!(admit(&stream, 50, false).is_ok());
}

#[test]
fn connection_limits_all_streams_together() {
    let connection = ConnectionUnread::new(limits(100, 150));
    let [a, b] = [1, 2].map(|number| StreamUnread::new(Arc::clone(&connection), number));
    let first = admit(&a, 100, false).unwrap();
    assert!(admit(&b, 60, false).unwrap_err().message.contains("--max-unread-per-connection"));
    assert!(b.count_response(60).is_err());
    drop(first);
    assert!(admit(&b, 60, false).is_ok());
}
