//! Options of a request: batch size, flags, and the outputs that are asked for.

use super::{Error, V1Context};
use crate::arguments::{optional_text, read_array, read_struct, read_text};
use crate::failure::{ClientFailure, Outcome, guard_call};
use crate::handle::ObjectHandle;
use std::ffi::c_char;
use trtserver_client::v1::{OutputFormat, RunOptions};

#[derive(Clone, Copy)]
#[repr(C)]
pub struct RawRequestedOutput {
    name: *const c_char,
    class_count: u64,
    region: *const c_char,
    region_offset: u64,
    region_byte_size: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct RawOptions {
    struct_size: usize,
    batch_size: u64,
    flags: u32,
    priority: u32,
    timeout_us: u64,
    correlation_id: u64,
    outputs: *const RawRequestedOutput,
    output_count: usize,
}

/// # Safety
/// `raw` is NULL or points to options as the header describes them.
pub(super) unsafe fn read_options(raw: *const RawOptions) -> Outcome<RunOptions> {
    // SAFETY: the contract of this function.
    let raw = unsafe { read_struct(raw, "options") }?;
    // SAFETY: by the caller's promise the options contain as many outputs as they say.
    let requested = unsafe { read_array(raw.outputs, raw.output_count, "outputs") }?;
    let output = |output: &RawRequestedOutput| {
        // SAFETY: by the caller's promise the names of an output are NULL or C strings.
        let (name, region) = unsafe {
            (
                read_text(output.name, "an output's name")?,
                optional_text(output.region, "a region's name")?,
            )
        };
        let format = match (region, output.class_count) {
            (Some(_), 1..) => {
                return Err(ClientFailure::argument(format!(
                    "output '{name}' is requested as classes and in shared memory, expected one of both"
                )));
            }
            (Some(region), 0) => OutputFormat::SharedMemory {
                region: region.to_owned(),
                offset: output.region_offset,
                byte_size: output.region_byte_size,
            },
            (None, 0) => OutputFormat::Raw,
            (None, count) => OutputFormat::Class(u32::try_from(count).unwrap_or(u32::MAX)),
        };
        Ok((name.to_owned(), format))
    };
    Ok(RunOptions {
        batch_size: raw.batch_size,
        flags: raw.flags,
        correlation_id: raw.correlation_id,
        outputs: requested.iter().map(output).collect::<Outcome<_>>()?,
        priority: raw.priority,
        timeout_us: raw.timeout_us,
    })
}

/// # Safety
/// See [`super::trtc_v1_context_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_set_options(
    context: ObjectHandle<V1Context>,
    raw: *const RawOptions,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let options = unsafe { read_options(raw) }?;
        context.get()?.stateful().set_options(&options)
    })
}
