//! Finds and opens the libraries of backends.

pub mod carrier; // stands in for a renamed libtritonserver
pub mod entries; // the functions that a library defines
pub mod library; // dlopen
pub mod search; // where a backend's library is
