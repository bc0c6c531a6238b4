//! A response under construction: its outputs and parameters.

use super::device::Event;
use super::dtype::{Dtype, Element, elements};
use super::error::Error;
use super::host::{Host, with_str};
use super::request::contains_output;
use super::responder::{RequestState, ResponderRef};
use super::value::Value;
use crate::abi;
use crate::abi::host::{Release, send_flags};
use crate::abi::request::RequestedOutput;
use crate::abi::types::{Buf, Memory, code};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

/// One response. Fill it with outputs and send it; dropped unsent, it is discarded.
///
/// An output that was not requested is accepted and discarded: its memory is an empty slice. Check
/// [`Response::output_requested`] before computing something expensive; [`Response::put`] checks by
/// itself.
pub struct Response<'a> {
    host: Host,
    raw: *mut abi::types::Response,
    state: &'a RequestState,
    requested: &'a [RequestedOutput],
}

impl<'a> Response<'a> {
    /// # Safety
    /// The responder and the names of `requested` are valid for `'a`.
    pub(crate) unsafe fn new(
        responder: ResponderRef<'a>,
        requested: &'a [RequestedOutput],
    ) -> Result<Response<'a>, Error> {
        let ResponderRef { host, state, .. } = responder;
        state.check()?;
        let mut raw = ptr::null_mut();
        // SAFETY: the responder is valid.
        unsafe { Error::take(host, (host.response_new)(responder.raw, &raw mut raw))? };
        state.set_responding(true);
        Ok(Response { host, raw, state, requested })
    }

    /// Whether the response should have the output.
    pub fn output_requested(&self, name: &str) -> bool {
        // SAFETY: the names are valid for `'a`.
        unsafe { contains_output(self.requested, name) }
    }

    /// Memory for an output: what is written there is sent as it is. 64-byte aligned, with
    /// arbitrary contents. `shape` has the batch dimension first when the model batches. Empty if
    /// the output was not requested.
    pub fn output(
        &mut self,
        name: &str,
        dtype: Dtype,
        shape: &[i64],
        bytes: usize,
    ) -> Result<&mut [u8], Error> {
        let (p, n) = self.output_ptr(name, dtype, shape, bytes)?;
        if p.is_null() || n == 0 {
            return Ok(&mut []);
        }
        // SAFETY: the block is borrowed exclusively until the response is sent or dropped, both of
        // which take `self`; one block at a time is reachable through `&mut self`.
        Ok(unsafe { std::slice::from_raw_parts_mut(p, n) })
    }

    /// As [`Response::output`], for elements of `T`; the size follows from the shape.
    pub fn output_slice<T: Element>(
        &mut self,
        name: &str,
        shape: &[i64],
    ) -> Result<&mut [T], Error> {
        let bytes = byte_size::<T>(name, shape)?;
        as_elements(name, self.output(name, T::DTYPE, shape, bytes)?)
    }

    /// As [`Response::output`], as pointer and size, for several outputs bound at once in another
    /// library. Valid until the response is sent or dropped; null and 0 if the output was not
    /// requested.
    pub fn output_ptr(
        &mut self,
        name: &str,
        dtype: Dtype,
        shape: &[i64],
        bytes: usize,
    ) -> Result<(*mut u8, usize), Error> {
        let block = self.output_buf(name, dtype, shape, bytes, Memory::CPU)?;
        Ok((block.ptr, block.bytes as usize))
    }

    /// As [`Response::output_ptr`], in other memory, such as that of the instance's device; the
    /// host may choose CPU memory all the same. Ready for work submitted to the instance's compute
    /// stream; written until the event of [`Response::send_after`] or, without one, by what was
    /// submitted to that stream before the response is sent.
    pub fn output_buf(
        &mut self,
        name: &str,
        dtype: Dtype,
        shape: &[i64],
        bytes: usize,
        memory: Memory,
    ) -> Result<Buf, Error> {
        let mut block = cpu_buffer(ptr::null_mut(), 0);
        with_str(name, |name| {
            let (rank, dims) = (shape.len() as u32, shape.as_ptr());
            let (dtype, bytes, out) = (dtype.to_abi(), bytes as u64, &raw mut block);
            let alloc = self.host.output_alloc;
            // SAFETY: the response is valid, name and shape are valid during the call; an error is
            // owned by the caller.
            unsafe {
                let error = alloc(self.raw, name, dtype, rank, dims, bytes, memory, out);
                Error::take(self.host, error)
            }
        })?;
        Ok(block)
    }

    /// Copies elements into an output, if it was requested.
    pub fn put<T: Element>(
        &mut self,
        name: &str,
        shape: &[i64],
        values: &[T],
    ) -> Result<(), Error> {
        // SAFETY: elements have no padding, so all their bytes are initialized.
        let bytes = unsafe {
            std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), size_of_val(values))
        };
        self.put_bytes(name, T::DTYPE, shape, bytes)
    }

    /// Copies bytes into an output, if it was requested.
    pub fn put_bytes(
        &mut self,
        name: &str,
        dtype: Dtype,
        shape: &[i64],
        bytes: &[u8],
    ) -> Result<(), Error> {
        let block = self.output(name, dtype, shape, bytes.len())?;
        if block.len() == bytes.len() {
            block.copy_from_slice(bytes);
        }
        Ok(())
    }

    /// Writes the elements of a STRING output, if it was requested.
    pub fn put_strings<S: AsRef<[u8]>>(
        &mut self,
        name: &str,
        shape: &[i64],
        values: &[S],
    ) -> Result<(), Error> {
        let mut all = Vec::with_capacity(values.iter().map(|v| v.as_ref().len() + 4).sum());
        for value in values.iter().map(AsRef::as_ref) {
            let n = u32::try_from(value.len()).map_err(|_| {
                Error::invalid(format_args!("output '{name}': an element is too long"))
            })?;
            all.extend_from_slice(&n.to_le_bytes());
            all.extend_from_slice(value);
        }
        self.adopt(name, Dtype::String, shape, all)
    }

    /// Adds an output in memory of the backend, without a copy. The host drops `owner` exactly
    /// once, on any thread: also when this fails or the output was not requested.
    pub fn adopt<O>(
        &mut self,
        name: &str,
        dtype: Dtype,
        shape: &[i64],
        owner: O,
    ) -> Result<(), Error>
    where
        O: AsRef<[u8]> + Send + 'static,
    {
        let ctx = Box::into_raw(Box::new(owner));
        // SAFETY: the box is alive until its release, which comes after `adopt_raw` at the
        // earliest.
        let bytes = unsafe { (*ctx).as_ref() };
        let part = cpu_buffer(bytes.as_ptr().cast_mut(), bytes.len() as u64);
        // SAFETY: the bytes belong to the owner, which stays where it is until the release.
        unsafe { self.adopt_raw(name, dtype, shape, &[part], drop_box::<O>, ctx.cast()) }
    }

    /// As [`Response::adopt`], for a vector of elements.
    pub fn adopt_vec<T: Element>(
        &mut self,
        name: &str,
        shape: &[i64],
        values: Vec<T>,
    ) -> Result<(), Error> {
        self.adopt(name, T::DTYPE, shape, Elements(values))
    }

    /// As [`Response::adopt`], for memory of another library, in one or more parts.
    ///
    /// # Safety
    /// The parts stay valid and unchanged until `release(ctx)`, which the host calls exactly once
    /// on any thread; it must not unwind.
    pub unsafe fn adopt_raw(
        &mut self,
        name: &str,
        dtype: Dtype,
        shape: &[i64],
        parts: &[Buf],
        release: unsafe extern "C" fn(ctx: *mut u8),
        ctx: *mut u8,
    ) -> Result<(), Error> {
        with_str(name, |name| {
            // SAFETY: the response is valid, arguments are valid during the call, the rest is the
            // caller's promise.
            let error = unsafe {
                (self.host.output_adopt)(
                    self.raw,
                    name,
                    dtype.to_abi(),
                    shape.len() as u32,
                    shape.as_ptr(),
                    parts.as_ptr(),
                    parts.len() as u32,
                    Release { func: Some(release) },
                    ctx,
                )
            };
            // SAFETY: an error is owned by the caller.
            unsafe { Error::take(self.host, error) }
        })
    }

    /// Adds a parameter to the response.
    pub fn param<'v>(&mut self, key: &str, value: impl Into<Value<'v>>) -> Result<(), Error> {
        value.into().with_param(key, |param| {
            // SAFETY: the response is valid, the parameter is valid during the call, which copies
            // it.
            unsafe { Error::take(self.host, (self.host.response_param)(self.raw, param)) }
        })
    }

    /// Sends the final response of the request.
    pub fn send(self) -> Result<(), Error> {
        self.send_with(send_flags::FINAL, ptr::null_mut())
    }

    /// As [`Response::send`]; outputs in GPU memory are read once the event is reached. The
    /// response leaves then.
    pub fn send_after(self, event: Event) -> Result<(), Error> {
        self.send_with(send_flags::FINAL, event.into_raw())
    }

    /// Sends a response that is not the final one. Waits for a client that reads slowly; fails with
    /// [`Code::Cancelled`](super::Code::Cancelled) when the client disconnects.
    pub fn send_more(self) -> Result<(), Error> {
        self.send_with(0, ptr::null_mut())
    }

    /// As [`Response::send_more`], without waiting: returns the response when the client has not
    /// read enough.
    pub fn try_send_more(self) -> Result<Option<Self>, Error> {
        let (none, now) = (ptr::null(), ptr::null_mut());
        // SAFETY: the response is valid; the call takes it unless it returns EXHAUSTED.
        let error = unsafe { (self.host.response_send)(self.raw, send_flags::NO_WAIT, none, now) };
        // SAFETY: null or an error that this function owns.
        if !error.is_null() && unsafe { (self.host.error_code)(error) } == code::EXHAUSTED {
            // SAFETY: the error is not null and owned by this function, which frees it once.
            unsafe { (self.host.error_free)(error) };
            return Ok(Some(self));
        }
        let this = std::mem::ManuallyDrop::new(self);
        this.state.set_responding(false);
        // SAFETY: the error is null or owned by this function, which passes it on once.
        unsafe { Error::take(this.host, error) }.map(|()| None)
    }

    fn send_with(self, flags: u32, after: *mut abi::types::Event) -> Result<(), Error> {
        let this = std::mem::ManuallyDrop::new(self);
        this.state.set_responding(false);
        // SAFETY: the response is valid; the call takes it and the event, also on failure.
        let sent = unsafe {
            Error::take(this.host, (this.host.response_send)(this.raw, flags, ptr::null(), after))
        };
        if sent.is_ok() && flags & send_flags::FINAL != 0 {
            this.state.set_finished();
        }
        sent
    }
}

impl Drop for Response<'_> {
    fn drop(&mut self) {
        self.state.set_responding(false);
        // SAFETY: the response is valid and not used afterwards.
        unsafe { (self.host.response_free)(self.raw) }
    }
}

struct Elements<T>(Vec<T>);

impl<T: Element> AsRef<[u8]> for Elements<T> {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: elements have no padding, so all their bytes are initialized.
        unsafe {
            std::slice::from_raw_parts(self.0.as_ptr().cast::<u8>(), size_of_val(self.0.as_slice()))
        }
    }
}

pub(crate) fn cpu_buffer(ptr: *mut u8, bytes: u64) -> Buf {
    Buf { ptr, bytes, memory: Memory::CPU, ready: ptr::null_mut(), memory_handle: 0 }
}

/// # Safety
/// `ctx` is a box of `O`, released exactly once.
pub(crate) unsafe extern "C" fn drop_box<O>(ctx: *mut u8) {
    // SAFETY: `ctx` is the box that `adopt` leaked, and this its only release.
    let owner = unsafe { Box::from_raw(ctx.cast::<O>()) };
    // A panic in the author's Drop must not unwind into the host.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(owner)));
}

/// Bytes of an output of `T` in that shape.
pub(crate) fn byte_size<T: Element>(name: &str, shape: &[i64]) -> Result<usize, Error> {
    elements(shape).and_then(|n| n.checked_mul(size_of::<T>())).ok_or_else(|| {
        Error::internal(format_args!("output '{name}' has an impossible shape {shape:?}"))
    })
}

/// The host's block for an output as elements.
pub(crate) fn as_elements<'a, T: Element>(
    name: &str,
    block: &'a mut [u8],
) -> Result<&'a mut [T], Error> {
    // SAFETY: every bit pattern is a value of `T`, which is what `Element` says.
    let (before, middle, _) = unsafe { block.align_to_mut::<T>() };
    if before.is_empty() {
        return Ok(middle);
    }
    Err(Error::internal(format_args!("the host's block for output '{name}' is not aligned")))
}
