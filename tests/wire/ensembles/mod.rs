//! Ensembles.

mod requests;
mod steps;
