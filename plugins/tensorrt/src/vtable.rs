//! Calls through virtual tables of a C++ library, and the values that cross: `Dims`, `Weights`,
//! `InterfaceInfo`.

use crate::slots::{Method, Version, object};
use std::ffi::{c_char, c_void};
use std::fmt;

pub type Raw = *mut c_void;

/// Dimensions of `Dims`, `Dims::MAX_DIMS`.
pub const MAX_DIMS: usize = 8;

/// `Dims` of major 8.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Dims32 {
    pub n: i32,
    pub d: [i32; MAX_DIMS],
}

/// `Dims` since major 10.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Dims64 {
    pub n: i32,
    pub d: [i64; MAX_DIMS],
}

/// `Weights`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Weights {
    pub kind: i32,
    pub values: *const c_void,
    pub count: i64,
}

/// `InterfaceInfo`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct InterfaceInfo {
    pub kind: *const c_char,
    pub major: i32,
    pub minor: i32,
}

/// A shape of at most eight dimensions.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct TensorShape {
    rank: usize,
    dims: [i64; MAX_DIMS],
}

impl TensorShape {
    /// `None` with more than eight dimensions.
    pub fn new(dims: &[i64]) -> Option<TensorShape> {
        let mut shape = TensorShape { rank: dims.len(), dims: [0; MAX_DIMS] };
        shape.dims.get_mut(..dims.len())?.copy_from_slice(dims);
        Some(shape)
    }

    pub fn dims(&self) -> &[i64] {
        &self.dims[..self.rank]
    }

    /// With `rows` as batch dimension, if the model has one.
    pub fn with_rows(mut self, rows: Option<usize>) -> TensorShape {
        if let (Some(rows), Some(first)) = (rows, self.dims[..self.rank].first_mut()) {
            *first = rows as i64;
        }
        self
    }
}

impl fmt::Debug for TensorShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.dims()).finish()
    }
}

impl From<Dims32> for Option<TensorShape> {
    /// `None`: TensorRT's invalid dimensions, a count of -1.
    fn from(dims: Dims32) -> Option<TensorShape> {
        let n = usize::try_from(dims.n).ok().filter(|n| *n <= MAX_DIMS)?;
        Some(TensorShape { rank: n, dims: dims.d.map(i64::from) })
    }
}

impl From<Dims64> for Option<TensorShape> {
    fn from(dims: Dims64) -> Option<TensorShape> {
        let n = usize::try_from(dims.n).ok().filter(|n| *n <= MAX_DIMS)?;
        Some(TensorShape { rank: n, dims: dims.d })
    }
}

impl TensorShape {
    /// `None`: a dimension exceeds 32 bits.
    pub fn to_32(self) -> Option<Dims32> {
        let mut d = [0; MAX_DIMS];
        for (to, from) in d.iter_mut().zip(self.dims()) {
            *to = i32::try_from(*from).ok()?;
        }
        Some(Dims32 { n: self.rank as i32, d })
    }

    pub fn to_64(self) -> Dims64 {
        Dims64 { n: self.rank as i32, d: self.dims }
    }
}

/// Entry `slot` of the virtual table of an object, as a function of type `F`.
///
/// # Safety
/// `object` is a C++ object whose table has that entry, a function of type `F`.
pub unsafe fn method_entry<F: Copy>(object: Raw, slot: usize) -> F {
    const { assert!(size_of::<F>() == size_of::<*const ()>()) };
    // SAFETY: by the caller's promise the table has the entry.
    unsafe {
        let table = *object.cast::<*const *const ()>();
        std::mem::transmute_copy(&*table.add(slot))
    }
}

/// The object that `mImpl` of an object of the API points to: what methods are called on.
///
/// # Safety
/// `api` is an object of the API.
pub unsafe fn api_implementation(api: Raw) -> Raw {
    // SAFETY: by the caller's promise.
    unsafe { *api.byte_add(object::IMPL_OFFSET).cast::<Raw>() }
}

/// Deletes an object of the API.
///
/// # Safety
/// `api` is an object of the API, not used afterwards.
pub unsafe fn delete_api(api: Raw) {
    // SAFETY: by the caller's promise; the deleting destructor takes the object alone.
    unsafe { method_entry::<unsafe extern "C" fn(Raw)>(api, object::DELETE)(api) }
}

/// The slot of a method, or its name and the version of the library that lacks it.
///
/// # Errors
/// The library has no such method.
pub fn find_slot(method: Method, name: &str, version: Version) -> Result<usize, String> {
    method.slot(version).ok_or_else(|| format!("TensorRT {version} has no function {name}"))
}

/// A virtual table of an object that the plugin implements. Made once per library, and never freed.
pub struct MethodTable(Box<[*const ()]>);

// SAFETY: constant addresses of functions.
unsafe impl Send for MethodTable {}
// SAFETY: the table never changes once it is made, so threads only read it.
unsafe impl Sync for MethodTable {}

impl MethodTable {
    /// `entries` by slot; the other slots do nothing and return 0.
    pub fn new(entries: &[(Option<usize>, *const ())]) -> &'static MethodTable {
        let known = || entries.iter().filter_map(|(slot, f)| Some(((*slot)?, *f)));
        // Two more than the last, for destructors behind it.
        let len = known().map(|(slot, _)| slot + 3).max().unwrap_or(0);
        let mut table = vec![nothing as *const (); len].into_boxed_slice();
        for (slot, function) in known() {
            table[slot] = function;
        }
        Box::leak(Box::new(MethodTable(table)))
    }

    /// What the first word of an object with this table holds.
    pub fn pointer(&'static self) -> *const *const () {
        self.0.as_ptr()
    }
}

unsafe extern "C" fn nothing(_this: Raw) -> usize {
    0
}

#[cfg(test)]
#[path = "vtable_tests.rs"]
mod tests;
