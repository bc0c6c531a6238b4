//! A backend in C, built with the header alone.

use trtserver_tests::{Server, backends, compile_c, folder, python_v1, python_v2};

const CONFIG: &str = r#"
platform: "c_addsub"
max_batch_size: 8
input [
  { name: "INPUT0" data_type: TYPE_FP32 dims: [ 16 ] },
  { name: "INPUT1" data_type: TYPE_FP32 dims: [ 16 ] }
]
output [
  { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 16 ] },
  { name: "OUTPUT1" data_type: TYPE_FP32 dims: [ 16 ] }
]
"#;

#[test]
fn c_backend_serves_both_protocols() {
    let dir = folder();
    compile_c("tests/plugins/c-addsub/addsub.c", dir.path(), "c_addsub");
    let server = Server::new()
        .backend_dir(dir.path())
        .backend_dir(backends())
        .model("c_addsub", format!("name: \"c_addsub\"{CONFIG}"))
        .start();
    assert!(server.wait_for_log("found backend 'c_addsub'").contains("libtrtserver_c_addsub.so"));
    python_v1(&server, "c_plugin_v1.py", &[]);
    python_v2(&server, "c_plugin_v2.py", &[]);
    assert!(server.stop().success());
}
