//! Plans without weights (weight-stripped): the weights come from a safetensors file beside the
//! plan.
//!
//! The file begins with the length of its header, 64 bits; the header is JSON: type, shape and
//! position of each tensor.

use crate::callbacks::logger;
use crate::engine::Engine;
use crate::settings::WEIGHTS_PARAMETER;
use crate::vtable::{self, Raw, Weights, find_slot, method_entry};
use std::ffi::{CStr, CString, c_char};
use std::ops::Range;
use std::path::Path;

/// Names in one message.
const MAX_NAMED: usize = 3;

/// Gives an engine the weights that its plan lacks.
///
/// # Errors
/// Weights are missing, or the library or the engine cannot take any.
pub fn refit_weights(engine: &Engine, file: Option<&Path>) -> Result<(), String> {
    let version = engine.library.version;
    if version.major < 10 {
        return match file {
            None => Ok(()),
            Some(_) => Err(format!(
                "parameter '{WEIGHTS_PARAMETER}' is set, but TensorRT {version} has no plans without weights"
            )),
        };
    }
    if !engine.is_refittable()? {
        return match file {
            None => Ok(()),
            Some(_) => Err(format!(
                "parameter '{WEIGHTS_PARAMETER}' is set, but the engine was not built to be refitted (trtexec \
                 --stripWeights or --refit)"
            )),
        };
    }
    let refitter = Refitter::new(engine)?;
    let Some(file) = file else {
        let missing = refitter.missing()?;
        return match missing.first() {
            None => Ok(()),
            Some(_) => Err(format!(
                "the plan was built without weights, {} are missing ({}); name a safetensors file with them by the \
                 parameter '{WEIGHTS_PARAMETER}' of the model",
                missing.len(),
                named(&missing)
            )),
        };
    };
    let place = |e: String| format!("weights file '{}': {e}", file.display());
    let bytes = std::fs::read(file).map_err(|e| place(e.to_string()))?;
    let tensors = parse_weights(&bytes).map_err(place)?;
    for name in refitter.all()? {
        let text = name.to_string_lossy();
        if let Some(tensor) = tensors.iter().find(|tensor| tensor.name == text) {
            let bytes = bytes.get(tensor.bytes.clone()).ok_or_else(|| place("truncated".into()))?;
            refitter.set(&name, tensor, bytes).map_err(|e| place(format!("'{text}': {e}")))?;
        }
    }
    let missing = refitter.missing()?;
    if !missing.is_empty() {
        let text = format!("{} weights are not in it ({})", missing.len(), named(&missing));
        return Err(place(text));
    }
    refitter.refit().map_err(place)
}

fn named(names: &[CString]) -> String {
    let few: Vec<_> = names.iter().take(MAX_NAMED).map(|name| name.to_string_lossy()).collect();
    few.join(", ") + if names.len() > MAX_NAMED { ", …" } else { "" }
}

/// `IRefitter` of an engine.
struct Refitter<'a> {
    engine: &'a Engine,
    raw: Raw,
}

impl<'a> Refitter<'a> {
    fn new(engine: &'a Engine) -> Result<Self, String> {
        let raw = engine.library.create_refitter(engine.raw())?;
        Ok(Self { engine, raw })
    }

    /// # Safety
    /// The method has type `F`.
    unsafe fn method<F: Copy>(
        &self,
        method: crate::slots::Method,
        name: &str,
    ) -> Result<(F, Raw), String> {
        let slot = find_slot(method, name, self.engine.library.version)?;
        // SAFETY: by the caller's promise.
        unsafe {
            let object = vtable::api_implementation(self.raw);
            Ok((method_entry(object, slot), object))
        }
    }

    fn missing(&self) -> Result<Vec<CString>, String> {
        let method = self.engine.library.slots.refitter.get_missing_weights;
        self.names(method, "getMissingWeights")
    }

    fn all(&self) -> Result<Vec<CString>, String> {
        self.names(self.engine.library.slots.refitter.get_all_weights, "getAllWeights")
    }

    fn names(&self, method: crate::slots::Method, what: &str) -> Result<Vec<CString>, String> {
        type Get = unsafe extern "C" fn(Raw, i32, *mut *const c_char) -> i32;
        // SAFETY: the method has this type; it writes at most as many names as it is given room
        // for, valid as long as the refitter.
        unsafe {
            let (get, object) = self.method::<Get>(method, what)?;
            let count = get(object, 0, std::ptr::null_mut()).max(0);
            let mut names = vec![std::ptr::null::<c_char>(); count as usize];
            get(object, count, names.as_mut_ptr());
            let names = names.into_iter().filter(|name| !name.is_null());
            Ok(names.map(|name| CStr::from_ptr(name).to_owned()).collect())
        }
    }

    fn set(&self, name: &CStr, tensor: &WeightTensor, bytes: &[u8]) -> Result<(), String> {
        type Set = unsafe extern "C" fn(Raw, *const c_char, Weights) -> bool;
        let weights =
            Weights { kind: tensor.kind, values: bytes.as_ptr().cast(), count: tensor.count };
        logger::clear_errors();
        // SAFETY: the method has this type; the bytes are kept until the engine is refitted.
        let set = unsafe {
            let class = &self.engine.library.slots.refitter;
            let (set, object) = self.method::<Set>(class.set_named_weights, "setNamedWeights")?;
            set(object, name.as_ptr(), weights)
        };
        done(set)
    }

    fn refit(&self) -> Result<(), String> {
        logger::clear_errors();
        // SAFETY: the method has this type.
        let refitted = unsafe {
            let class = &self.engine.library.slots.refitter;
            type Refit = unsafe extern "C" fn(Raw) -> bool;
            let (refit, object) =
                self.method::<Refit>(class.refit_cuda_engine, "refitCudaEngine")?;
            refit(object)
        };
        done(refitted)
    }
}

impl Drop for Refitter<'_> {
    fn drop(&mut self) {
        // SAFETY: not used afterwards.
        unsafe { vtable::delete_api(self.raw) }
    }
}

fn done(succeeded: bool) -> Result<(), String> {
    if succeeded {
        return Ok(());
    }
    Err(logger::take_errors().unwrap_or_else(|| "TensorRT refused it without a reason".to_owned()))
}

/// One tensor of a safetensors file.
#[derive(Debug, PartialEq, Eq)]
struct WeightTensor {
    name: String,
    /// TensorRT's `DataType`.
    kind: i32,
    count: i64,
    /// Position in the file.
    bytes: Range<usize>,
}

/// The tensors of a safetensors file.
///
/// # Errors
/// The file is malformed, or a tensor has a type that TensorRT lacks.
fn parse_weights(file: &[u8]) -> Result<Vec<WeightTensor>, String> {
    let malformed = || "no safetensors file".to_owned();
    let (length, rest) = file.split_first_chunk::<8>().ok_or_else(malformed)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| malformed())?;
    let header = rest.get(..length).ok_or_else(malformed)?;
    let header: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(header).map_err(|e| format!("no safetensors file: {e}"))?;
    let data = 8 + length;
    let mut tensors = Vec::new();
    for (name, value) in header.into_iter().filter(|(name, _)| name != "__metadata__") {
        let place = |what: &str| format!("tensor '{name}' {what}");
        let kind = value["dtype"].as_str().unwrap_or_default();
        let (kind, size) = match kind {
            "F32" => (0, 4),
            "F16" => (1, 2),
            "I8" => (2, 1),
            "I32" => (3, 4),
            "BOOL" => (4, 1),
            "U8" => (5, 1),
            "F8_E4M3" => (6, 1),
            "BF16" => (7, 2),
            "I64" => (8, 8),
            other => return Err(place(&format!("has the type '{other}', which TensorRT lacks"))),
        };
        let shape = value["shape"].as_array().ok_or_else(|| place("has no shape"))?;
        let count = shape
            .iter()
            .try_fold(1usize, |n, dim| n.checked_mul(usize::try_from(dim.as_u64()?).ok()?));
        let offset = |at: usize| {
            let offset = value["data_offsets"].get(at)?.as_u64()?;
            usize::try_from(offset).ok()?.checked_add(data)
        };
        let (Some(count), Some(begin), Some(end)) = (count, offset(0), offset(1)) else {
            return Err(place("is malformed"));
        };
        if end < begin || end > file.len() || count.checked_mul(size) != Some(end - begin) {
            return Err(place("is not of the size of its shape, or the file is truncated"));
        }
        tensors.push(WeightTensor { name, kind, count: count as i64, bytes: begin..end });
    }
    Ok(tensors)
}

#[cfg(test)]
#[path = "refit_tests.rs"]
mod tests;
