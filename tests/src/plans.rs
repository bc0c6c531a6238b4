//! Plans of the fake TensorRT (`tests/fakes/nvinfer/plan.h`), and models that serve them.

use std::fmt::Write;

/// Version of the fake library of a major version.
pub fn version(major: u32) -> [u8; 4] {
    match major {
        8 => [8, 6, 1, 6],
        10 => [10, 16, 1, 11],
        11 => [11, 4, 0, 106],
        other => panic!("no fake TensorRT {other}"),
    }
}

/// A plan file.
#[derive(Clone)]
pub struct Plan {
    version: [u8; 4],
    text: String,
}

impl Plan {
    /// For the library of a major version and the GPU that the fake driver has by default.
    pub fn new(major: u32) -> Self {
        Plan { version: version(major), text: String::new() }.line("compute 7.5")
    }

    /// Y = X * 2.5, floats of any number of rows from 1 to 8, of four columns.
    pub fn scale(major: u32) -> Self {
        Self::new(major)
            .line("input X FP32 -1x4")
            .line("output Y FP32 -1x4")
            .line("profile 0 X 1x4 4x4 8x4")
            .line("Y = scale X 2.5")
    }

    #[must_use]
    pub fn line(mut self, statement: &str) -> Self {
        let _ = writeln!(self.text, "{statement}");
        self
    }

    /// Built by another version.
    #[must_use]
    pub fn built_by(mut self, version: [u8; 4]) -> Self {
        self.version = version;
        self
    }

    /// Built for another GPU.
    #[must_use]
    pub fn built_for(mut self, compute_capability: &str) -> Self {
        self.text = self.text.replace("compute 7.5", &format!("compute {compute_capability}"));
        self
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = b"ftrt\0\0\0\0".to_vec();
        bytes.extend((self.text.len() as u64).to_le_bytes());
        bytes.extend([0; 8]);
        bytes.extend(self.version);
        bytes.extend(self.text.as_bytes());
        bytes
    }
}

/// The configuration of [`Plan::scale`], with further fields.
pub fn scale_config(name: &str, more: &str) -> String {
    format!(
        "name: \"{name}\"\nplatform: \"tensorrt_plan\"\nmax_batch_size: 8\n\
         input {{ name: \"X\" data_type: TYPE_FP32 dims: [ 4 ] }}\n\
         output {{ name: \"Y\" data_type: TYPE_FP32 dims: [ 4 ] }}\n{more}\n"
    )
}
