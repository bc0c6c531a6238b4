//! A tensor of the library that frees itself.

use crate::library::OpenVino;
use crate::network::TensorPort;
use crate::symbols::{OvShape, OvTensor};
use std::ptr;
use std::sync::Arc;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::shape::MAX_RANK;
use trtserver_framework::types::shape_text;

pub struct Tensor {
    library: Arc<OpenVino>,
    raw: *mut OvTensor,
}

// SAFETY: a tensor is a shape and an address; any thread may use it, one at a time.
unsafe impl Send for Tensor {}

impl Tensor {
    /// # Safety
    /// `raw` is a tensor without another owner.
    pub unsafe fn from_raw(library: Arc<OpenVino>, raw: *mut OvTensor) -> Self {
        Self { library, raw }
    }

    /// A tensor over memory of the caller, without a copy.
    ///
    /// # Errors
    /// The library's.
    ///
    /// # Safety
    /// Memory of the type and shape at `data`, writable if it is an output, as long as the tensor or
    /// a request uses it.
    pub unsafe fn over(
        library: &Arc<OpenVino>,
        port: TensorPort,
        shape: &[i64],
        data: *mut u8,
    ) -> Result<Self, PluginFault> {
        // The library wants an address for no elements as well.
        let data = if data.is_null() { ptr::without_provenance_mut(64) } else { data };
        let mut dims = [0; MAX_RANK];
        let Some(own) = dims.get_mut(..shape.len()) else {
            return Err(PluginFault::internal(format!("shape {} is too long", shape_text(shape))));
        };
        own.copy_from_slice(shape);
        let rank = i64::try_from(shape.len()).unwrap_or(i64::MAX);
        let shape = OvShape { rank, dims: dims.as_mut_ptr() };
        let mut raw = ptr::null_mut();
        let create = library.table.tensor_over;
        // SAFETY: the caller's memory; the shape is copied during the call.
        let status = unsafe { create(port.element, shape, data.cast(), &raw mut raw) };
        library.outcome(status)?;
        Ok(Self { library: Arc::clone(library), raw })
    }

    pub fn as_ptr(&self) -> *const OvTensor {
        self.raw
    }

    /// The rank; the dimensions go into `buffer`.
    ///
    /// # Errors
    /// The library's, or too many dimensions.
    pub fn shape(&self, buffer: &mut [i64; MAX_RANK]) -> Result<usize, PluginFault> {
        let mut shape = OvShape { rank: 0, dims: ptr::null_mut() };
        let table = &self.library.table;
        // SAFETY: the tensor is alive; the shape is ours, and freed once.
        unsafe {
            self.library.outcome((table.tensor_shape)(self.raw, &raw mut shape))?;
            let rank = usize::try_from(shape.rank).unwrap_or(0);
            let fits = rank <= MAX_RANK;
            if fits && rank > 0 {
                ptr::copy_nonoverlapping(shape.dims, buffer.as_mut_ptr(), rank);
            }
            (table.shape_free)(&raw mut shape);
            match fits {
                true => Ok(rank),
                false => Err(PluginFault::unsupported(format!(
                    "a tensor of {rank} dimensions, more than the {MAX_RANK} supported"
                ))),
            }
        }
    }

    /// Gives a tensor in memory of the library another shape.
    ///
    /// # Errors
    /// The library's.
    pub fn set_shape(&mut self, shape: &mut [i64]) -> Result<(), PluginFault> {
        let rank = i64::try_from(shape.len()).unwrap_or(i64::MAX);
        let shape = OvShape { rank, dims: shape.as_mut_ptr() };
        // SAFETY: the tensor is alive; the shape is copied during the call.
        self.library.outcome(unsafe { (self.library.table.tensor_set_shape)(self.raw, shape) })
    }

    /// Address and size of the elements.
    ///
    /// # Errors
    /// The library's.
    pub fn data(&self) -> Result<(*const u8, usize), PluginFault> {
        let (mut data, mut bytes) = (ptr::null_mut(), 0);
        let table = &self.library.table;
        // SAFETY: the tensor is alive; the out pointers are ours.
        unsafe {
            self.library.outcome((table.tensor_bytes)(self.raw, &raw mut bytes))?;
            if bytes > 0 {
                self.library.outcome((table.tensor_data)(self.raw, &raw mut data))?;
            }
        }
        Ok((data.cast_const().cast(), bytes))
    }
}

impl Drop for Tensor {
    fn drop(&mut self) {
        // SAFETY: ours, and freed once.
        unsafe { (self.library.table.tensor_free)(self.raw) }
    }
}
