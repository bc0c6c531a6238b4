//! `trtc_v1_result`: the outputs of a completed request, in place.

use crate::arguments::result_place;
use crate::failure::{ErrorObject, c_string, guard_call, ignore_panic};
use crate::handle::{HandleObject, ObjectHandle};
use std::ffi::{CString, c_char};
use std::ptr;
use trtserver_client::v1::{OutputFormat, OutputResult, RunResults};

#[repr(C)]
struct RawClass {
    index: u64,
    value: f32,
    label: *const c_char,
}

#[repr(C)]
struct RawEntry {
    data: *const u8,
    size: usize,
    classes: *const RawClass,
    class_count: usize,
}

#[repr(C)]
struct RawOutput {
    name: *const c_char,
    data_type: i32,
    is_class: bool,
    in_region: bool,
    dims: *const i64,
    dim_count: usize,
    data: *const u8,
    size: usize,
    entries: *const RawEntry,
    entry_count: usize,
}

#[repr(C)]
pub struct RawInfo {
    model_name: *const c_char,
    model_version: i64,
    batch_size: u64,
    server_id: *const c_char,
    request_id: u64,
    outputs: *const RawOutput,
    output_count: usize,
}

/// The results and the structures that point into them.
pub struct V1Result {
    info: RawInfo,
    _results: RunResults,
    _outputs: Vec<RawOutput>,
    _entries: Vec<Vec<RawEntry>>,
    _classes: Vec<Vec<RawClass>>,
    _texts: Vec<CString>,
}

// SAFETY: the pointers lead to parts of the object, which do not change.
unsafe impl Send for V1Result {}
// SAFETY: all that the result points to is its own and never changes, so threads only read it.
unsafe impl Sync for V1Result {}

impl HandleObject for V1Result {
    const NAME: &'static str = "v1 result";
}

impl V1Result {
    /// `order` names the requested outputs.
    pub fn new(results: RunResults, order: &[String]) -> Self {
        let mut parts = ResultParts::default();
        let model_name = parts.text(&results.model);
        let server_id = parts.text(&results.server_id);
        let found = order.iter().filter_map(|name| Some((name, results.outputs.get(name)?)));
        let outputs: Vec<_> = found.map(|(name, output)| parts.output(name, output)).collect();
        let batch_size = results.outputs.values().next().map_or(1, OutputResult::batch_size);
        let info = RawInfo {
            model_name,
            model_version: results.version,
            batch_size: batch_size as u64,
            server_id,
            request_id: results.request_id,
            outputs: outputs.as_ptr(),
            output_count: outputs.len(),
        };
        V1Result {
            info,
            _results: results,
            _outputs: outputs,
            _entries: parts.entries,
            _classes: parts.classes,
            _texts: parts.texts,
        }
    }
}

#[derive(Default)]
struct ResultParts {
    entries: Vec<Vec<RawEntry>>,
    classes: Vec<Vec<RawClass>>,
    texts: Vec<CString>,
}

impl ResultParts {
    fn text(&mut self, text: &str) -> *const c_char {
        let text = c_string(text);
        let pointer = text.as_ptr();
        self.texts.push(text);
        pointer
    }

    fn output(&mut self, name: &str, output: &OutputResult) -> RawOutput {
        let entries: Vec<_> = (0..output.batch_size()).map(|at| self.entry(output, at)).collect();
        let dims = output.raw_shape().unwrap_or_default();
        let raw = RawOutput {
            name: self.text(name),
            data_type: output.config().data_type,
            is_class: matches!(output.format(), OutputFormat::Class(_)),
            in_region: matches!(output.format(), OutputFormat::SharedMemory { .. }),
            dims: dims.as_ptr(),
            dim_count: dims.len(),
            // Entries are slices of one tensor, one behind the other.
            data: entries.first().map_or(ptr::null(), |entry| entry.data),
            size: entries.iter().map(|entry| entry.size).sum(),
            entries: entries.as_ptr(),
            entry_count: entries.len(),
        };
        self.entries.push(entries);
        raw
    }

    fn entry(&mut self, output: &OutputResult, at: usize) -> RawEntry {
        let data = output.raw(at).map(AsRef::as_ref).unwrap_or_default();
        let data: &[u8] = data;
        let classes: Vec<_> = output
            .classes(at)
            .unwrap_or_default()
            .iter()
            .map(|class| RawClass {
                index: u64::try_from(class.idx).unwrap_or(0),
                value: class.value,
                label: self.text(&class.label),
            })
            .collect();
        let entry = RawEntry {
            data: data.as_ptr(),
            size: data.len(),
            classes: classes.as_ptr(),
            class_count: classes.len(),
        };
        self.classes.push(classes);
        entry
    }
}

/// # Safety
/// `info` is NULL or points to a writable pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_result_get(
    handle: ObjectHandle<V1Result>,
    info: *mut *const RawInfo,
) -> ObjectHandle<ErrorObject> {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let place = unsafe { result_place(info, "info") }?;
        place.write(&raw const handle.get()?.info);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn trtc_v1_result_free(result: ObjectHandle<V1Result>) {
    ignore_panic((), || drop(result.release()));
}
