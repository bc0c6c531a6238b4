//! A model of either framework: what it says of itself, and its predictions.
//!
//! The instances of a model share one booster. What they call at once is documented as safe for
//! threads: LightGBM's functions for prediction take a shared lock of the booster, and each
//! [`Predictor`] has resources of its own for them; XGBoost's functions for prediction are free of
//! locks for boosters of trees, and leave their results in memory of the calling thread. Nothing
//! changes a booster after it was opened.
//!
//! Both libraries are told to use one thread. LightGBM has one number of threads for the process,
//! which each call sets, and sizes buffers by it: two models with different numbers would race.
//! `rows.rs` divides batches among threads instead.

use crate::lightgbm::{LgbmModel, LgbmPredictor};
use crate::xgboost::XgbModel;
use trtserver_framework::fault::PluginFault;

/// What is computed for a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Task {
    /// What `predict` of the framework's Python package returns.
    Scores,
    /// The leaf of each tree.
    Leaves,
    /// SHAP values, and the expected value after those of the features.
    Contributions,
}

/// Rows of features, one after another.
#[derive(Clone, Copy, Debug)]
pub enum Rows<'a> {
    F32(&'a [f32]),
    F64(&'a [f64]),
}

impl<'a> Rows<'a> {
    /// Number of elements.
    pub fn len(self) -> usize {
        match self {
            Rows::F32(all) => all.len(),
            Rows::F64(all) => all.len(),
        }
    }

    /// The elements before and from `at` on.
    pub fn split_at(self, at: usize) -> (Rows<'a>, Rows<'a>) {
        match self {
            Rows::F32(all) => {
                let (before, after) = all.split_at(at);
                (Rows::F32(before), Rows::F32(after))
            }
            Rows::F64(all) => {
                let (before, after) = all.split_at(at);
                (Rows::F64(before), Rows::F64(after))
            }
        }
    }
}

/// Predictions in the framework's type.
#[derive(Clone, Copy, Debug)]
pub enum Values<'a> {
    F32(&'a [f32]),
    F64(&'a [f64]),
}

/// A model, opened by its framework.
pub enum Booster {
    LightGbm(LgbmModel),
    XgBoost(XgbModel),
}

impl Booster {
    /// Features of a row.
    pub fn features(&self) -> usize {
        match self {
            Booster::LightGbm(model) => model.features(),
            Booster::XgBoost(model) => model.features(),
        }
    }

    /// Values of a row.
    pub fn width(&self, task: Task) -> usize {
        match self {
            Booster::LightGbm(model) => model.width(task),
            Booster::XgBoost(model) => model.width(task),
        }
    }

    /// What a thread needs to compute these tasks.
    ///
    /// # Errors
    /// The framework's.
    pub fn predictor(&self, tasks: &[Task]) -> Result<Predictor, PluginFault> {
        Ok(match self {
            Booster::LightGbm(model) => Predictor::LightGbm(model.predictor(tasks)?),
            Booster::XgBoost(model) => {
                model.prepare_thread();
                Predictor::XgBoost
            }
        })
    }

    /// Computes a task for whole rows, and passes the values to `receive`, which must not predict:
    /// they may lie in memory that the next prediction of this thread uses.
    ///
    /// # Errors
    /// The framework's.
    pub fn predict(
        &self,
        predictor: &mut Predictor,
        task: Task,
        rows: Rows<'_>,
        receive: impl FnOnce(Values<'_>),
    ) -> Result<(), PluginFault> {
        match (self, predictor) {
            (Booster::LightGbm(model), Predictor::LightGbm(own)) => {
                model.predict(own, task, rows).map(|values| receive(Values::F64(values)))
            }
            (Booster::XgBoost(model), _) => {
                model.predict(task, rows, |values| receive(Values::F32(values)))
            }
            (Booster::LightGbm(_), Predictor::XgBoost) => {
                Err(PluginFault::internal("the predictor is that of another framework"))
            }
        }
    }
}

/// What one thread at a time uses for predictions.
pub enum Predictor {
    LightGbm(LgbmPredictor),
    XgBoost,
}
