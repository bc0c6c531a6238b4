//! Limits of a name: requests a second, and at a time.

use super::{AuthFile, call, metric, send};
use trtserver_tests::grpc::{INFER, STREAM, infer_v1, infer_v2};
use trtserver_tests::http1::{Connection, request};
use trtserver_tests::http2::{self, Client, message};
use trtserver_tests::{Server, probe};

const FILE: &str = "
slow {slow} infer rate=1
narrow {narrow} infer in-flight=1
admin {admin} *
";

const BODY: &[u8] =
    br#"{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,2],"data":[1,2]}]}"#;

/// `echo`, and `waits`, which takes a while.
fn server(file: &AuthFile) -> Server {
    Server::new()
        .model("echo", probe("echo", &[]))
        .model("waits", probe("waits", &[("delay_ms", "500")]))
        .flag(file.flag())
}

#[test]
fn names_have_limits_of_their_own() {
    let file = AuthFile::new(FILE);
    let running = server(&file).start();
    let infer = |name| send(running.http(), Some(name), "POST", "/v2/models/echo/infer", BODY);
    assert_eq!(infer("slow").status, 200);
    // Each attempt takes the turn of its second, or is refused because another one has: on a busy
    // machine the first may come too late to be refused.
    running.poll_until("a request over HTTP is refused", |_| {
        let refused = infer("slow");
        let text = refused.text();
        refused.status == 429
            && refused.header("retry-after") == Some("1")
            && text.contains("'slow' may send 1 requests a second")
    });
    running.poll_until("a request of v1 over HTTP is refused", |_| {
        send(running.http(), Some("slow"), "POST", "/api/infer/echo", b"").status == 429
    });
    for (path, contents) in INFER.into_iter().zip([infer_v2, infer_v1]) {
        running.poll_until("a call is refused", |running| {
            call(running, Some("slow"), path, &contents("echo", [1.0, 2.0])).status == Some(8)
        });
    }
    // Requests of a stream count one by one, and are refused in it.
    for (path, contents) in STREAM.into_iter().zip([infer_v2, infer_v1]) {
        running.poll_until("a request of a stream is refused", |running| {
            let ended = call(running, Some("slow"), path, &contents("echo", [1.0, 2.0]));
            assert_eq!(ended.status, Some(0), "{path}");
            String::from_utf8_lossy(&ended.body).contains("requests a second")
        });
    }
    assert_eq!(infer("admin").status, 200);
    running.poll_until("the second has passed", |_| infer("slow").status == 200);
    let rate = "trtserver_access_refusals_total{reason=\"rate\"}";
    assert!(metric(&running, rate) >= 6.0);
}

#[test]
fn requests_in_flight_are_limited_on_every_wire() {
    let file = AuthFile::new(FILE);
    let running = server(&file).start();
    let token = super::bearer("narrow");
    let post = |model: &str| {
        let path = format!("/v2/models/{model}/infer");
        request("POST", &path, &[("Authorization", &token)], BODY)
    };
    let infer = || Connection::open(running.http()).send(post("echo")).response();
    let rpc = || call(&running, Some("narrow"), INFER[0], &infer_v2("echo", [1.0, 2.0])).status;
    // Whichever comes first is served; the slow one shows that the other is refused meanwhile.
    running.poll_until("a second request is refused", |_| {
        let mut waits = Connection::open(running.http());
        waits.send(post("waits"));
        let (refused, status) = (infer(), rpc());
        if waits.response().status != 200 || refused.status == 200 {
            return false;
        }
        assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")));
        assert!(refused.text().contains("'narrow' may have 1 requests in flight"));
        assert_eq!(status, Some(8));
        true
    });
    running.poll_until("the first request has ended", |_| infer().status == 200);
    // A request of a stream is in flight, the stream around it is not.
    let mut headers = http2::call_headers(STREAM[0]);
    headers.push(("authorization", &token));
    running.poll_until("a request beside a stream's is refused", |_| {
        let mut client = Client::open(running.grpc());
        let stream = client.call(&headers);
        client.send(stream, &[], false);
        running.poll_until("an empty stream leaves place", |_| infer().status == 200);
        client.send(stream, &message(&infer_v2("waits", [1.0, 2.0])), true);
        let refused = infer().status == 429;
        let ended = client.end(stream);
        let body = String::from_utf8_lossy(&ended.body).into_owned();
        refused && ended.status == Some(0) && !body.contains("in flight")
    });
    running.poll_until("the stream's request has ended", |_| infer().status == 200);
}
