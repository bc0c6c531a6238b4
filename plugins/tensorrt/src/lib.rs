//! TensorRT plans: the library is found at run time and called through tables of virtual-table slots.

pub mod slots;
