//! The functions of the two C libraries that this plugin calls, looked up by name in libraries that
//! are opened at run time.
//!
//! The declarations follow `LightGBM/c_api.h` and `xgboost/c_api.h`. No crate is used for them:
//! existing crates link the library at build time.

use std::ffi::{c_char, c_int, c_void};
use trtserver_framework::{function_table, opaque_types};

opaque_types! { LgbmBooster LgbmFastConfig XgbBooster XgbMatrix }

/// Receives a log line.
pub type LogCallback = unsafe extern "C" fn(*const c_char);

function_table! {
    /// LightGBM; each function that can fail returns 0 or -1.
    LgbmTable;

    last_error = "LGBM_GetLastError": fn() -> *const c_char;
    register_log = "LGBM_RegisterLogCallback": fn(LogCallback) -> c_int;
    load = "LGBM_BoosterLoadModelFromString": fn(
        *const c_char, *mut c_int, *mut *mut LgbmBooster
    ) -> c_int;
    free = "LGBM_BoosterFree": fn(*mut LgbmBooster) -> c_int;
    num_feature = "LGBM_BoosterGetNumFeature": fn(*mut LgbmBooster, *mut c_int) -> c_int;
    // Rows, type of prediction, first iteration, number of iterations, result.
    num_predict = "LGBM_BoosterCalcNumPredict": fn(
        *mut LgbmBooster, c_int, c_int, c_int, c_int, *mut i64
    ) -> c_int;
    // Data, its type, rows, columns, row-major, type of prediction, first iteration, number of
    // iterations, parameters, length and values of the result.
    predict = "LGBM_BoosterPredictForMat": fn(
        *mut LgbmBooster, *const c_void, c_int, i32, i32, c_int, c_int, c_int, c_int,
        *const c_char, *mut i64, *mut f64
    ) -> c_int;
    // Type of prediction, first iteration, number of iterations, type of the data, columns,
    // parameters, result.
    fast_init = "LGBM_BoosterPredictForMatSingleRowFastInit": fn(
        *mut LgbmBooster, c_int, c_int, c_int, c_int, i32, *const c_char, *mut *mut LgbmFastConfig
    ) -> c_int;
    fast_predict = "LGBM_BoosterPredictForMatSingleRowFast": fn(
        *mut LgbmFastConfig, *const c_void, *mut i64, *mut f64
    ) -> c_int;
    fast_free = "LGBM_FastConfigFree": fn(*mut LgbmFastConfig) -> c_int;
}

function_table! {
    /// XGBoost; each function that can fail returns 0 or -1.
    XgbTable;

    version = "XGBoostVersion": fn(*mut c_int, *mut c_int, *mut c_int);
    last_error = "XGBGetLastError": fn() -> *const c_char;
    register_log = "XGBRegisterLogCallback": fn(LogCallback) -> c_int;
    create = "XGBoosterCreate": fn(*const *mut XgbMatrix, u64, *mut *mut XgbBooster) -> c_int;
    free = "XGBoosterFree": fn(*mut XgbBooster) -> c_int;
    set_parameter = "XGBoosterSetParam": fn(
        *mut XgbBooster, *const c_char, *const c_char
    ) -> c_int;
    load = "XGBoosterLoadModelFromBuffer": fn(*mut XgbBooster, *const c_void, u64) -> c_int;
    num_feature = "XGBoosterGetNumFeature": fn(*mut XgbBooster, *mut u64) -> c_int;
    save_config = "XGBoosterSaveJsonConfig": fn(
        *mut XgbBooster, *mut u64, *mut *const c_char
    ) -> c_int;
    // Array interface, configuration, proxy matrix, shape, its length, values.
    predict_dense = "XGBoosterPredictFromDense": fn(
        *mut XgbBooster, *const c_char, *const c_char, *mut XgbMatrix,
        *mut *const u64, *mut u64, *mut *const f32
    ) -> c_int;
    predict_matrix = "XGBoosterPredictFromDMatrix": fn(
        *mut XgbBooster, *mut XgbMatrix, *const c_char,
        *mut *const u64, *mut u64, *mut *const f32
    ) -> c_int;
    matrix_from_dense = "XGDMatrixCreateFromDense": fn(
        *const c_char, *const c_char, *mut *mut XgbMatrix
    ) -> c_int;
    matrix_free = "XGDMatrixFree": fn(*mut XgbMatrix) -> c_int;
}
