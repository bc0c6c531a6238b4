//! CUDA graphs of TensorRT executions, and what happens where there can be none.

use super::*;

const GRAPHS: &str = "optimization { cuda { graphs: true } }";

fn calls(fakes: &Fakes, name: &str) -> usize {
    let calls = std::fs::read_to_string(fakes.path("calls")).unwrap_or_default();
    calls.matches(&format!(" call {name} ")).count()
}

#[test]
fn repeated_shapes_are_launched_as_graphs() {
    for major in MAJORS {
        let fakes = Fakes::with_tensorrt(&[major]);
        let server =
            scaling(&fakes, major, GRAPHS).env("FAKE_CUDA_LOG", fakes.path("calls")).start();
        for _ in 0..10 {
            for rows in [1, 8] {
                scales(&server, "m", rows);
            }
        }
        stops(server, &fakes);
        assert!(calls(&fakes, "cuGraphLaunch") > 0, "{major}: no graph was launched");
        let executions = fakes.reported(&format!("nvinfer_executions_{major}"));
        assert!(executions < 20, "{major}: {executions} executions without a graph");
    }
}

#[test]
fn graphs_are_captured_for_the_batch_sizes_of_graph_spec() {
    let fakes = Fakes::with_tensorrt(&[10]);
    let spec = |rows: usize| {
        format!("graph_spec {{ batch_size: {rows} input {{ key: \"X\" value {{ dim: [ 4 ] }} }} }}")
    };
    let graphs = format!("optimization {{ cuda {{ graphs: true {} {} }} }}", spec(2), spec(5));
    let server = scaling(&fakes, 10, &graphs).env("FAKE_CUDA_LOG", fakes.path("calls")).start();
    assert_eq!(calls(&fakes, "cuGraphInstantiateWithFlags"), 2);
    let before = calls(&fakes, "cuGraphLaunch");
    for rows in [2, 5, 2] {
        scales(&server, "m", rows);
    }
    assert_eq!(calls(&fakes, "cuGraphLaunch"), before + 3);
    // No graph has these rows.
    scales(&server, "m", 3);
    assert_eq!(calls(&fakes, "cuGraphLaunch"), before + 3);
    stops(server, &fakes);
}

#[test]
fn batch_above_the_lower_bound_is_padded_to_the_graph() {
    let fakes = Fakes::with_tensorrt(&[11]);
    let graphs = "optimization { cuda { graphs: true graph_spec {
        batch_size: 6 input { key: \"X\" value { dim: [ 4 ] } } graph_lower_bound { batch_size: 4 } } } }";
    let server = scaling(&fakes, 11, graphs).env("FAKE_CUDA_LOG", fakes.path("calls")).start();
    for (rows, launches) in [(6, 1), (4, 2), (5, 3), (3, 3), (7, 3)] {
        scales(&server, "m", rows);
        assert_eq!(calls(&fakes, "cuGraphLaunch"), launches, "{rows} rows");
    }
    stops(server, &fakes);
}

#[test]
fn execution_that_cannot_be_captured_falls_back_with_a_log_line() {
    let fakes = Fakes::with_tensorrt(&[10]);
    // The shape of the output is known only after the stream was synchronised, which no capture
    // allows.
    let plan = Plan::new(10)
        .line("input X FP32 4")
        .line("output INDICES INT32 -1")
        .line("INDICES = nonzero X");
    let config = format!(
        "name: \"m\" platform: \"tensorrt_plan\"
         input {{ name: \"X\" data_type: TYPE_FP32 dims: [ 4 ] }}
         output {{ name: \"INDICES\" data_type: TYPE_INT32 dims: [ -1 ] }} {GRAPHS}"
    );
    let server = model(fakes.server(), "m", config, &plan).start();
    for _ in 0..3 {
        let input = tensor("X", "FP32", &[4], json!([0.0, 1.0, 0.0, 2.0]));
        let outputs = outputs(&infer(&server, "m", &[input]));
        assert_eq!(outputs["INDICES"]["data"], json!([1, 3]));
    }
    server.wait_for_log_with(&["m", "CUDA graph", "INDICES"]);
    stops(server, &fakes);
}

#[test]
fn driver_that_refuses_graphs_is_named_and_requests_are_served() {
    let fakes = Fakes::with_tensorrt(&[10]);
    let server = scaling(&fakes, 10, GRAPHS)
        .env("FAKE_CUDA_FAIL", "cuGraphInstantiateWithFlags:0:801")
        .start();
    for _ in 0..4 {
        scales(&server, "m", 2);
    }
    server.wait_for_log_with(&["CUDA graph", "cuGraphInstantiateWithFlags"]);
    stops(server, &fakes);
}
