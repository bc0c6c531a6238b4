//! LightGBM through its C interface.
//!
//! Few rows go one by one through the interface for single rows, whose parameters are parsed once;
//! for more the call for a matrix costs less, though it parses them each time.

use crate::booster::{Rows, Task};
use crate::contents::find;
use crate::libraries::{OpenLibrary, on_log};
use crate::symbols::{LgbmBooster, LgbmFastConfig, LgbmTable};
use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr;
use std::sync::Arc;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::search::read_c_text;

type Library = Arc<OpenLibrary<LgbmTable>>;

/// With up to this many rows, each is predicted by itself.
const SINGLE_ROWS: usize = 16;

/// One thread, always: see `booster.rs`.
const PARAMETERS: &CStr = c"num_threads=1 verbosity=-1";

const FLOAT32: c_int = 0;
const FLOAT64: c_int = 1;
const ROW_MAJOR: c_int = 1;
const FIRST_ITERATION: c_int = 0;
const ALL_ITERATIONS: c_int = -1;

const TASKS: [Task; 3] = [Task::Scores, Task::Leaves, Task::Contributions];

/// LightGBM's number of a task.
fn predict_type(task: Task) -> c_int {
    match task {
        Task::Scores => 0,
        Task::Leaves => 2,
        Task::Contributions => 3,
    }
}

/// A model that LightGBM has read.
pub struct LgbmModel {
    library: Library,
    handle: *mut LgbmBooster,
    features: usize,
    /// By position in [`TASKS`].
    widths: [usize; 3],
}

// SAFETY: LightGBM's handles may be used and freed on any thread.
unsafe impl Send for LgbmModel {}
// SAFETY: the functions that are called with a shared reference take LightGBM's shared lock of the
// booster.
unsafe impl Sync for LgbmModel {}

/// The text without the sizes of its trees. With them, LightGBM reads trees with several threads,
/// and an error in one of them may end the process.
fn without_sizes(mut file: Vec<u8>) -> Vec<u8> {
    let header = find(&file, b"\n\n").unwrap_or(file.len());
    if let Some(at) = find(&file[..header], b"\ntree_sizes=") {
        let length = file[at + 1..].iter().position(|byte| *byte == b'\n').unwrap_or(0);
        file.drain(at..=at + length);
    }
    file
}

/// Turns the result of a function into the library's last error, which belongs to the thread.
fn outcome(table: &LgbmTable, result: c_int) -> Result<(), PluginFault> {
    if result == 0 {
        return Ok(());
    }
    // SAFETY: the library's message, valid until the thread's next call.
    let text = unsafe { read_c_text((table.last_error)()) };
    Err(PluginFault::invalid(format!("LightGBM: {}", text.trim())))
}

impl LgbmModel {
    /// # Errors
    /// LightGBM cannot read the file, or it holds no trees.
    pub fn open(library: Library, file: Vec<u8>) -> Result<Self, PluginFault> {
        let table = &library.table;
        let text = CString::new(without_sizes(file)).map_err(|_| {
            PluginFault::invalid("the file has a byte of zero, so it is not a text")
        })?;
        let (mut iterations, mut handle) = (0, ptr::null_mut());
        // SAFETY: a C string, and two variables of the function's types; the callback may be called
        // for ever.
        unsafe {
            (table.register_log)(on_log);
            outcome(table, (table.load)(text.as_ptr(), &raw mut iterations, &raw mut handle))?;
        }
        drop(text);
        let mut model = Self { library, handle, features: 0, widths: [0; 3] };
        if iterations == 0 {
            return Err(PluginFault::invalid("the model has no trees"));
        }
        let mut features = 0;
        // SAFETY: an open handle and a variable of the function's type.
        let result = unsafe { (model.library.table.num_feature)(handle, &raw mut features) };
        outcome(&model.library.table, result)?;
        model.features = usize::try_from(features).unwrap_or(0);
        for (width, task) in model.widths.iter_mut().zip(TASKS) {
            let (mut length, kind) = (0, predict_type(task));
            // SAFETY: an open handle and a variable of the function's type.
            let result = unsafe {
                let all = (FIRST_ITERATION, ALL_ITERATIONS);
                (model.library.table.num_predict)(handle, 1, kind, all.0, all.1, &raw mut length)
            };
            outcome(&model.library.table, result)?;
            *width = usize::try_from(length).unwrap_or(0);
        }
        Ok(model)
    }

    pub fn features(&self) -> usize {
        self.features
    }

    pub fn width(&self, task: Task) -> usize {
        TASKS.iter().position(|own| *own == task).map_or(0, |at| self.widths[at])
    }

    /// # Errors
    /// LightGBM's.
    pub fn predictor(&self, tasks: &[Task]) -> Result<LgbmPredictor, PluginFault> {
        // SAFETY: the callback may be called for ever.
        unsafe { (self.library.table.register_log)(on_log) };
        let mut predictor = LgbmPredictor {
            library: Arc::clone(&self.library),
            fast: [[ptr::null_mut(); 2]; 3],
            values: Vec::new(),
        };
        for (by_type, task) in predictor.fast.iter_mut().zip(TASKS) {
            if !tasks.contains(&task) {
                continue;
            }
            for (config, data_type) in by_type.iter_mut().zip([FLOAT32, FLOAT64]) {
                let columns = i32::try_from(self.features).unwrap_or(i32::MAX);
                // SAFETY: an open handle, a C string, and a variable of the function's type.
                let result = unsafe {
                    (self.library.table.fast_init)(
                        self.handle,
                        predict_type(task),
                        FIRST_ITERATION,
                        ALL_ITERATIONS,
                        data_type,
                        columns,
                        PARAMETERS.as_ptr(),
                        config,
                    )
                };
                outcome(&self.library.table, result)?;
            }
        }
        Ok(predictor)
    }

    /// The values of whole rows.
    ///
    /// # Errors
    /// LightGBM's.
    pub fn predict<'a>(
        &self,
        own: &'a mut LgbmPredictor,
        task: Task,
        rows: Rows<'_>,
    ) -> Result<&'a [f64], PluginFault> {
        let (data, data_type, element) = match rows {
            Rows::F32(all) => (all.as_ptr().cast::<u8>(), FLOAT32, size_of::<f32>()),
            Rows::F64(all) => (all.as_ptr().cast::<u8>(), FLOAT64, size_of::<f64>()),
        };
        let width = self.width(task);
        let count = rows.len() / self.features.max(1);
        if count == 0 || width == 0 || count * self.features != rows.len() {
            return Err(PluginFault::internal(format!(
                "{} elements are not rows of {} features",
                rows.len(),
                self.features
            )));
        }
        own.values.clear();
        own.values.resize(count * width, 0.0);
        let at = TASKS.iter().position(|task_of| *task_of == task).unwrap_or(0);
        let fast = own.fast[at][usize::from(data_type == FLOAT64)];
        let mut length = 0;
        if count <= SINGLE_ROWS && !fast.is_null() {
            for (row, values) in own.values.chunks_exact_mut(width).enumerate() {
                // SAFETY: the configuration was made for this booster, type, task and number of
                // features, and is used by one thread at a time; the row lies within the input, and
                // the block holds what a row yields.
                let result = unsafe {
                    let from = data.add(row * self.features * element).cast::<c_void>();
                    (self.library.table.fast_predict)(
                        fast,
                        from,
                        &raw mut length,
                        values.as_mut_ptr(),
                    )
                };
                outcome(&self.library.table, result)?;
                expect_length(length, width)?;
            }
            return Ok(&own.values);
        }
        // SAFETY: the data are `count` rows of the booster's features, and the block holds what they
        // yield.
        let result = unsafe {
            (self.library.table.predict)(
                self.handle,
                data.cast(),
                data_type,
                i32::try_from(count).unwrap_or(i32::MAX),
                i32::try_from(self.features).unwrap_or(i32::MAX),
                ROW_MAJOR,
                predict_type(task),
                FIRST_ITERATION,
                ALL_ITERATIONS,
                PARAMETERS.as_ptr(),
                &raw mut length,
                own.values.as_mut_ptr(),
            )
        };
        outcome(&self.library.table, result)?;
        expect_length(length, count * width)?;
        Ok(&own.values)
    }
}

fn expect_length(found: i64, expected: usize) -> Result<(), PluginFault> {
    match usize::try_from(found) == Ok(expected) {
        true => Ok(()),
        false => Err(PluginFault::internal(format!(
            "LightGBM returned {found} values, expected {expected}"
        ))),
    }
}

impl Drop for LgbmModel {
    fn drop(&mut self) {
        // SAFETY: an open handle, not used afterwards. Predictors hold a pointer to the booster and
        // are dropped before it: the instances of a model are closed before the model.
        unsafe { (self.library.table.free)(self.handle) };
    }
}

/// What one thread at a time uses.
pub struct LgbmPredictor {
    library: Library,
    /// By position in [`TASKS`], for rows of FP32 and FP64; null for tasks that were not asked for.
    fast: [[*mut LgbmFastConfig; 2]; 3],
    values: Vec<f64>,
}

// SAFETY: the configurations are used by one thread at a time, which may be any.
unsafe impl Send for LgbmPredictor {}

impl Drop for LgbmPredictor {
    fn drop(&mut self) {
        for config in self.fast.iter().flatten().filter(|config| !config.is_null()) {
            // SAFETY: made by this library, and not used afterwards.
            unsafe { (self.library.table.fast_free)(*config) };
        }
    }
}

#[cfg(test)]
#[path = "lightgbm_tests.rs"]
mod tests;
