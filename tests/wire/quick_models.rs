//! Models that take microseconds run on the threads of the network. One that becomes slow holds nobody else up.

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use trtserver_tests::{Caller, DOORS, Running, Server, probe};

/// Enough for the server to find the model quick.
const QUICK_REQUESTS: usize = 100;
const SLOW: Duration = Duration::from_secs(4);

fn make_quick(server: &Running, model: &str) {
    for _ in 0..QUICK_REQUESTS {
        assert_eq!(server.infer(model, "").status, 200);
    }
}

#[test]
fn a_quick_model_that_becomes_slow_holds_nobody_up() {
    let instances = "\ninstance_group [ { count: 4 } ]";
    // One for each round: a slow batch is not forgotten soon.
    let models = ["turns0", "turns1", "turns2"];
    let server = Server::new().model("other", probe("other", &[]));
    let server = models
        .iter()
        .fold(server, |server, model| server.model(model, probe(model, &[]) + instances))
        .start();
    make_quick(&server, "other");
    for model in models {
        make_quick(&server, model);
        let begin = Instant::now();
        let (done, all_done) = channel();
        std::thread::scope(|scope| {
            // More than there are threads of the network, on a machine of few processors.
            for _ in 0..4 {
                let (server, done) = (&server, done.clone());
                scope.spawn(move || {
                    let delay = format!(r#""delay_ms":{}"#, SLOW.as_millis());
                    assert_eq!(server.infer(model, &delay).status, 200);
                    done.send(begin.elapsed()).unwrap();
                });
            }
            drop(done);
            // All of them are being executed, or wait; everybody else is answered.
            std::thread::sleep(Duration::from_millis(100));
            for _ in 0..50 {
                assert_eq!(server.get("/v2/health/ready").status, 200);
                assert_eq!(server.infer("other", "").status, 200);
            }
            let others = begin.elapsed();
            for door in DOORS {
                assert!(Caller::ask(&server, door, "other", [1.0, 2.0]).is_answered());
            }
            let first = all_done.recv().unwrap();
            assert!(others < first, "{model}: others after {others:?}, slow after {first:?}");
            assert!(all_done.iter().count() == 3);
        });
    }
}

#[test]
fn ten_thousand_requests_by_many_are_all_answered() {
    let server = Server::new().model("echo", probe("echo", &[])).start();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..1_250 {
                    assert_eq!(server.infer("echo", "").status, 200);
                }
            });
        }
    });
    let count = r#"nv_inference_request_success{model="echo",version="1"}"#;
    assert_eq!(server.metrics(count), Some(10_000.0));
    assert!(server.stop().success());
}
