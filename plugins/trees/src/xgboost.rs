//! XGBoost through its C interface.
//!
//! Scores are predicted in place, without a matrix of XGBoost's own; leaves and contributions need
//! one.

use crate::booster::{Rows, Task};
use crate::libraries::{OpenLibrary, on_log};
use crate::symbols::{XgbBooster, XgbMatrix, XgbTable};
use serde_json::Value;
use std::ffi::{CStr, CString, c_int};
use std::ptr;
use std::sync::Arc;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::search::read_c_text;

type Library = Arc<OpenLibrary<XgbTable>>;

/// For a matrix: what counts as missing.
const MATRIX: &CStr = c"{\"missing\":NaN,\"nthread\":1}";

/// More are a sign of a damaged file.
const MAX_FEATURES: usize = 1 << 24;

/// A model that XGBoost has read.
pub struct XgbModel {
    library: Library,
    handle: *mut XgbBooster,
    features: usize,
    scores: usize,
    leaves: usize,
    contributions: usize,
    scores_are_classes: bool,
}

// SAFETY: XGBoost's handles may be used and freed on any thread.
unsafe impl Send for XgbModel {}
// SAFETY: predictions of boosters of trees are documented as safe for threads; what they configure
// on first use is configured by `XgbModel::open`.
unsafe impl Sync for XgbModel {}

/// Turns the result of a function into the library's last error, which belongs to the thread.
fn outcome(table: &XgbTable, result: c_int) -> Result<(), PluginFault> {
    if result == 0 {
        return Ok(());
    }
    // SAFETY: the library's message, valid until the thread's next call.
    let text = unsafe { read_c_text((table.last_error)()) };
    Err(PluginFault::invalid(format!("XGBoost: {}", shorten_message(&text))))
}

/// A message without the time, the file of XGBoost's sources and the stack trace.
fn shorten_message(text: &str) -> String {
    let text = text.split("\nStack trace:").next().unwrap_or(text);
    let at = text.find(".cc:").or_else(|| text.find(".h:"));
    let after = at.and_then(|at| text[at..].split_once(": ")).map_or(text, |(_, rest)| rest);
    after.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl XgbModel {
    /// `probabilities`: a model whose objective yields the class of a row yields the probabilities
    /// of all classes instead.
    ///
    /// # Errors
    /// XGBoost cannot read the file, or it holds no trees.
    pub fn open(library: Library, file: &[u8], probabilities: bool) -> Result<Self, PluginFault> {
        let table = &library.table;
        let mut handle = ptr::null_mut();
        // SAFETY: no matrices, and a variable of the function's type; the callback may be called
        // for ever.
        unsafe {
            (table.register_log)(on_log);
            outcome(table, (table.create)(ptr::null(), 0, &raw mut handle))?;
        }
        let mut model = Self {
            library: Arc::clone(&library),
            handle,
            features: 0,
            scores: 0,
            leaves: 0,
            contributions: 0,
            scores_are_classes: false,
        };
        // SAFETY: an open handle, and bytes that are valid during the call.
        outcome(table, unsafe { (table.load)(handle, file.as_ptr().cast(), file.len() as u64) })?;
        model.set_parameter(c"nthread", c"1")?;
        let objective = model.read_objective()?;
        match (objective.as_str(), probabilities) {
            ("multi:softmax", true) => model.set_parameter(c"objective", c"multi:softprob")?,
            ("multi:softmax", false) => model.scores_are_classes = true,
            _ => {}
        }
        let mut features = 0;
        // SAFETY: an open handle and a variable of the function's type.
        outcome(table, unsafe { (table.num_feature)(handle, &raw mut features) })?;
        model.features = usize::try_from(features).unwrap_or(0);
        if !(1..=MAX_FEATURES).contains(&model.features) {
            return Err(PluginFault::invalid(format!(
                "the model has {} features, expected 1 to {MAX_FEATURES}",
                model.features
            )));
        }
        let row = vec![f32::NAN; model.features];
        for task in [Task::Scores, Task::Leaves, Task::Contributions] {
            let mut width = 0;
            model.predict(task, Rows::F32(&row), |values| width = values.len())?;
            match task {
                Task::Scores => model.scores = width,
                Task::Leaves => model.leaves = width,
                Task::Contributions => model.contributions = width,
            }
        }
        Ok(model)
    }

    fn set_parameter(&self, name: &CStr, value: &CStr) -> Result<(), PluginFault> {
        let table = &self.library.table;
        // SAFETY: an open handle and two C strings.
        outcome(table, unsafe { (table.set_parameter)(self.handle, name.as_ptr(), value.as_ptr()) })
    }

    /// The objective that the model was trained for.
    ///
    /// # Errors
    /// The booster is one of no trees: its predictions are not safe for threads.
    fn read_objective(&self) -> Result<String, PluginFault> {
        let table = &self.library.table;
        let (mut length, mut text) = (0, ptr::null());
        // SAFETY: an open handle and two variables of the function's types.
        outcome(table, unsafe {
            (table.save_config)(self.handle, &raw mut length, &raw mut text)
        })?;
        // SAFETY: a C string of the booster, valid until its next call.
        let text = unsafe { read_c_text(text) };
        let config: Value = serde_json::from_str(&text).unwrap_or_default();
        let learner = &config["learner"];
        let booster = learner["learner_train_param"]["booster"].as_str().unwrap_or_default();
        if booster == "gblinear" {
            return Err(PluginFault::unsupported(
                "the booster is gblinear, which has no trees; boosters gbtree and dart are served",
            ));
        }
        Ok(learner["objective"]["name"].as_str().unwrap_or_default().to_owned())
    }

    pub fn features(&self) -> usize {
        self.features
    }

    /// The only score of a row is the number of its class.
    pub fn scores_are_classes(&self) -> bool {
        self.scores_are_classes
    }

    pub fn width(&self, task: Task) -> usize {
        match task {
            Task::Scores => self.scores,
            Task::Leaves => self.leaves,
            Task::Contributions => self.contributions,
        }
    }

    /// Log lines of predictions on this thread go to the server's log.
    pub fn prepare_thread(&self) {
        // SAFETY: the callback may be called for ever.
        unsafe { (self.library.table.register_log)(on_log) };
    }

    /// Passes the values of whole rows to `receive`. They lie in memory of the booster for this
    /// thread, which its next prediction here uses.
    ///
    /// # Errors
    /// XGBoost's.
    pub fn predict(
        &self,
        task: Task,
        rows: Rows<'_>,
        receive: impl FnOnce(&[f32]),
    ) -> Result<(), PluginFault> {
        let (data, kind) = match rows {
            Rows::F32(all) => (all.as_ptr().addr(), "<f4"),
            Rows::F64(all) => (all.as_ptr().addr(), "<f8"),
        };
        let count = rows.len() / self.features.max(1);
        let features = self.features;
        // The array interface of numpy: an address that is only read.
        let array = format!(
            "{{\"data\":[{data},true],\"shape\":[{count},{features}],\"typestr\":\"{kind}\",\"version\":3}}\0"
        );
        let array = CString::from_vec_with_nul(array.into_bytes())
            .map_err(|_| PluginFault::internal("the array interface is not a C string"))?;
        let (mut shape, mut rank, mut values) = (ptr::null(), 0, ptr::null());
        let table = &self.library.table;
        let out = (&raw mut shape, &raw mut rank, &raw mut values);
        let matrix = match task {
            Task::Scores => {
                // SAFETY: an open handle, two C strings, and three variables of the function's
                // types. The array's address and shape are those of the rows.
                outcome(table, unsafe {
                    let (array, config) = (array.as_ptr(), predict_config(task).as_ptr());
                    let proxy = ptr::null_mut();
                    (table.predict_dense)(self.handle, array, config, proxy, out.0, out.1, out.2)
                })?;
                None
            }
            Task::Leaves | Task::Contributions => {
                let matrix = Matrix::new(&self.library, &array)?;
                // SAFETY: open handles, a C string, and three variables of the function's types.
                outcome(table, unsafe {
                    let config = predict_config(task).as_ptr();
                    (table.predict_matrix)(self.handle, matrix.handle, config, out.0, out.1, out.2)
                })?;
                Some(matrix)
            }
        };
        // SAFETY: the shape has `rank` elements.
        let shape = unsafe { read_slice(shape, usize::try_from(rank).unwrap_or(0)) };
        let total = shape.iter().product::<u64>();
        // SAFETY: there are as many values as the shape says, which stay where they are until the
        // next prediction of this booster on this thread.
        receive(unsafe { read_slice(values, usize::try_from(total).unwrap_or(0)) });
        drop(matrix);
        Ok(())
    }
}

impl Drop for XgbModel {
    fn drop(&mut self) {
        // SAFETY: an open handle, not used afterwards.
        unsafe { (self.library.table.free)(self.handle) };
    }
}

fn predict_config(task: Task) -> &'static CStr {
    match task {
        Task::Scores => {
            c"{\"type\":0,\"training\":false,\"iteration_begin\":0,\"iteration_end\":0,\"strict_shape\":true,\"missing\":NaN,\"cache_id\":0}"
        }
        Task::Leaves => {
            c"{\"type\":6,\"training\":false,\"iteration_begin\":0,\"iteration_end\":0,\"strict_shape\":true}"
        }
        Task::Contributions => {
            c"{\"type\":2,\"training\":false,\"iteration_begin\":0,\"iteration_end\":0,\"strict_shape\":true}"
        }
    }
}

/// # Safety
/// `p` is null or has `n` elements that stay unchanged for `'a`.
unsafe fn read_slice<'a, T>(p: *const T, n: usize) -> &'a [T] {
    if p.is_null() || n == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(p, n) }
}

/// Rows in XGBoost's own form.
struct Matrix<'a> {
    library: &'a Library,
    handle: *mut XgbMatrix,
}

impl<'a> Matrix<'a> {
    fn new(library: &'a Library, array: &CStr) -> Result<Self, PluginFault> {
        let mut handle = ptr::null_mut();
        let table = &library.table;
        // SAFETY: two C strings and a variable of the function's type; the rows are copied.
        outcome(table, unsafe {
            (table.matrix_from_dense)(array.as_ptr(), MATRIX.as_ptr(), &raw mut handle)
        })?;
        Ok(Self { library, handle })
    }
}

impl Drop for Matrix<'_> {
    fn drop(&mut self) {
        // SAFETY: an open handle, not used afterwards.
        unsafe { (self.library.table.matrix_free)(self.handle) };
    }
}

#[cfg(test)]
#[path = "xgboost_tests.rs"]
mod tests;
