//! Sequences of isolated models across a restart of the child process.

use rustix::process::kill_process;
use trtserver_tests::isolated::process;
use trtserver_tests::scheduled::{NEVER, accumulator, flag, sequences};
use trtserver_tests::{Running, Server, Signal, parameters};

/// One request of a sequence: the sum or the error message.
fn step(server: &Running, model: &str, id: u64, flags: &str, more: &str) -> Result<i64, String> {
    let json = format!(
        r#"{{"parameters":{{"sequence_id":{id}{flags}{more}}},"inputs":[{{"name":"INPUT0","datatype":"INT32","shape":[1,1],"data":[1]}}],"outputs":[{{"name":"OUTPUT0"}}]}}"#
    );
    let response = server.post(&format!("/v2/models/{model}/infer"), &[], json);
    match response.status {
        200 => Ok(response.json()["outputs"][0]["data"][0].as_i64().unwrap_or(-1)),
        _ => Err(response.error_text()),
    }
}

#[test]
fn lost_sequence_is_refused_until_start() {
    let controls = [flag("START", "int32"), flag("READY", "int32")];
    let config = accumulator("sums", 4, "slot", &sequences(NEVER, "direct { }", &controls));
    let config = config + &parameters(&[("isolation", "process")]);
    let server = Server::new().model("sums", config).start();
    let start = r#","sequence_start":true"#;
    let ends = r#","sequence_end":true"#;
    let go = |id, flags, more| step(&server, "sums", id, flags, more);
    for id in [1, 2] {
        assert_eq!(go(id, start, ""), Ok(1));
        assert_eq!(go(id, "", ""), Ok(2));
    }
    let says = go(1, "", r#","die":"crash""#).unwrap_err();
    assert!(says.contains("SIGSEGV"), "{says}");
    for id in [1, 2] {
        for flags in ["", "", ends] {
            let says = go(id, flags, "").unwrap_err();
            let lost = format!("sequence {id} of model 'sums' cannot continue");
            assert!(says.contains(&lost), "{says}");
        }
    }
    // A new sequence starts and continues.
    assert_eq!([go(2, start, ""), go(2, "", ""), go(3, start, "")], [Ok(1), Ok(2), Ok(1)]);
    assert_eq!([go(2, ends, ""), go(3, "", "")], [Ok(3), Ok(2)]);
    let says = go(2, "", "").unwrap_err();
    assert!(says.contains("START"), "{says}");
    assert_eq!(go(3, ends, ""), Ok(3));
    assert!(server.stop().success());
}

#[test]
fn implicit_state_survives_a_restart() {
    let state = r#"  state [ { input_name: "S_IN" output_name: "S_OUT" data_type: TYPE_INT32 dims: [ 1 ] } ]"#;
    let scheduling = sequences(NEVER, "oldest { }", &[flag("START", "int32"), state.to_owned()]);
    let config = accumulator("kept", 4, "state", &scheduling);
    let config = config + &parameters(&[("isolation", "process")]);
    let server = Server::new().model("kept", config).start();
    let start = r#","sequence_start":true"#;
    assert_eq!(step(&server, "kept", 1, start, ""), Ok(1));
    for sum in 2..5 {
        kill_process(process(&server, "kept"), Signal::KILL).unwrap();
        let mut response = step(&server, "kept", 1, "", "");
        if response.as_ref().is_err_and(|says| says.contains("SIGKILL")) {
            response = step(&server, "kept", 1, "", "");
        }
        assert_eq!(response, Ok(sum));
    }
    assert_eq!(step(&server, "kept", 1, r#","sequence_end":true"#, ""), Ok(5));
    assert!(server.stop().success());
}

#[test]
fn oversized_step_does_not_end_sequences() {
    let controls = [flag("START", "int32"), flag("READY", "int32")];
    let config = accumulator("sums", 4, "slot", &sequences(NEVER, "direct { }", &controls));
    let isolated = parameters(&[("isolation", "process")]);
    let server = Server::new().model("sums", config + &isolated).start();
    for id in [1, 2] {
        assert_eq!(step(&server, "sums", id, r#","sequence_start":true"#, ""), Ok(1));
    }
    let long = format!(r#","note":"{}""#, "x".repeat(2 << 20));
    let says = step(&server, "sums", 1, "", &long).unwrap_err();
    assert!(says.contains("at most 1048576"), "{says}");
    for id in [1, 2] {
        assert_eq!(step(&server, "sums", id, r#","sequence_end":true"#, ""), Ok(2));
    }
    assert!(server.stop().success());
}
