//! A tensor of torch that frees itself.

use crate::library::TorchLibrary;
use crate::symbols::AtenTensor;
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use trtserver_framework::fault::PluginFault;
use trtserver_framework::shape::MAX_RANK;

pub struct OwnedTensor<'a> {
    raw: NonNull<AtenTensor>,
    torch: &'a TorchLibrary,
}

impl<'a> OwnedTensor<'a> {
    /// Takes ownership of a tensor.
    ///
    /// # Safety
    /// `raw` is null or a tensor that has no other owner.
    pub unsafe fn from_raw(
        torch: &'a TorchLibrary,
        raw: *mut AtenTensor,
    ) -> Result<Self, PluginFault> {
        let raw = NonNull::new(raw)
            .ok_or_else(|| PluginFault::internal("torch reported success without a tensor"))?;
        Ok(Self { raw, torch })
    }

    /// A contiguous tensor over memory of the caller, in the CPU's memory.
    ///
    /// # Safety
    /// So many elements of the type at `data` stay valid as long as torch has the tensor.
    pub unsafe fn over(
        torch: &'a TorchLibrary,
        dtype: i32,
        shape: &[i64],
        data: *const u8,
    ) -> Result<Self, PluginFault> {
        let mut strides = [1i64; MAX_RANK];
        let mut stride = 1i64;
        for (to, size) in strides[..shape.len()].iter_mut().zip(shape).rev() {
            *to = stride;
            // As torch does: a stride is at least 1.
            stride = stride.saturating_mul((*size).max(1));
        }
        // Torch refuses a tensor without an address, also one without elements.
        let data = if data.is_null() {
            NonNull::<u128>::dangling().as_ptr().cast::<u8>()
        } else {
            data.cast_mut()
        };
        let mut raw = ptr::null_mut();
        // SAFETY: the sizes and strides are copied; the memory is the caller's promise.
        let code = unsafe {
            (torch.api.from_blob)(
                data.cast::<c_void>(),
                shape.len() as i64,
                shape.as_ptr(),
                strides.as_ptr(),
                0,
                dtype,
                torch.cpu,
                0,
                &raw mut raw,
            )
        };
        expect_success(code, "aoti_torch_create_tensor_from_blob")?;
        // SAFETY: a new tensor.
        unsafe { Self::from_raw(torch, raw) }
    }

    pub fn as_ptr(&self) -> *mut AtenTensor {
        self.raw.as_ptr()
    }

    /// Gives up ownership.
    pub fn into_raw(self) -> *mut AtenTensor {
        let raw = self.as_ptr();
        std::mem::forget(self);
        raw
    }

    /// Torch's number of the element type, and the shape, which is written into `shape`; returns
    /// the rank.
    ///
    /// # Errors
    /// The tensor is not a dense one in the CPU's memory.
    pub fn describe(&self, shape: &mut [i64; MAX_RANK]) -> Result<(i32, usize), PluginFault> {
        let (api, raw) = (&self.torch.api, self.as_ptr());
        let (mut layout, mut device, mut dtype, mut rank) = (0, 0, 0, 0i64);
        let mut sizes = ptr::null_mut();
        // SAFETY: the tensor is alive, and the results are variables of the functions' types; a
        // sparse tensor has no strides, so its layout is asked first.
        unsafe {
            expect_success((api.layout)(raw, &raw mut layout), "aoti_torch_get_layout")?;
            if layout != (api.layout_strided)() {
                return Err(PluginFault::unsupported(format!(
                    "a tensor of layout {layout}, expected a dense one"
                )));
            }
            expect_success((api.device_type)(raw, &raw mut device), "aoti_torch_get_device_type")?;
            expect_success((api.dtype)(raw, &raw mut dtype), "aoti_torch_get_dtype")?;
            expect_success((api.rank)(raw, &raw mut rank), "aoti_torch_get_dim")?;
            expect_success((api.sizes)(raw, &raw mut sizes), "aoti_torch_get_sizes")?;
        }
        if device != self.torch.cpu {
            return Err(PluginFault::unsupported(format!(
                "a tensor on a device of type {device}, expected the CPU's memory"
            )));
        }
        let Some(to) = usize::try_from(rank).ok().and_then(|rank| shape.get_mut(..rank)) else {
            return Err(PluginFault::unsupported(format!(
                "a tensor of {rank} dimensions, more than the {MAX_RANK} supported"
            )));
        };
        if !to.is_empty() {
            // SAFETY: the tensor has as many sizes as dimensions, which live as long as it.
            to.copy_from_slice(unsafe { std::slice::from_raw_parts(sizes, to.len()) });
        }
        Ok((dtype, to.len()))
    }

    /// Copies the elements to a block, in the order of the shape.
    ///
    /// # Safety
    /// `to` has `bytes` bytes, as many as the elements, and no other user.
    pub unsafe fn copy_to(
        &self,
        dtype: i32,
        shape: &[i64],
        to: *mut u8,
        bytes: usize,
    ) -> Result<(), PluginFault> {
        if bytes == 0 {
            return Ok(());
        }
        let (api, mut contiguous) = (&self.torch.api, false);
        // SAFETY: the tensor is alive.
        let code = unsafe { (api.is_contiguous)(self.as_ptr(), &raw mut contiguous) };
        expect_success(code, "aoti_torch_is_contiguous")?;
        if contiguous {
            let mut data = ptr::null_mut();
            // SAFETY: a contiguous tensor has its elements at its data, whose number the caller
            // knows; the block is the caller's, and no tensor of torch lies in it.
            unsafe {
                expect_success(
                    (api.data)(self.as_ptr(), &raw mut data),
                    "aoti_torch_get_data_ptr",
                )?;
                ptr::copy_nonoverlapping(data.cast::<u8>().cast_const(), to, bytes);
            }
            return Ok(());
        }
        // SAFETY: the block has as many bytes; the tensor over it ends before this returns.
        unsafe {
            let target = OwnedTensor::over(self.torch, dtype, shape, to)?;
            expect_success((api.copy)(target.as_ptr(), self.as_ptr(), 0), "aoti_torch_copy_")
        }
    }
}

impl Drop for OwnedTensor<'_> {
    fn drop(&mut self) {
        // SAFETY: this is the only owner.
        unsafe { (self.torch.api.delete)(self.as_ptr()) };
    }
}

/// # Errors
/// Names the function of torch that failed.
pub fn expect_success(code: i32, function: &str) -> Result<(), PluginFault> {
    match code {
        0 => Ok(()),
        code => Err(PluginFault::internal(format!(
            "{function} failed with code {code}; torch wrote the reason to the standard error of the server"
        ))),
    }
}
