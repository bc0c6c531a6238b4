//! Backends that were built for Triton, loaded through the adapter `triton`.

mod batch_strategies_with_triton;
mod completion_with_triton;
mod contract_with_triton;
mod differential_with_triton;
mod fetched_with_triton;
mod free_outputs_with_triton;
mod gpu_memory;
mod left_out_outputs_with_triton;
mod nested_with_triton;
mod own_backend;
mod python_lifecycle_with_triton;
mod python_processes_with_triton;
mod python_shared_memory_with_triton;
mod python_with_triton;
mod refused;
mod rogue;
mod throws;
mod traces;
mod traces_with_triton;
