//! A TensorFlow tensor that frees itself: over memory of the host, or TensorFlow's own.

use crate::api::{Free, TfTensor};
use crate::runtime::TensorFlowRuntime;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::shape::MAX_RANK;

/// Counts the uses of borrowed memory: TensorFlow may keep a reference to a tensor's memory beyond
/// the tensor, as a variable does to which the tensor was assigned.
#[derive(Clone, Default)]
pub struct Borrow(Arc<()>);

impl Borrow {
    /// Whether TensorFlow holds no reference to borrowed memory.
    pub fn is_over(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

pub struct OwnedTensor {
    raw: NonNull<TfTensor>,
    runtime: &'static TensorFlowRuntime,
}

// SAFETY: a tensor is plain memory with a shape; TensorFlow allows using it on any thread.
unsafe impl Send for OwnedTensor {}

impl OwnedTensor {
    /// Takes ownership of a tensor that TensorFlow allocated.
    ///
    /// # Safety
    /// `raw` is null or a tensor that has no other owner.
    pub unsafe fn from_raw(
        runtime: &'static TensorFlowRuntime,
        raw: *mut TfTensor,
    ) -> Result<Self, PluginFault> {
        let raw = NonNull::new(raw)
            .ok_or_else(|| PluginFault::internal("TensorFlow reported success without a tensor"))?;
        Ok(Self { raw, runtime })
    }

    /// A tensor over memory of the caller. TensorFlow uses it in place if its address is a multiple
    /// of 64, as that of each input of 64 KiB and more is; otherwise it copies it.
    ///
    /// # Safety
    /// `bytes` at `data` stay valid and unchanged while `borrow` has other uses.
    pub unsafe fn over(
        runtime: &'static TensorFlowRuntime,
        data_type: i32,
        shape: &[i64],
        data: *const u8,
        bytes: usize,
        borrow: &Borrow,
    ) -> Result<Self, PluginFault> {
        let argument = Arc::into_raw(borrow.0.clone()).cast_mut().cast();
        // SAFETY: memory as the caller promises; the shape is copied. The argument is released
        // once, by `end_borrow`, also when the memory was copied.
        unsafe {
            Self::new(runtime, data_type, shape, data.cast_mut(), bytes, end_borrow, argument)
        }
    }

    /// A tensor over a copy.
    pub fn copy_from(
        runtime: &'static TensorFlowRuntime,
        data_type: i32,
        shape: &[i64],
        bytes: &[u8],
    ) -> Result<Self, PluginFault> {
        let (dims, rank) = (shape.as_ptr(), shape.len() as i32);
        // SAFETY: the shape is copied; the new tensor has as many bytes as requested.
        unsafe {
            let raw = (runtime.api.allocate_tensor)(data_type, dims, rank, bytes.len());
            let tensor = Self::from_raw(runtime, raw)?;
            if !bytes.is_empty() {
                tensor.data().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            }
            Ok(tensor)
        }
    }

    /// # Safety
    /// The memory stays valid until `free` is called with `argument`.
    pub unsafe fn new(
        runtime: &'static TensorFlowRuntime,
        data_type: i32,
        shape: &[i64],
        data: *mut u8,
        bytes: usize,
        free: Free,
        argument: *mut c_void,
    ) -> Result<Self, PluginFault> {
        let (dims, rank) = (shape.as_ptr(), shape.len() as i32);
        // SAFETY: the caller's promise; the shape is copied.
        unsafe {
            let new = runtime.api.new_tensor;
            Self::from_raw(runtime, new(data_type, dims, rank, data.cast(), bytes, free, argument))
        }
    }

    pub fn as_ptr(&self) -> *mut TfTensor {
        self.raw.as_ptr()
    }

    pub fn data(&self) -> *mut u8 {
        // SAFETY: the tensor is alive.
        unsafe { (self.runtime.api.tensor_data)(self.as_ptr()) }.cast()
    }

    pub fn byte_size(&self) -> usize {
        // SAFETY: the tensor is alive.
        unsafe { (self.runtime.api.tensor_byte_size)(self.as_ptr()) }
    }

    /// TensorFlow's number of the element type, and the shape, which is written into `shape`;
    /// returns the rank.
    pub fn describe(&self, shape: &mut [i64; MAX_RANK]) -> Result<(i32, usize), PluginFault> {
        let (api, raw) = (&self.runtime.api, self.as_ptr());
        // SAFETY: the tensor is alive, and dimensions are below its rank.
        unsafe {
            let rank = (api.num_dims)(raw);
            let Some(to) = usize::try_from(rank).ok().and_then(|rank| shape.get_mut(..rank)) else {
                return Err(PluginFault::unsupported(format!(
                    "a tensor of {rank} dimensions, more than the {MAX_RANK} supported"
                )));
            };
            for (at, dim) in to.iter_mut().enumerate() {
                *dim = (api.dim)(raw, at as i32);
            }
            Ok(((api.tensor_type)(raw), to.len()))
        }
    }

    /// Gives up ownership: the tensor, and the function that frees it, on any thread.
    pub fn into_raw(self) -> (*mut u8, unsafe extern "C" fn(*mut u8)) {
        let raw = self.as_ptr().cast();
        // SAFETY: the two types differ only in what a pointer points to.
        let release = unsafe {
            std::mem::transmute::<unsafe extern "C" fn(*mut TfTensor), unsafe extern "C" fn(*mut u8)>(
                self.runtime.api.delete_tensor,
            )
        };
        std::mem::forget(self);
        (raw, release)
    }
}

impl Drop for OwnedTensor {
    fn drop(&mut self) {
        // SAFETY: the tensor is ours and this is the only release.
        unsafe { (self.runtime.api.delete_tensor)(self.as_ptr()) }
    }
}

unsafe extern "C" fn end_borrow(_: *mut c_void, _: usize, argument: *mut c_void) {
    // SAFETY: the argument of `OwnedTensor::over`, whose only release this is.
    drop(unsafe { Arc::from_raw(argument.cast::<()>()) });
}
