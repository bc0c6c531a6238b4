//! Shapes and types: dynamic dimensions, optimisation profiles, shape tensors, outputs whose shape
//! the data decides.

use super::*;

/// Y = identity of X, of columns from 1 to 16, in profile 0; from 16 to 64 in profile 1.
fn dynamic(major: u32) -> Plan {
    Plan::new(major)
        .line("input X INT32 -1x-1")
        .line("output Y INT32 -1x-1")
        .line("profile 0 X 1x1 4x8 8x16")
        .line("profile 1 X 1x16 4x32 4x64")
        .line("Y = identity X")
}

fn dynamic_config(name: &str, more: &str) -> String {
    format!(
        "name: \"{name}\" platform: \"tensorrt_plan\" max_batch_size: 4
         input {{ name: \"X\" data_type: TYPE_INT32 dims: [ -1 ] }}
         output {{ name: \"Y\" data_type: TYPE_INT32 dims: [ -1 ] }} {more}"
    )
}

fn columns(server: &Running, model: &str, rows: usize, n: usize) -> Response {
    let data: Vec<usize> = (0..rows * n).collect();
    infer(server, model, &[tensor("X", "INT32", &[rows, n], json!(data))])
}

#[test]
fn dynamic_dimensions_follow_the_requests() {
    for major in MAJORS {
        let fakes = Fakes::with_tensorrt(&[major]);
        let server = model(fakes.server(), "m", dynamic_config("m", ""), &dynamic(major)).start();
        for (rows, n) in [(1, 1), (4, 16), (2, 7), (1, 16)] {
            let outputs = outputs(&columns(&server, "m", rows, n));
            assert_eq!(outputs["Y"]["shape"], json!([rows, n]));
            assert_eq!(outputs["Y"]["data"], json!((0..rows * n).collect::<Vec<_>>()));
        }
        stops(server, &fakes);
    }
}

#[test]
fn profile_of_the_instance_group_decides_which_shapes_are_accepted() {
    for major in MAJORS {
        let fakes = Fakes::with_tensorrt(&[major]);
        let second = "instance_group { kind: KIND_GPU profile: \"1\" }";
        let server = fakes.server();
        let server = model(server, "first", dynamic_config("first", ""), &dynamic(major));
        let server = model(server, "second", dynamic_config("second", second), &dynamic(major));
        let server = server.start();
        for (name, good, bad, limits) in
            [("first", 8, 17, ["1", "16"]), ("second", 64, 15, ["16", "64"])]
        {
            let refused = columns(&server, name, 1, bad);
            assert_eq!(refused.status, 400, "{}", refused.text());
            let text = refused.text();
            for part in ["'X'", "profile", &bad.to_string(), limits[0], limits[1]] {
                assert!(text.contains(part), "no {part:?} in {text}");
            }
            outputs(&columns(&server, name, 1, good));
        }
        stops(server, &fakes);
    }
}

#[test]
fn elements_of_every_type_pass_unchanged() {
    let types = [
        ("FP32", json!([0.5, -1.5, 3.25])),
        ("INT32", json!([1, -2, 2147483647])),
        ("INT64", json!([1, -2, 9007199254740993_i64])),
        ("INT8", json!([1, -2, 127])),
        ("UINT8", json!([1, 2, 255])),
        ("BOOL", json!([true, false, true])),
    ];
    for major in MAJORS {
        let fakes = Fakes::with_tensorrt(&[major]);
        // TensorRT 8 has neither INT64 nor BF16.
        let has = |name: &str| major > 8 || (name != "INT64" && name != "BF16");
        let raw = [("FP16", "FP16", 2), ("BF16", "BF16", 2)];
        let names = types.iter().map(|(name, _)| *name).chain(raw.iter().map(|(name, ..)| *name));
        let mut server = fakes.server();
        for name in names.filter(|name| has(name)) {
            let plan = Plan::new(major)
                .line(&format!("input X {name} 3"))
                .line(&format!("output Y {name} 3"))
                .line("Y = identity X");
            let config = format!(
                "name: \"{name}\" platform: \"tensorrt_plan\"
                 input {{ name: \"X\" data_type: TYPE_{name} dims: [ 3 ] }}
                 output {{ name: \"Y\" data_type: TYPE_{name} dims: [ 3 ] }}"
            );
            server = model(server, name, config, &plan);
        }
        let server = server.start();
        for (name, data) in types.iter().filter(|(name, _)| has(name)) {
            let outputs = outputs(&infer(&server, name, &[tensor("X", name, &[3], data.clone())]));
            assert_eq!((&outputs["Y"]["data"], &outputs["Y"]["datatype"]), (data, &json!(name)));
        }
        for (name, datatype, size) in raw.iter().filter(|(name, ..)| has(name)) {
            assert_eq!(binary(&server, name, datatype, &[7; 6][..3 * size]), [7; 6]);
        }
        stops(server, &fakes);
    }
}

/// The protocols have no name for FP8: such a tensor is declared as bytes.
#[test]
fn elements_of_fp8_are_declared_as_bytes() {
    let fakes = Fakes::with_tensorrt(&[10, 11]);
    let mut server = fakes.server();
    for major in [10, 11] {
        let plan =
            Plan::new(major).line("input X FP8 3").line("output Y FP8 3").line("Y = identity X");
        let name = format!("m{major}");
        let config = format!(
            "name: \"{name}\" platform: \"tensorrt_plan\"
             input {{ name: \"X\" data_type: TYPE_UINT8 dims: [ 3 ] }}
             output {{ name: \"Y\" data_type: TYPE_UINT8 dims: [ 3 ] }}"
        );
        server = model(server, &name, config, &plan);
    }
    let server = server.start();
    for name in ["m10", "m11"] {
        let outputs =
            outputs(&infer(&server, name, &[tensor("X", "UINT8", &[3], json!([1, 128, 255]))]));
        assert_eq!(outputs["Y"]["data"], json!([1, 128, 255]));
    }
    stops(server, &fakes);
}

/// The output of a request of three elements whose tensors follow the JSON.
fn binary(server: &Running, model: &str, datatype: &str, bytes: &[u8]) -> Vec<u8> {
    let head = json!({
        "parameters": { "binary_data_output": true },
        "inputs": [{ "name": "X", "datatype": datatype, "shape": [3],
            "parameters": { "binary_data_size": bytes.len() } }],
    })
    .to_string();
    let length = head.len().to_string();
    let headers = [("Inference-Header-Content-Length", &*length)];
    let response = server.post(
        &format!("/v2/models/{model}/infer"),
        &headers,
        [head.as_bytes(), bytes].concat(),
    );
    assert_eq!(response.status, 200, "{}", response.text());
    response.body[response.body.len() - bytes.len()..].to_vec()
}

/// Y has the dimensions that SHAPE holds; Z holds those of X.
fn resize(major: u32) -> Plan {
    Plan::new(major)
        .line("input X FP32 2x2")
        .line("input SHAPE INT32 2 shape")
        .line("output Y FP32 -1x-1")
        .line("output Z INT32 2 shape")
        .line("profile 0 SHAPE 1,1 2,2 4,4")
        .line("Y = resize X SHAPE")
        .line("Z = shape X")
}

const RESIZE: &str = "name: \"m\" platform: \"tensorrt_plan\"
    input [ { name: \"X\" data_type: TYPE_FP32 dims: [ 2, 2 ] },
            { name: \"SHAPE\" data_type: TYPE_INT32 dims: [ 2 ] is_shape_tensor: true } ]
    output [ { name: \"Y\" data_type: TYPE_FP32 dims: [ -1, -1 ] },
             { name: \"Z\" data_type: TYPE_INT32 dims: [ 2 ] is_shape_tensor: true } ]";

#[test]
fn values_of_a_shape_tensor_decide_the_shape_of_an_output() {
    for major in MAJORS {
        let fakes = Fakes::with_tensorrt(&[major]);
        let server = model(fakes.server(), "m", RESIZE, &resize(major)).start();
        let send = |shape: [usize; 2]| {
            let x = tensor("X", "FP32", &[2, 2], json!([1.0, 2.0, 3.0, 4.0]));
            infer(&server, "m", &[x, tensor("SHAPE", "INT32", &[2], json!(shape))])
        };
        for shape in [[1, 3], [4, 4], [2, 1], [4, 2]] {
            let outputs = outputs(&send(shape));
            let n = shape[0] * shape[1];
            let data: Vec<f64> = (0..n).map(|i| (i % 4) as f64 + 1.0).collect();
            assert_eq!(outputs["Y"]["shape"], json!(shape));
            assert_eq!(outputs["Y"]["data"], json!(data));
            assert_eq!(outputs["Z"]["data"], json!([2, 2]));
        }
        let refused = send([5, 1]);
        assert_eq!(refused.status, 400, "{}", refused.text());
        for part in ["SHAPE", "5", "4", "profile"] {
            assert!(refused.text().contains(part), "no {part:?} in {}", refused.text());
        }
        outputs(&send([2, 2]));
        stops(server, &fakes);
    }
}

/// INDICES are the places of X that are not zero.
fn nonzero(major: u32) -> Plan {
    Plan::new(major)
        .line("input X FP32 -1")
        .line("output INDICES INT32 -1")
        .line("output Y FP32 -1")
        .line("profile 0 X 1 64 1024")
        .line("INDICES = nonzero X")
        .line("Y = scale X 2")
}

const NONZERO: &str = "name: \"m\" platform: \"tensorrt_plan\"
    input { name: \"X\" data_type: TYPE_FP32 dims: [ -1 ] }
    output [ { name: \"INDICES\" data_type: TYPE_INT32 dims: [ -1 ] },
             { name: \"Y\" data_type: TYPE_FP32 dims: [ -1 ] } ]";

#[test]
fn output_whose_shape_depends_on_the_data_is_as_long_as_the_data_says() {
    for major in MAJORS {
        let fakes = Fakes::with_tensorrt(&[major]);
        let server = model(fakes.server(), "m", NONZERO, &nonzero(major)).start();
        std::thread::scope(|scope| {
            for every in [1, 2, 7, 2000] {
                let server = &server;
                scope.spawn(move || {
                    for n in [1000_usize, 1, 64] {
                        let x: Vec<f64> =
                            (0..n).map(|i| f64::from(u8::from(i % every == every - 1))).collect();
                        let places: Vec<usize> =
                            (0..n).filter(|i| i % every == every - 1).collect();
                        let input = tensor("X", "FP32", &[n], json!(x));
                        let outputs = outputs(&infer(server, "m", &[input]));
                        assert_eq!(outputs["INDICES"]["shape"], json!([places.len()]));
                        assert_eq!(outputs["INDICES"]["data"], json!(places));
                        assert_eq!(outputs["Y"]["shape"], json!([n]));
                    }
                });
            }
        });
        stops(server, &fakes);
    }
}
