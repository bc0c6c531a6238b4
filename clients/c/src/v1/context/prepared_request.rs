//! `trtc_v1_prepared`: a request that is checked and encoded once and sent often, with its inputs
//! and outputs as blocks of bytes.

use super::run::RawRequest;
use super::{Error, V1Context};
use crate::arguments::{read_array, read_struct, read_text, result_place};
use crate::failure::{ClientFailure, Outcome, guard_call, ignore_panic};
use crate::handle::{HandleObject, ObjectHandle};
use crate::v1::result::V1Result;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::{Arc, Weak};
use trtserver_client::v1::{OutputFormat, OutputResult, RunResults, Template};

pub struct V1Prepared {
    /// The context may be released before.
    context: Weak<V1Context>,
    pub(super) template: Arc<Template>,
    /// Names of the requested outputs.
    pub(super) order: Arc<[String]>,
}

impl HandleObject for V1Prepared {
    const NAME: &'static str = "v1 prepared request";
}

impl V1Prepared {
    pub(super) fn context(&self) -> Outcome<Arc<V1Context>> {
        self.context.upgrade().ok_or_else(|| {
            ClientFailure::argument("the context of the prepared request was released")
        })
    }
}

/// `trtc_v1_reply`.
#[repr(C)]
pub(super) struct RawReply {
    pub size: u64,
    result: ObjectHandle<V1Result>,
    request_id: u64,
    model_version: i64,
    description_size: u64,
}

/// # Safety
/// See [`super::trtc_v1_context_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_prepare(
    context: ObjectHandle<V1Context>,
    raw: *const RawRequest,
    place: *mut ObjectHandle<V1Prepared>,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let (context, place) = (context.get()?, unsafe { result_place(place, "prepared") }?);
        // SAFETY: the caller promises that `raw` is NULL or points to a request as the header
        // describes it.
        let (request, _) = unsafe { context.request(raw) }?;
        // SAFETY: the request was read above, so it and its inputs are valid; the caller keeps them
        // during the call.
        let names = unsafe {
            let raw = read_struct(raw, "request")?;
            let inputs = read_array(raw.inputs, raw.input_count, "inputs")?;
            inputs
                .iter()
                .map(|input| read_text(input.name, "an input's name"))
                .collect::<Outcome<Vec<_>>>()?
        };
        let template = context.context.template(&request.run, &names)?;
        let prepared = V1Prepared {
            context: Arc::downgrade(&context),
            template: Arc::new(template),
            order: request.order.into(),
        };
        place.write(ObjectHandle::new(Arc::new(prepared)));
        Ok(())
    })
}

/// # Safety
/// See [`super::trtc_v1_context_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_prepared_infer(
    prepared: ObjectHandle<V1Prepared>,
    data: *const u8,
    size: usize,
    reply: *mut u8,
    capacity: usize,
) -> Error {
    guard_call(|| {
        let least = size_of::<RawReply>();
        if reply.is_null()
            || capacity < least
            || !reply.addr().is_multiple_of(align_of::<RawReply>())
        {
            return Err(ClientFailure::argument(format!(
                "reply has {capacity} bytes at {reply:p}, expected at least {least} at a multiple of {}",
                align_of::<RawReply>()
            )));
        }
        // SAFETY: the contract of this function; nothing is read from it.
        let reply =
            unsafe { std::slice::from_raw_parts_mut(reply.cast::<MaybeUninit<u8>>(), capacity) };
        // SAFETY: the contract of this function.
        let (prepared, data) = (prepared.get()?, unsafe { read_array(data, size, "data") }?);
        let results = prepared.context()?.context.run_template(&prepared.template, data)?;
        let head = RawReply::new(results, &prepared.order, &mut reply[least..]);
        // SAFETY: the slice has the size and alignment of the structure.
        unsafe { ptr::write(reply.as_mut_ptr().cast::<RawReply>(), head) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn trtc_v1_prepared_free(prepared: ObjectHandle<V1Prepared>) {
    ignore_panic((), || drop(prepared.release()));
}

impl RawReply {
    /// The head of a reply whose outputs were written into `space`, or are in a result.
    pub fn new(results: RunResults, order: &[String], space: &mut [MaybeUninit<u8>]) -> Self {
        let mut head = Self {
            size: 0,
            result: ObjectHandle::NULL,
            request_id: results.request_id,
            model_version: results.version,
            description_size: 0,
        };
        match write_result(&results, order, space) {
            Some((described, written)) => {
                head.size = (size_of::<Self>() + written) as u64;
                head.description_size = described as u64;
            }
            None => head.result = ObjectHandle::new(Arc::new(V1Result::new(results, order))),
        }
        head
    }

    /// The reply to a request that failed.
    pub const fn empty() -> Self {
        Self {
            size: 0,
            result: ObjectHandle::NULL,
            request_id: 0,
            model_version: 0,
            description_size: 0,
        }
    }
}

/// Writes the description of the outputs, then their tensors; returns the sizes of the description
/// and of both. `None` if an output is not a tensor of fixed-size elements in the response, or if
/// the space is too small.
fn write_result(
    results: &RunResults,
    order: &[String],
    space: &mut [MaybeUninit<u8>],
) -> Option<(usize, usize)> {
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        let place = space.get_mut(at..)?.get_mut(..bytes.len())?;
        // SAFETY: the place has as many bytes; the two references do not alias.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), place.as_mut_ptr().cast(), bytes.len()) };
        at += bytes.len();
        Some(at)
    };
    let mut described = 0;
    for name in order {
        let output = results.outputs.get(name)?;
        let shape = plain_shape(output)?;
        let mut sizes =
            (0..output.batch_size()).map(|at| output.raw(at).map_or(0, |raw| raw.len()));
        let first = sizes.next()?;
        if first == 0 || sizes.any(|size| size != first) {
            return None;
        }
        put(&i64::from(output.config().data_type).to_ne_bytes())?;
        put(&(shape.len() as i64).to_ne_bytes())?;
        for dim in shape {
            put(&dim.to_ne_bytes())?;
        }
        described = put(&((first * output.batch_size()) as i64).to_ne_bytes())?;
    }
    let mut end = described;
    for name in order {
        let output = results.outputs.get(name)?;
        for at in 0..output.batch_size() {
            end = put(output.raw(at).ok()?)?;
        }
    }
    Some((described, end))
}

/// The bytes that [`write_result`] needs; `None` if the outputs have to be in a result.
pub(super) fn description_size(results: &RunResults, order: &[String]) -> Option<usize> {
    let mut sum = 0;
    for name in order {
        let output = results.outputs.get(name)?;
        let shape = plain_shape(output)?;
        let data = (0..output.batch_size()).map(|at| output.raw(at).map_or(0, |raw| raw.len()));
        sum += (shape.len() + 3) * size_of::<i64>() + data.sum::<usize>();
    }
    Some(sum)
}

/// The shape of an output whose batch entries have the same number of bytes each.
fn plain_shape(output: &OutputResult) -> Option<&[i64]> {
    let config = output.config();
    let is_plain = *output.format() == OutputFormat::Raw
        && config.data_type() != trtserver_client::v1::DataType::TypeString
        && !config.is_shape_tensor;
    is_plain.then(|| output.raw_shape().ok()).flatten()
}
