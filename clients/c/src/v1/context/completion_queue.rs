//! `trtc_v1_queue`: completed requests for a thread that takes many of them, with their tensors, in
//! one call. No thread of the library runs code of the program: a program in a language with a
//! global lock takes that once for all of them.

use super::prepared_request::{self, RawReply, V1Prepared};
use super::run::{COPY_INPUTS, RawRequest};
use super::{CallbackUser, Error, V1Context};
use crate::arguments::{read_array, result_place};
use crate::failure::{ClientFailure, ErrorObject, guard_call, ignore_panic};
use crate::fork;
use crate::handle::{HandleObject, ObjectHandle};
use std::collections::VecDeque;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use trtserver_client::v1::RunResults;

#[derive(Default)]
pub struct V1Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Default)]
struct QueueState {
    completed: VecDeque<QueuedCompletion>,
    closed: bool,
}

struct QueuedCompletion {
    user: CallbackUser,
    id: u64,
    /// Names of the requested outputs.
    order: Arc<[String]>,
    /// Whether tensors go into the reply, as those of prepared requests.
    prepared: bool,
    outcome: trtserver_client::Result<RunResults>,
}

impl HandleObject for V1Queue {
    const NAME: &'static str = "v1 queue";
}

/// `trtc_v1_completion`, which description and tensors follow.
#[repr(C)]
struct RawCompletion {
    size: u64,
    user: *mut c_void,
    id: u64,
    error: Error,
    reply: RawReply,
}

const HEAD: usize = size_of::<RawCompletion>();
const ALIGN: usize = align_of::<RawCompletion>();

impl V1Queue {
    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, completed: QueuedCompletion) {
        let mut state = self.state();
        state.completed.push_back(completed);
        let first = state.completed.len() == 1;
        drop(state);
        if first {
            self.changed.notify_all();
        }
    }

    /// False if the queue is closed and has nothing to take.
    fn wait(&self) -> bool {
        let mut state = self.state();
        while state.completed.is_empty() && !state.closed {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.completed.is_empty()
    }

    /// The next one, if it has its place in so many bytes. Into `whole` bytes everything fits, if
    /// necessary as a result.
    fn next(&self, bytes: usize, whole: usize) -> Option<QueuedCompletion> {
        let mut state = self.state();
        let first = state.completed.front()?;
        let needed = match &first.outcome {
            Ok(results) if first.prepared => {
                prepared_request::description_size(results, &first.order).unwrap_or(0)
            }
            _ => 0,
        };
        let least = if HEAD + needed > whole { HEAD } else { HEAD + needed };
        if least > bytes {
            return None;
        }
        state.completed.pop_front()
    }
}

impl QueuedCompletion {
    /// Writes it; returns the bytes up to the next.
    fn write(self, space: &mut [MaybeUninit<u8>]) -> usize {
        let Self { user, id, order, prepared, outcome } = self;
        let place = if prepared { &mut space[HEAD..] } else { &mut [] };
        let (error, reply) = match outcome {
            Ok(results) => (ObjectHandle::NULL, RawReply::new(results, &order, place)),
            Err(error) => (ErrorObject::handle(&ClientFailure::Client(error)), RawReply::empty()),
        };
        let end = HEAD + (reply.size as usize).saturating_sub(size_of::<RawReply>());
        let size = end.next_multiple_of(ALIGN).min(space.len());
        let head = RawCompletion { size: size as u64, user: user.0, id, error, reply };
        // SAFETY: the slice has the size of the structure; it need not be aligned.
        unsafe { ptr::write_unaligned(space.as_mut_ptr().cast::<RawCompletion>(), head) };
        size
    }
}

/// # Safety
/// The pointers are as the header describes them, here and below.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_queue_new(place: *mut ObjectHandle<V1Queue>) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let place = unsafe { result_place(place, "queue")? };
        place.write(ObjectHandle::new(Arc::default()));
        Ok(())
    })
}

/// # Safety
/// See [`trtc_v1_queue_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_queue_wait(
    queue: ObjectHandle<V1Queue>,
    open: *mut bool,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let place = unsafe { result_place(open, "open")? };
        place.write(queue.get()?.wait());
        Ok(())
    })
}

/// # Safety
/// See [`trtc_v1_queue_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_queue_take(
    queue: ObjectHandle<V1Queue>,
    completions: *mut u8,
    capacity: usize,
    count: *mut usize,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let count = unsafe { result_place(count, "count")? };
        count.write(0);
        if completions.is_null() || capacity < HEAD || !completions.addr().is_multiple_of(ALIGN) {
            return Err(ClientFailure::argument(format!(
                "the array of completions has {capacity} bytes at {completions:p}, expected at least {HEAD} at a \
                 multiple of {ALIGN}"
            )));
        }
        // SAFETY: the contract of this function; nothing is read from it.
        let space = unsafe {
            std::slice::from_raw_parts_mut(completions.cast::<MaybeUninit<u8>>(), capacity)
        };
        let queue = queue.get()?;
        let (mut at, mut taken) = (0, 0);
        while let Some(completed) = queue.next(capacity - at, capacity) {
            at += completed.write(&mut space[at..]);
            taken += 1;
            count.write(taken);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn trtc_v1_queue_close(queue: ObjectHandle<V1Queue>) {
    ignore_panic((), || {
        // In a child the queue's lock may be held by a thread that only the parent has.
        if let Some(queue) = queue.find().filter(|_| !fork::is_child()) {
            queue.state().closed = true;
            queue.changed.notify_all();
        }
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn trtc_v1_queue_free(queue: ObjectHandle<V1Queue>) {
    ignore_panic((), || drop(queue.release()));
}

/// # Safety
/// See [`trtc_v1_queue_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_infer_queued(
    context: ObjectHandle<V1Context>,
    request: *const RawRequest,
    queue: ObjectHandle<V1Queue>,
    user: *mut c_void,
    id: *mut u64,
) -> Error {
    guard_call(|| {
        let (context, queue, user) = (context.get()?, queue.get()?, CallbackUser(user));
        // SAFETY: the contract of this function: the memory stays until the completion was taken.
        let (mut request, flags) = unsafe { context.request(request) }?;
        if flags & COPY_INPUTS != 0 {
            for input in request.run.inputs_mut() {
                // SAFETY: what the caller has set is valid now.
                unsafe { input.copy_borrowed() };
            }
        }
        let order = request.order.into();
        let number = context.context.run_then(&request.run, move |id, outcome| {
            queue.add(QueuedCompletion { user, id, order, prepared: false, outcome });
        })?;
        // SAFETY: the contract of this function.
        if let Ok(place) = unsafe { result_place(id, "id") } {
            place.write(number);
        }
        Ok(())
    })
}

/// # Safety
/// See [`trtc_v1_queue_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_prepared_infer_queued(
    prepared: ObjectHandle<V1Prepared>,
    data: *const u8,
    size: usize,
    queue: ObjectHandle<V1Queue>,
    user: *mut c_void,
    id: *mut u64,
) -> Error {
    guard_call(|| {
        let (prepared, queue, user) = (prepared.get()?, queue.get()?, CallbackUser(user));
        // SAFETY: the contract of this function.
        let data = unsafe { read_array(data, size, "data") }?.to_vec();
        let (context, template) = (prepared.context()?, prepared.template.clone());
        let order = prepared.order.clone();
        let number = context.context.run_template_then(template, data, move |id, outcome| {
            queue.add(QueuedCompletion { user, id, order, prepared: true, outcome });
        })?;
        // SAFETY: the caller promises that `id` is NULL or may be written.
        if let Ok(place) = unsafe { result_place(id, "id") } {
            place.write(number);
        }
        Ok(())
    })
}
