//! Ensembles: models made of steps that are other models.

mod requests;
mod steps;
