//! Backends that were built for Triton, loaded through the adapter `triton`.

mod contract_with_triton;
