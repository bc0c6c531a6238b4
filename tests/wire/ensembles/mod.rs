//! Ensembles: models made of steps that are other models.

mod decoupled;
mod requests;
mod steps;
