//! Unit tests of `reshape.rs`.

use super::*;
use crate::network::TensorPort;
use trtserver_framework::config::ConfiguredTensor;

fn wanted(batch: usize, parameters: &[(&str, &str)], dims: &[i64]) -> Option<Vec<i64>> {
    let configured = ConfiguredTensor {
        name: "x".to_owned(),
        dims: vec![3, -1],
        model_dims: vec![3, -1],
        ..ConfiguredTensor::default()
    };
    let config = Config { max_batch_size: batch, inputs: vec![configured], ..Config::default() };
    let input = DeclaredTensor {
        name: "x".to_owned(),
        port: TensorPort { index: 4, element: 4 },
        dims: Some(dims.to_vec()),
    };
    let signature = Signature { inputs: vec![input], outputs: Vec::new() };
    let options = Options::read(parameters.iter().copied(), None).unwrap();
    let all = wanted_shapes(&config, &signature, &options);
    all.into_iter().next().map(|(at, shape)| {
        assert_eq!(at, 4);
        shape
    })
}

#[test]
fn shapes_by_batch_and_parameters() {
    let reshape = [("RESHAPE_IO_LAYERS", "YES")];
    let skip = [("SKIP_OV_DYNAMIC_BATCHSIZE", "YES")];
    for (batch, parameters, dims, expected) in [
        (8, &[][..], &[1, 3, 7][..], Some(vec![-1, 3, 7])),
        (8, &[], &[-1, 3, 7], None),
        (8, &[], &[3, 7], None),
        (0, &[], &[1, 3, 7], None),
        (8, &skip, &[1, 3, 7], None),
        (8, &reshape, &[1, 3, 7], Some(vec![-1, 3, -1])),
        (0, &reshape, &[3, 7], Some(vec![3, -1])),
        (0, &reshape, &[3, -1], None),
        (8, &[], &[], None),
    ] {
        assert_eq!(wanted(batch, parameters, dims), expected, "{batch} {parameters:?} {dims:?}");
    }
}
