//! Unit tests of `first_message.rs`.

use super::*;
use http_body_util::BodyExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnboundedReceiverStream;

type Part = Result<Bytes, BoxError>;

/// A stream that responds with what arrived when it began and the bytes that followed.
struct Call {
    parts: mpsc::UnboundedSender<Part>,
    begun: Arc<AtomicBool>,
    response: WaitingBody,
}

fn call(deadline_ns: u64) -> Call {
    let (parts, received) = mpsc::unbounded_channel::<Part>();
    let frames = UnboundedReceiverStream::new(received).map(|part| part.map(Frame::data));
    let begun = Arc::new(AtomicBool::new(false));
    let begins = Arc::clone(&begun);
    let begin = move |body: BegunBody<_>| {
        begins.store(true, Ordering::SeqCst);
        tonic::body::Body::new(body)
    };
    let response =
        respond_after_first_message(http_body_util::StreamBody::new(frames), deadline_ns, begin);
    Call { parts, begun, response }
}

impl Call {
    fn send(&self, part: &[u8]) {
        let _ = self.parts.send(Ok(Bytes::copy_from_slice(part)));
    }

    async fn begins(&self) -> bool {
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        self.begun.load(Ordering::SeqCst)
    }

    /// The bytes of the response, and the status in its trailers if it has any.
    async fn end(self) -> (Vec<u8>, Option<String>) {
        let Self { parts, response, .. } = self;
        drop(parts);
        let collected = response.collect().await.unwrap();
        let status = collected.trailers().map(|t| t[STATUS].to_str().unwrap().to_owned());
        (collected.to_bytes().to_vec(), status)
    }
}

#[tokio::test]
async fn stream_begins_with_its_first_whole_message() {
    let message = [0, 0, 0, 0, 3, 7, 8, 9];
    for split in 0..=message.len() {
        let call = call(0);
        assert!(!call.begins().await);
        call.send(&message[..split]);
        assert_eq!(call.begins().await, split == message.len());
        call.send(&message[split..]);
        assert!(call.begins().await);
        call.send(b"more");
        assert_eq!(call.end().await, ([&message[..], b"more"].concat(), None), "{split}");
    }
}

#[tokio::test]
async fn long_or_scattered_message_begins_the_stream_before_it_is_whole() {
    let long = call(0);
    long.send(&[0, 0, 1, 0, 0]);
    long.send(&[1; MAX_HELD - PREFIX - 1]);
    assert!(!long.begins().await);
    long.send(&[1]);
    assert!(long.begins().await);
    let scattered = call(0);
    let message: [u8; MAX_FRAMES] = [0, 0, 1, 0, 0, 7, 8, 9];
    for (i, byte) in message.iter().enumerate() {
        assert!(!scattered.begins().await, "{i}");
        scattered.send(&[]);
        scattered.send(&[*byte]);
    }
    assert!(scattered.begins().await);
    assert_eq!(scattered.end().await.0, message);
}

#[tokio::test]
async fn stream_without_messages_begins_at_its_end() {
    let empty = call(0);
    let begun = Arc::clone(&empty.begun);
    assert_eq!(empty.end().await, (vec![], None));
    assert!(begun.load(Ordering::SeqCst));
    let broken = call(0);
    broken.parts.send(Err("broken".into())).unwrap();
    assert!(broken.begins().await);
    assert!(broken.response.collect().await.is_err());
}

#[tokio::test]
async fn late_first_message_and_passed_deadline_end_the_stream_with_their_status() {
    let late = call(0);
    late.parts.send(Err(RequestBodyError::NoFirstMessage.into())).unwrap();
    let begun = Arc::clone(&late.begun);
    assert_eq!(late.end().await, (vec![], Some("4".to_owned())));
    assert!(!begun.load(Ordering::SeqCst));
    let deadline = call(trtserver_base::clock::now_ns() + 1_000_000);
    let collected = deadline.response.collect().await.unwrap();
    assert_eq!(collected.trailers().unwrap()[STATUS], "4");
}

#[tokio::test]
async fn dropped_response_ends_the_wait() {
    let call = call(0);
    assert!(!call.begins().await);
    drop(call.response);
    tokio::time::timeout(Duration::from_secs(5), call.parts.closed()).await.unwrap();
}

/// The task of the real streams is checked when they are compiled, see `small`.
#[test]
fn waiting_stream_is_small() {
    let (to, _begun) = oneshot::channel();
    let body = Box::pin(http_body_util::Empty::<Bytes>::new());
    // As large as what the streams of v1 and v2 keep.
    let kept = [0_u64; 32];
    let begin = move |_: BegunBody<_>| {
        std::hint::black_box(kept);
        tonic::body::Body::empty()
    };
    let task = wait(body, 0, begin, to);
    assert!(size_of_val(&task) <= 1 << 10, "{}", size_of_val(&task));
    assert!(size_of::<WaitingBody>() <= 64);
    let mut task = Box::pin(task);
    let mut context = Context::from_waker(Waker::noop());
    assert!(task.as_mut().poll(&mut context).is_ready());
}
