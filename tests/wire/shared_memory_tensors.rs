//! Tensors in client shared memory: the real clients, and clients that change their memory while
//! the server uses it.

use std::fs::File;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use trtserver_tests::http1::request;
use trtserver_tests::isolated::{isolated, kill, process, wait_until_served};
use trtserver_tests::{
    Response, Running, SharedObject, every_model, folder, probe, python_v1, python_v2,
};

static SERVER: LazyLock<Running> = LazyLock::new(|| {
    every_model()
        .model("adopt", probe("adopt", &[("adopt", "true")]))
        .model("merge", probe("merge", &[("merge", "true")]))
        .model("isolated", isolated("isolated", &[]))
        .model("isolated_adopt", isolated("isolated_adopt", &[("adopt", "true")]))
        .model("isolated_merge", isolated("isolated_merge", &[("merge", "true")]))
        .flag("--allow-client-shm=true")
        .start_shared()
});

const LOCAL_AND_ISOLATED: [&str; 2] = ["echo", "isolated"];

/// Size of the regions.
const LEN: u64 = 64 << 10;

/// A registered region of ones.
fn region() -> SharedObject {
    region_of(&SERVER)
}

fn region_of(server: &Running) -> SharedObject {
    let object = SharedObject::registered(server, LEN);
    object.fill(1.0);
    object
}

/// Inference on the first half of the region, with the output in the second half.
fn infer(object: &SharedObject, model: &str) -> Response {
    infer_at(&SERVER, object, model)
}

fn infer_at(server: &Running, object: &SharedObject, model: &str) -> Response {
    server.post(&format!("/v2/models/{model}/infer"), &[], object.request(""))
}

/// The first float of the output.
fn output(object: &SharedObject) -> f32 {
    let bytes = object.read(LEN / 2, 4);
    f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// The error of a request that used a region whose pages are missing.
#[track_caller]
fn is_fault(object: &SharedObject, response: &Response) {
    let text = response.text();
    assert_eq!(response.status, 400, "{text}");
    let named = format!("shared memory region '{}' cannot be used any more", object.name);
    assert!(text.contains(&named), "{text}");
}

#[test]
fn v2_client() {
    python_v2(&SERVER, "v2_shared_memory.py", &[]);
}

#[test]
fn v1_client() {
    python_v1(&SERVER, "v1_shared_memory.py", &[]);
}

#[test]
fn v2_refuses_shared_memory_unless_allowed() {
    let server = every_model().start();
    let object = SharedObject::new(LEN);
    let response = infer_at(&server, &object, "echo");
    assert_eq!(response.status, 501);
    let text = "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.";
    assert_eq!(response.json(), serde_json::json!({ "error": text }));
    // v1 always offers it.
    python_v1(&server, "v1_shared_memory.py", &["-k", "test_inputs_and_outputs"]);
}

#[test]
fn response_lists_shared_output_without_data() {
    let object = region();
    let response = infer(&object, "echo");
    let expected = r#"{"model_name":"echo","model_version":"1","outputs":[{"name":"OUTPUT0","datatype":"FP32","shape":[1,8192]}]}"#;
    assert_eq!(response.text(), expected);
    assert_eq!(response.header("inference-header-content-length"), None);
    object.unregister(&SERVER);
}

/// The client of v1 names whole regions only, and checks sizes itself.
#[test]
fn v1_header_names_offset_and_size() {
    let object = region();
    object.fill(2.0);
    let (name, at) = (&object.name, LEN / 2);
    let infer = |bytes: u64| {
        let header = format!(
            "batch_size: 1 \
             input {{ name: \"INPUT0\" dims: 2 shared_memory {{ name: \"{name}\" offset: 8 byte_size: {bytes} }} }} \
             output {{ name: \"OUTPUT0\" shared_memory {{ name: \"{name}\" offset: {at} byte_size: 64 }} }}"
        );
        SERVER.post("/api/infer/echo", &[("NV-InferRequest", &header)], "")
    };
    let response = infer(8);
    let described = response.header("nv-inferresponse").unwrap_or_default();
    assert!(described.contains("batch_byte_size: 8"), "{described}");
    // The trailer, without data before it.
    assert!(response.text().starts_with("model_name: \"echo\""), "{}", response.text());
    assert_eq!(output(&object), 2.0);
    let response = infer(12);
    assert_eq!(response.status, 400);
    let status = response.header("nv-status").unwrap_or_default();
    // Quotes are escaped in the header's text form.
    let text =
        r"unexpected shared-memory size 12 for input \'INPUT0\', expecting 8 for model \'echo\'";
    assert!(status.contains(text), "{status}");
    object.unregister(&SERVER);
}

#[test]
fn unlinked_and_replaced_object_stays_in_use() {
    let object = region();
    std::fs::remove_file(object.path()).unwrap();
    let replacement = File::create_new(object.path()).unwrap();
    replacement.set_len(LEN).unwrap();
    for model in LOCAL_AND_ISOLATED {
        object.fill(3.0);
        assert_eq!(infer(&object, model).status, 200);
        assert_eq!(output(&object), 3.0, "{model}");
    }
    object.unregister(&SERVER);
}

#[test]
fn region_unregistered_during_request_lives_to_its_end() {
    for model in LOCAL_AND_ISOLATED {
        let object = region();
        let (dir, mut connection) = (folder(), SERVER.connect());
        let (file, name) = (dir.path().join("go"), &object.name);
        let parameters = format!(r#""say":"{name} begins","until_file":"{}""#, file.display());
        let (path, body) = (format!("/v2/models/{model}/infer"), object.request(&parameters));
        connection.send(request("POST", &path, &[], body.as_bytes()));
        SERVER.wait_for_log(&format!("{name} begins"));
        object.unregister(&SERVER);
        object.fill(5.0);
        File::create(file).unwrap();
        let response = connection.response();
        assert_eq!(response.status, 200, "{}", response.text());
        assert_eq!(output(&object), 5.0, "{model}");
        assert_eq!(infer(&object, model).status, 404);
    }
}

#[test]
fn child_unmaps_unregistered_region() {
    let maps = |object: &SharedObject| {
        let pid = process(&SERVER, "isolated").as_raw_nonzero();
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
        maps.matches(&object.name).count()
    };
    let object = region();
    assert_eq!(maps(&object), 0);
    for _ in 0..3 {
        assert_eq!(infer(&object, "isolated").status, 200);
        assert_eq!(maps(&object), 1);
    }
    object.unregister(&SERVER);
    SERVER.poll_until("the child has unmapped it", |_| maps(&object) == 0);
}

#[test]
fn restarted_child_gets_the_region_again() {
    let server = every_model().model("isolated", isolated("isolated", &[]));
    let server = server.flag("--allow-client-shm=true").start();
    let object = region_of(&server);
    assert_eq!(infer_at(&server, &object, "isolated").status, 200);
    kill(&server, "isolated");
    wait_until_served(&server, "isolated");
    object.fill(7.0);
    assert_eq!(infer_at(&server, &object, "isolated").status, 200);
    assert_eq!(output(&object), 7.0);
}

#[test]
fn shrunk_region_fails_its_requests_alone() {
    for model in ["echo", "adopt", "merge", "isolated", "isolated_adopt", "isolated_merge"] {
        let (object, other) = (region(), region());
        object.resize(4096);
        is_fault(&object, &infer(&object, model));
        // It stays unusable, even if the object is complete later.
        object.fill(1.0);
        is_fault(&object, &infer(&object, model));
        assert_eq!(infer(&other, model).status, 200);
        object.unregister(&SERVER);
        object.register(&SERVER);
        assert_eq!(infer(&object, model).status, 200);
        object.unregister(&SERVER);
        other.unregister(&SERVER);
    }
}

/// Clients shrink their objects at any time while other requests are served.
#[test]
fn shrinking_under_load_harms_no_other_request() {
    const ROUNDS: usize = 100;
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        // Also when an assertion fails: the scope waits for its threads.
        let stop = SetOnDrop(&done);
        let load = LOCAL_AND_ISOLATED.map(|model| {
            let done = &done;
            scope.spawn(move || {
                let mut served = 0;
                while !done.load(Ordering::Relaxed) {
                    let response = SERVER.infer(model, "");
                    assert_eq!(response.status, 200, "{}", response.text());
                    served += 1;
                }
                served
            })
        });
        for round in 0..ROUNDS {
            for model in LOCAL_AND_ISOLATED {
                let object = region();
                let shrink = scope.spawn({
                    let file = object.file.try_clone().unwrap();
                    move || file.set_len((round as u64 % 17) * 4096).unwrap()
                });
                let response = infer(&object, model);
                if response.status != 200 {
                    is_fault(&object, &response);
                }
                shrink.join().unwrap();
                object.unregister(&SERVER);
            }
        }
        drop(stop);
        for load in load {
            assert!(load.join().unwrap() > 0);
        }
    });
    assert!(!SERVER.log().contains("panicked"), "{}", SERVER.log());
}

struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
