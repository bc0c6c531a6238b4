//! The machine that configurations are checked against: its GPUs.

/// Facts about this machine that configurations are checked against.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Ids of the usable GPUs, ascending.
    pub gpus: Vec<i32>,
    /// Minimum compute capability of the GPUs in `gpus`, such as `6.0`.
    pub min_compute: String,
}

impl Machine {
    /// A machine with `count` GPUs, numbered from 0.
    pub fn with_gpus(count: usize) -> Self {
        let gpus = (0..).take(count).collect();
        Self { gpus, min_compute: "6.0".to_owned() }
    }

    pub(super) fn has_gpu(&self, id: i32) -> bool {
        self.gpus.contains(&id)
    }
}
