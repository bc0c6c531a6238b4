//! The time of a call through this plugin, for the figures of its README: by hand, with torch and the
//! packages of `tests/python/torch_oracle.py --speed`, which measures the same calls in Python.
//!
//! ```text
//! TRTSERVER_TORCH_LIBRARY=PATH TORCH_PACKAGES=FOLDER \
//!     cargo test --release -p trtserver-plugin-pytorch -- --ignored --nocapture
//! ```

use crate::backend::PyTorch;
use std::time::{Duration, Instant};
use trtserver_plugin_api::abi::types::dtype;
use trtserver_plugin_testkit::{
    Backend, InstanceSpec, ModelSpec, Request, Session, TensorSpec, bytes, table,
};

/// Name, shape of the input with the rows first, dims of the output.
const MEASURED: [(&str, &[i64], &[i64]); 4] = [
    ("mlp", &[1, 16], &[4]),
    ("transformer", &[8, 6, 16], &[6, 16]),
    ("unet", &[8, 3, 16, 16], &[2, 16, 16]),
    ("residual", &[8, 4, 8, 8], &[4]),
];

const DURATION: Duration = Duration::from_secs(2);

#[test]
#[ignore = "needs torch and packages; by hand"]
fn calls_of_packages() {
    let packages = std::env::var("TORCH_PACKAGES").expect("a folder of packages");
    let _session = Session::start();
    let backend =
        Backend::open(table::<PyTorch>(), "pytorch", "/nowhere/backends/pytorch", &[]).unwrap();
    for (name, shape, output) in MEASURED {
        let spec = ModelSpec {
            dir: format!("{packages}/{name}"),
            version_dir: format!("{packages}/{name}/1"),
            file: "model.pt2".to_owned(),
            max_batch_size: 8,
            inputs: vec![TensorSpec::new("ARGS[0]", dtype::FP32, &shape[1..])],
            outputs: vec![TensorSpec::new("RESULT", dtype::FP32, output)],
            ..ModelSpec::new(name)
        };
        let model = backend.open_model(&spec).unwrap();
        let instance = model.open_instance(&InstanceSpec::default()).unwrap();
        let count = shape.iter().product::<i64>() as usize;
        let data: Vec<f32> = (0..count).map(|at| (at % 17) as f32 * 0.1).collect();
        let request =
            [Request::new(shape[0] as u32).input("ARGS[0]", dtype::FP32, shape, &bytes(&data))];
        let (end, mut times) = (Instant::now() + DURATION, Vec::new());
        while Instant::now() < end {
            let begin = Instant::now();
            let outcome = instance.execute_on_this_thread(&request).remove(0);
            times.push(begin.elapsed());
            assert_eq!(outcome.result, Ok(()));
        }
        times.sort_unstable();
        println!("{name:14}{:10.1} µs", times[times.len() / 2].as_secs_f64() * 1e6);
    }
}
