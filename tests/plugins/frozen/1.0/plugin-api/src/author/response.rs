//! Outputs: an answer under construction.

use super::call::wants;
use super::dtype::{Dtype, Element, elements};
use super::error::Error;
use super::host::{Host, with_str};
use super::reply::{Marks, ReplyRef};
use super::value::Value;
use crate::abi;
use crate::abi::call::Wanted;
use crate::abi::host::{Release, send_flags};
use crate::abi::types::{Buf, Place};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

/// One answer. Fill it with outputs and send it; dropped unsent, it is as if it had never begun.
///
/// An output that the caller did not ask for is accepted and goes nowhere: its memory is an empty
/// slice. Ask [`Response::wants`] before computing something expensive, or use [`Response::put`],
/// which looks by itself.
pub struct Response<'a> {
    host: Host,
    raw: *mut abi::types::Response,
    marks: &'a Marks,
    wanted: &'a [Wanted],
}

impl<'a> Response<'a> {
    /// # Safety
    /// The reply is held for `'a`, and the names of `wanted` as long.
    pub(crate) unsafe fn begin(
        reply: ReplyRef<'a>,
        wanted: &'a [Wanted],
    ) -> Result<Response<'a>, Error> {
        let ReplyRef { host, marks, .. } = reply;
        marks.check()?;
        let mut raw = ptr::null_mut();
        // SAFETY: the reply is held.
        unsafe { Error::take(host, (host.response_new)(reply.raw, &raw mut raw))? };
        marks.set_open(true);
        Ok(Response { host, raw, marks, wanted })
    }

    /// Whether the caller asked for this output.
    pub fn wants(&self, name: &str) -> bool {
        // SAFETY: the names are valid for `'a`.
        unsafe { wants(self.wanted, name) }
    }

    /// Memory for an output: what is written there goes on the wire as it is. 64-byte aligned, its
    /// contents are arbitrary before. `shape` has the batch dimension first when the model batches.
    /// Empty if nobody asked for the output.
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
        // SAFETY: the host lends the block exclusively until the response is sent or dropped, both of
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
    /// library. Valid until the response is sent or dropped; null and 0 if nobody asked for the output.
    pub fn output_ptr(
        &mut self,
        name: &str,
        dtype: Dtype,
        shape: &[i64],
        bytes: usize,
    ) -> Result<(*mut u8, usize), Error> {
        let mut block = buf(ptr::null_mut(), 0);
        with_str(name, |name| {
            // SAFETY: the response is open, name and shape are valid during the call.
            let error = unsafe {
                (self.host.output_alloc)(
                    self.raw,
                    name,
                    dtype.to_abi(),
                    shape.len() as u32,
                    shape.as_ptr(),
                    bytes as u64,
                    Place::CPU,
                    &raw mut block,
                )
            };
            // SAFETY: what the host returns is ours.
            unsafe { Error::take(self.host, error) }
        })?;
        Ok((block.ptr, block.bytes as usize))
    }

    /// Copies elements into an output, if the caller asked for it.
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

    /// Copies bytes into an output, if the caller asked for it.
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

    /// Writes the elements of a STRING output, if the caller asked for it.
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

    /// Donates memory as an output, without a copy. `owner` is dropped exactly once, on any thread,
    /// when the host has done with it: also when this fails or nobody asked for the output.
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
        // SAFETY: the box is alive until its release, which comes after `adopt_raw` at the earliest.
        let bytes = unsafe { (*ctx).as_ref() };
        let part = buf(bytes.as_ptr().cast_mut(), bytes.len() as u64);
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

    /// As [`Response::adopt`], for memory of another library, in one or more pieces.
    ///
    /// # Safety
    /// The pieces stay valid and unchanged until `release(ctx)`, which the host calls exactly once
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
            // SAFETY: the response is open, what is lent is valid during the call, the rest is the caller's promise.
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
            // SAFETY: what the host returns is ours.
            unsafe { Error::take(self.host, error) }
        })
    }

    /// Adds a parameter to the answer.
    pub fn param<'v>(&mut self, key: &str, value: impl Into<Value<'v>>) -> Result<(), Error> {
        value.into().lend(key, |param| {
            // SAFETY: the response is open, the parameter is valid during the call, which copies it.
            unsafe { Error::take(self.host, (self.host.response_param)(self.raw, param)) }
        })
    }

    /// Sends the last answer of the call.
    pub fn send(self) -> Result<(), Error> {
        self.finish(send_flags::LAST)
    }

    /// Sends an answer of a stream that goes on.
    pub fn send_more(self) -> Result<(), Error> {
        self.finish(0)
    }

    fn finish(self, flags: u32) -> Result<(), Error> {
        let this = std::mem::ManuallyDrop::new(self);
        this.marks.set_open(false);
        let (none, now) = (ptr::null(), ptr::null_mut());
        // SAFETY: the response is open; the call takes it, whatever comes back.
        let sent = unsafe {
            Error::take(this.host, (this.host.response_send)(this.raw, flags, none, now))
        };
        if sent.is_ok() && flags & send_flags::LAST != 0 {
            this.marks.set_ended();
        }
        sent
    }
}

impl Drop for Response<'_> {
    fn drop(&mut self) {
        self.marks.set_open(false);
        // SAFETY: the response is open and nobody uses it after this.
        unsafe { (self.host.response_drop)(self.raw) }
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

pub(crate) fn buf(ptr: *mut u8, bytes: u64) -> Buf {
    Buf { ptr, bytes, place: Place::CPU, ready: ptr::null_mut(), lease: 0 }
}

/// # Safety
/// `ctx` is a box of `O` that nobody else drops.
pub(crate) unsafe extern "C" fn drop_box<O>(ctx: *mut u8) {
    // SAFETY: `ctx` is the box that `adopt` gave away, and this its one release.
    let owner = unsafe { Box::from_raw(ctx.cast::<O>()) };
    // A panic in the author's Drop has nobody to go to, and must not cross.
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
