//! `trtc_v2_stream`: requests over one gRPC stream, any number of responses to each.

use super::client::{Error, V2Client};
use super::infer::{Callback, CallbackUser, deliver_result};
use super::request::{RawRequest, read_request};
use super::result::V2Result;
use crate::arguments::{read_deadline, result_place};
use crate::failure::{ClientFailure, Outcome, guard_call, ignore_panic};
use crate::handle::{HandleObject, ObjectHandle};
use std::ffi::c_void;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, watch};
use tokio::time::timeout_at;
use trtserver_client::blocking::background;
use trtserver_client::v2::{StreamReceiver, StreamSender};
use trtserver_client::{Error as ClientError, Kind};

pub struct V2Stream {
    /// `None` after the stream was closed. A request is sent with the lock held, so that requests
    /// keep their order.
    sender: Mutex<Option<StreamSender>>,
    responses: Responses,
    /// Ends the thread of the callback.
    cancel: watch::Sender<bool>,
    /// How long a response is waited for.
    deadline: Option<Duration>,
    /// The server as errors name it.
    url: String,
}

enum Responses {
    /// Taken by `trtc_v2_stream_next`.
    Taken(Box<Mutex<Responding>>),
    /// Delivered by this thread.
    Callback(std::sync::Mutex<Option<JoinHandle<()>>>),
}

impl HandleObject for V2Stream {
    const NAME: &'static str = "v2 stream";
}

/// The receiving half of a stream.
struct Responding {
    receiver: StreamReceiver,
    until: Option<Instant>,
    cancelled: watch::Receiver<bool>,
    url: String,
    ended: bool,
}

impl Responding {
    /// The next response or error; `Ok(None)` after the end.
    async fn next(&mut self) -> Outcome<Option<V2Result>> {
        if self.ended {
            return Ok(None);
        }
        let Responding { receiver, until, cancelled, url, .. } = self;
        let failed =
            |kind, text| Some(Err(ClientError::new(kind, text).with_asked(|| url.clone())));
        let next = async {
            tokio::select! {
                biased;
                _ = cancelled.changed() => failed(Kind::Cancelled, "the stream was cancelled"),
                next = receiver.next() => next,
            }
        };
        let next = match *until {
            Some(until) => timeout_at(until.into(), next).await.unwrap_or_else(|_| {
                failed(Kind::DeadlineExceeded, "the deadline of the stream has passed")
            }),
            None => next.await,
        };
        // Errors of one request leave the stream open.
        self.ended = match &next {
            Some(Ok(_)) => false,
            Some(Err(error)) => !error.is_from_server() || error.id().is_empty(),
            None => true,
        };
        Ok(next.transpose()?.map(V2Result::new))
    }
}

/// # Safety
/// The pointers are as the header describes them, here and below.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v2_stream_open(
    client: ObjectHandle<V2Client>,
    callback: Option<Callback>,
    user: *mut c_void,
    deadline_us: u64,
    stream: *mut ObjectHandle<V2Stream>,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let (client, place) = (client.get()?, unsafe { result_place(stream, "stream") }?);
        let until = read_deadline(deadline_us)
            .flatten()
            .and_then(|limit| Instant::now().checked_add(limit));
        let runtime = background()?;
        let (sender, receiver) = runtime.block_on(client.streams.stream())?.split();
        let (cancel, cancelled) = watch::channel(false);
        let url = client.streams.url().to_owned();
        let mut responding =
            Responding { receiver, until, cancelled, url: url.clone(), ended: false };
        let responses = match callback {
            None => Responses::Taken(Box::new(Mutex::new(responding))),
            Some(callback) => {
                let user = CallbackUser(user);
                let run = move || {
                    let user = user;
                    loop {
                        // Outside of the runtime, so that callbacks may make calls.
                        let outcome = runtime.block_on(responding.next());
                        let ended = matches!(outcome, Ok(None));
                        deliver_result(callback, user, 0, outcome);
                        if ended {
                            return;
                        }
                    }
                };
                let thread = thread::Builder::new().name("trtserver-stream".to_owned()).spawn(run);
                let thread = thread
                    .map_err(|e| ClientFailure::Internal(format!("cannot start a thread: {e}")))?;
                Responses::Callback(std::sync::Mutex::new(Some(thread)))
            }
        };
        let sender = Mutex::new(sender);
        place.write(ObjectHandle::new(Arc::new(V2Stream {
            sender,
            responses,
            cancel,
            deadline: client.deadline,
            url,
        })));
        Ok(())
    })
}

/// # Safety
/// See [`trtc_v2_stream_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v2_stream_send(
    stream: ObjectHandle<V2Stream>,
    raw: *const RawRequest,
) -> Error {
    guard_call(|| {
        let stream = stream.get()?;
        // The connection sends it later: the tensors are copied.
        // SAFETY: the contract of this function.
        let (request, _) = unsafe { read_request(raw, true) }?;
        background()?.block_on(async {
            let sender = stream.sender.lock().await;
            let sender = sender.as_ref().ok_or_else(|| {
                ClientFailure::argument("the stream was closed, no request can be sent")
            })?;
            Ok(sender.send(&request).await?)
        })
    })
}

/// # Safety
/// See [`trtc_v2_stream_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v2_stream_next(
    stream: ObjectHandle<V2Stream>,
    deadline_us: u64,
    place: *mut ObjectHandle<V2Result>,
    ended: *mut bool,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let (stream, place, ended) = unsafe {
            (stream.get()?, result_place(place, "result")?, result_place(ended, "ended")?)
        };
        ended.write(false);
        let Responses::Taken(responding) = &stream.responses else {
            return Err(ClientFailure::argument("the responses of the stream go to its callback"));
        };
        let limit = read_deadline(deadline_us).unwrap_or(stream.deadline);
        let next = async {
            let mut responding = responding.lock().await;
            let next = responding.next().await;
            ended.write(responding.ended);
            next
        };
        let next = background()?.block_on(async {
            match limit {
                Some(limit) => tokio::time::timeout(limit, next).await.unwrap_or_else(|_| {
                    let text = "no response arrived within the deadline";
                    let error = ClientError::new(Kind::DeadlineExceeded, text);
                    Err(ClientFailure::Client(error.with_asked(|| stream.url.clone())))
                }),
                None => next.await,
            }
        })?;
        place.write(next.map_or(ObjectHandle::NULL, |result| ObjectHandle::new(Arc::new(result))));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn trtc_v2_stream_close(stream: ObjectHandle<V2Stream>) -> Error {
    guard_call(|| {
        let stream = stream.get()?;
        background()?.block_on(async { *stream.sender.lock().await = None });
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn trtc_v2_stream_free(stream: ObjectHandle<V2Stream>) {
    ignore_panic((), || {
        let Some(stream) = stream.release() else { return };
        let _ = stream.cancel.send(true);
        let Responses::Callback(thread) = &stream.responses else { return };
        let thread = thread.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        // A callback may release its own stream; the thread then ends by itself.
        if let Some(thread) = thread.filter(|each| each.thread().id() != thread::current().id()) {
            let _ = thread.join();
        }
    });
}
