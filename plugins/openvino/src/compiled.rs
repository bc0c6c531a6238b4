//! A network on a device, and its runs.

use crate::library::OpenVino;
use crate::network::Network;
use crate::options::MAX_PROPERTIES;
use crate::symbols::{OvCompiled, OvRequest};
use crate::tensor::Tensor;
use std::ffi::{CString, c_char};
use std::ptr;
use std::sync::Arc;
use trtserver_framework::fault::PluginFault;

/// A network that a device can run.
pub struct Compiled {
    library: Arc<OpenVino>,
    raw: *mut OvCompiled,
}

// SAFETY: a compiled network does not change; the library runs it on any thread.
unsafe impl Send for Compiled {}
// SAFETY: as above.
unsafe impl Sync for Compiled {}

impl Compiled {
    /// # Errors
    /// The library's: a property that the device refuses, an operation that it lacks.
    pub fn new(
        network: &Network,
        device: &str,
        properties: &[(&'static str, String)],
    ) -> Result<Self, PluginFault> {
        let library = &network.library;
        let text = |text: &str| {
            CString::new(text).map_err(|_| PluginFault::invalid(format!("'{text}' has a NUL byte")))
        };
        let device = text(device)?;
        let given = properties.iter().take(MAX_PROPERTIES);
        let texts = given.flat_map(|(key, value)| [text(key), text(value)]);
        let texts: Vec<CString> = texts.collect::<Result<_, _>>()?;
        let mut all = [ptr::null::<c_char>(); 2 * MAX_PROPERTIES];
        for (to, text) in all.iter_mut().zip(&texts) {
            *to = text.as_ptr();
        }
        let mut raw = ptr::null_mut();
        // Arguments beyond their number are not looked at.
        macro_rules! compile {
            ($($at:literal)*) => {
                (library.compile)(
                    library.core, network.raw, device.as_ptr(), texts.len(), &raw mut raw, $(all[$at]),*
                )
            };
        }
        // SAFETY: core and network are alive; as many C strings follow as the number says, and
        // null pointers after them.
        let status = unsafe {
            compile!(
                0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33
                34 35
            )
        };
        library.outcome(status)?;
        Ok(Self { library: Arc::clone(library), raw })
    }

    /// A property of the compiled network, for the log.
    pub fn property(&self, key: &std::ffi::CStr) -> Option<String> {
        let mut value = ptr::null_mut();
        // SAFETY: the network is alive, the text becomes ours.
        unsafe {
            match (self.library.table.property)(self.raw, key.as_ptr(), &raw mut value) {
                0 => Some(self.library.take_text(value)),
                _ => None,
            }
        }
    }
}

impl Drop for Compiled {
    fn drop(&mut self) {
        // SAFETY: ours, and freed once; requests hold the network by themselves.
        unsafe { (self.library.table.compiled_free)(self.raw) }
    }
}

/// Runs a compiled network, one run at a time.
pub struct Run {
    library: Arc<OpenVino>,
    raw: *mut OvRequest,
}

// SAFETY: a request is used by one thread at a time, and any may be that.
unsafe impl Send for Run {}

impl Run {
    /// # Errors
    /// The library's.
    pub fn new(compiled: &Compiled) -> Result<Self, PluginFault> {
        let library = Arc::clone(&compiled.library);
        let mut raw = ptr::null_mut();
        // SAFETY: the compiled network is alive; the out pointer is ours.
        let status = unsafe { (library.table.request_create)(compiled.raw, &raw mut raw) };
        library.outcome(status)?;
        Ok(Self { library, raw })
    }

    pub fn library(&self) -> &Arc<OpenVino> {
        &self.library
    }

    /// Uses a tensor as an input, until another one is set.
    ///
    /// # Errors
    /// The library's: another type or shape than the model's.
    ///
    /// # Safety
    /// The tensor's memory is valid in all runs before another one is set.
    pub unsafe fn set_input(&mut self, index: usize, tensor: &Tensor) -> Result<(), PluginFault> {
        // SAFETY: both are alive; the request holds the tensor, and the caller its memory.
        self.library
            .outcome(unsafe { (self.library.table.set_input)(self.raw, index, tensor.as_ptr()) })
    }

    /// Writes an output into a tensor, until another one is set.
    ///
    /// # Errors
    /// As [`Run::set_input`].
    ///
    /// # Safety
    /// As [`Run::set_input`]; no other code uses the memory during a run.
    pub unsafe fn set_output(&mut self, index: usize, tensor: &Tensor) -> Result<(), PluginFault> {
        // SAFETY: as above.
        self.library
            .outcome(unsafe { (self.library.table.set_output)(self.raw, index, tensor.as_ptr()) })
    }

    /// The tensor of an output. It shares its memory with the request, and is valid until the next
    /// run.
    ///
    /// # Errors
    /// The library's.
    pub fn output(&self, index: usize) -> Result<Tensor, PluginFault> {
        let mut raw = ptr::null_mut();
        // SAFETY: the request is alive; the tensor becomes ours.
        let status = unsafe { (self.library.table.output)(self.raw, index, &raw mut raw) };
        self.library.outcome(status)?;
        // SAFETY: it has no other owner.
        Ok(unsafe { Tensor::from_raw(Arc::clone(&self.library), raw) })
    }

    /// # Errors
    /// The library's.
    pub fn execute(&mut self) -> Result<(), PluginFault> {
        // SAFETY: the request is alive; `set_input` and `set_output` ask for valid memory.
        self.library.outcome(unsafe { (self.library.table.infer)(self.raw) })
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // SAFETY: ours, and freed once.
        unsafe { (self.library.table.request_free)(self.raw) }
    }
}
