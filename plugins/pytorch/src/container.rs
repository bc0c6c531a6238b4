//! A compiled model: created once for all instances of a version.

use crate::extracted::ExtractedModel;
use crate::library::TorchLibrary;
use crate::package::Package;
use crate::symbols::{AotiContainer, AtenTensor};
use crate::tensor::expect_success;
use std::ffi::{c_char, c_int};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::search::read_c_text;

pub struct CompiledModel {
    // Fields are dropped in this order, after `drop` has deleted the container.
    raw: NonNull<AotiContainer>,
    extracted: ExtractedModel,
    pub torch: Arc<TorchLibrary>,
    pub n_inputs: usize,
    pub n_outputs: usize,
    /// How torch describes the call: inputs, outputs.
    pub call_spec: [String; 2],
}

// SAFETY: a container runs its models one at a time each, and hands them to callers under its own
// lock; nothing in it belongs to a thread.
unsafe impl Send for CompiledModel {}
// SAFETY: as above; its functions other than `run` only read.
unsafe impl Sync for CompiledModel {}

impl CompiledModel {
    /// `runs`: how many may be under way at the same time.
    ///
    /// # Errors
    /// Goes on after the package's name and a colon.
    pub fn open(
        torch: Arc<TorchLibrary>,
        package: &mut Package,
        runs: usize,
    ) -> Result<Self, String> {
        let mut extracted = ExtractedModel::open(package)?;
        let mut raw = ptr::null_mut();
        // SAFETY: the texts live during the call; a model for the CPU has no directory of GPU code.
        let code = unsafe {
            (extracted.table.create)(&raw mut raw, runs.max(1), c"cpu".as_ptr(), ptr::null())
        };
        extracted.remove_file();
        let created = expect_success(code, "AOTInductorModelContainerCreateWithDevice");
        let raw = created.map_err(|fault| fault.text).and_then(|()| {
            NonNull::new(raw).ok_or_else(|| "torch reported success without a model".to_owned())
        })?;
        let mut model = Self {
            raw,
            extracted,
            torch,
            n_inputs: 0,
            n_outputs: 0,
            call_spec: Default::default(),
        };
        model.read_description().map_err(|fault| fault.text)?;
        Ok(model)
    }

    fn read_description(&mut self) -> Result<(), PluginFault> {
        let (table, raw) = (&self.extracted.table, self.raw.as_ptr());
        let (mut inputs, mut outputs): (usize, usize) = (0, 0);
        let (mut in_spec, mut out_spec): (*const c_char, *const c_char) =
            (ptr::null(), ptr::null());
        // SAFETY: the container is alive, and the results are variables of the functions' types;
        // the texts belong to the container.
        unsafe {
            let code = (table.num_inputs)(raw, &raw mut inputs);
            expect_success(code, "AOTInductorModelContainerGetNumInputs")?;
            let code = (table.num_outputs)(raw, &raw mut outputs);
            expect_success(code, "AOTInductorModelContainerGetNumOutputs")?;
            let code = (table.call_spec)(raw, &raw mut in_spec, &raw mut out_spec);
            expect_success(code, "AOTInductorModelContainerGetCallSpec")?;
            self.call_spec = [read_c_text(in_spec), read_c_text(out_spec)];
        }
        (self.n_inputs, self.n_outputs) = (inputs, outputs);
        Ok(())
    }

    /// Runs the model with all its inputs in their order, on at most so many threads. The call takes
    /// the inputs; the outputs become the caller's.
    ///
    /// # Errors
    /// The run failed.
    ///
    /// # Safety
    /// Each input is a tensor that has no other owner.
    pub unsafe fn run(
        &self,
        inputs: &mut [*mut AtenTensor],
        outputs: &mut Vec<*mut AtenTensor>,
        threads: usize,
    ) -> Result<(), PluginFault> {
        self.limit_threads(threads);
        outputs.clear();
        outputs.resize(self.n_outputs, ptr::null_mut());
        // SAFETY: as many inputs as the caller has, which the model compares with its own number,
        // and space for as many outputs as it has; there is no stream on the CPU, and the package
        // needs no executor of operators.
        let code = unsafe {
            (self.extracted.table.run)(
                self.raw.as_ptr(),
                inputs.as_mut_ptr(),
                inputs.len(),
                outputs.as_mut_ptr(),
                outputs.len(),
                ptr::null_mut(),
                ptr::null_mut(),
            )
        };
        // The inputs are gone, also after a failure.
        inputs.fill(ptr::null_mut());
        expect_success(code, "AOTInductorModelContainerRun")
    }

    /// OpenMP keeps the number for each thread that starts a run, and any thread may.
    fn limit_threads(&self, threads: usize) {
        if let Some(set_threads) = self.torch.set_threads {
            let threads = c_int::try_from(threads.max(1)).unwrap_or(c_int::MAX);
            // SAFETY: sets a number of the calling thread.
            unsafe { set_threads(threads) };
        }
    }
}

impl Drop for CompiledModel {
    fn drop(&mut self) {
        // SAFETY: no run is under way: each borrows the model. The library is closed afterwards.
        unsafe { (self.extracted.table.delete)(self.raw.as_ptr()) };
    }
}
