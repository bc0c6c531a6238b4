//! A library of the legacy custom interface that misbehaves on command (tests/custom/faulty.c): the
//! server reports it and keeps serving another model.

use tempfile::TempDir;
use trtserver_tests::custom::{Custom, Generation, MODES, Mode, command, faulty, library, setting};
use trtserver_tests::{Connection, Response, Running, Server, folder};

const BOTH: [Generation; 2] = [Generation::B, Generation::V2b];

/// A server with a good model and faulty ones, and the folder that they share with the test.
struct Stage {
    server: Running,
    folder: TempDir,
}

/// The value of an output.
fn number(response: &Response, output: &str) -> Option<i64> {
    let json = response.json();
    let found = json["outputs"].as_array()?.iter().find(|one| one["name"] == output)?;
    found["data"][0].as_i64()
}

impl Stage {
    /// With these faulty models and the good model, which is always local.
    fn new(models: Vec<Custom>) -> Self {
        let folder = folder();
        let mut server = Server::new()
            .env("CUSTOM_TRACE", folder.path().join("trace"))
            .env("CUSTOM_RELEASE", folder.path())
            .flag("--exit-on-error=false")
            .custom(faulty("good", Generation::C).mode(Mode::Local));
        for model in models {
            server = server.custom(model);
        }
        Stage { server: server.start(), folder }
    }

    /// Waits until a model has traced this line for the `nth` time (from 1).
    fn wait_for_trace(&self, line: &str, nth: usize) {
        let trace = self.folder.path().join("trace");
        let written = |_: &Running| {
            let trace = std::fs::read_to_string(&trace).unwrap_or_default();
            trace.lines().filter(|one| *one == line).count() >= nth
        };
        self.server.poll_until(line, written);
    }

    fn release(&self, name: &str) {
        let path = self.folder.path().join(name);
        std::fs::write(&path, "").unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }

    /// Sends a command without waiting for the response.
    fn send(&self, model: &str, text: &str) -> Connection {
        let mut connection = self.server.connect();
        connection.send(command(model, text));
        connection
    }

    #[track_caller]
    fn works(&self, model: &str, when: &str) {
        let response = self.send(model, "good").response();
        assert_eq!(response.status, 200, "{model} {when}: {}", response.text());
        assert_eq!(number(&response, "OUTPUT0"), Some(5), "{model} {when}");
    }

    /// The response to a command; the good model must serve during and after it.
    #[track_caller]
    fn command(&self, model: &str, text: &str) -> Response {
        let mut pending = self.send(model, text);
        self.works("good", &format!("during {text}"));
        let response = pending.response();
        self.works("good", &format!("after {text}"));
        response
    }

    /// The command must fail with this message, and the faulty model must still serve.
    #[track_caller]
    fn fails(&self, model: &str, text: &str, parts: &[&str]) {
        let response = self.command(model, text);
        let says = response.error_text();
        assert!(response.status >= 400, "{model}, {text}: {says}");
        for part in parts {
            assert!(says.contains(part), "{model}, {text}: no {part:?} in {says:?}");
        }
        self.works(model, &format!("after {text}"));
    }

    /// The command must succeed.
    #[track_caller]
    fn succeeds(&self, model: &str, text: &str) {
        let response = self.command(model, text);
        assert_eq!(response.status, 200, "{model}, {text}: {}", response.text());
        assert_eq!(number(&response, "OUTPUT0"), Some(5), "{model}, {text}");
        self.works(model, &format!("after {text}"));
    }

    fn ends(self) {
        assert!(self.server.stop().success());
    }
}

/// Misbehaviour that the library's process survives.
fn survivable(mode: Mode) {
    let name = |generation: Generation| format!("faulty_{}", generation.name());
    let mut models: Vec<Custom> =
        BOTH.iter().map(|&generation| faulty(&name(generation), generation).mode(mode)).collect();
    models.push(faulty("pair", Generation::B).mode(mode).more(
        "dynamic_batching { preferred_batch_size: [ 2 ] max_queue_delay_microseconds: 60000000 }",
    ));
    let stage = Stage::new(models);
    for (nth, generation) in (1..).zip(BOTH) {
        let model = &name(generation);
        let instance = format!("'{model}_0_0_cpu'");
        let says = |text: &str| text.replace("INST", &instance);
        stage.fails(model, "execute_error", &[&says("execute error for INST: (7) out of ink")]);
        let silent = says("execute error for INST: (8) <no error string>");
        stage.fails(model, "execute_silent_error", &[&silent]);
        stage.fails(model, "payload_error", &[&says("payload error for INST: (9) out of paper")]);
        let silent = says("payload error for INST: (8) <no error string>");
        stage.fails(model, "payload_silent_error", &[&silent]);
        for text in ["unasked", "null_name", "null_pointers", "leak"] {
            stage.succeeds(model, text);
        }
        for text in ["no_response", "wrong_shape", "wrong_rank", "negative_shape", "huge_shape"] {
            stage.fails(model, text, &["OUTPUT0", model]);
        }
        for text in ["too_big", "too_small", "no_size", "null_shape"] {
            stage.fails(model, text, &["OUTPUT0", model]);
        }
        let response = stage.command(model, "write_to_input");
        match mode {
            Mode::Local => assert_eq!(number(&response, "OUTPUT0"), Some(99)),
            // A child process has inputs in read-only memory.
            Mode::Isolated => {
                assert!(response.error_text().contains("SIGSEGV"), "{}", response.text())
            }
        }
        // The first output stands or the request fails; the second one is never returned.
        let response = stage.command(model, "twice");
        assert_ne!(number(&response, "OUTPUT0"), Some(2), "{}", response.text());
        stage.wait_for_trace("twice refused", nth);
        stage.works(model, "after twice");
        late_calls(&stage, model, nth);
    }
    one_payload_of_two(&stage);
    hangs(&stage, &name(Generation::B));
    stage.ends();
}

/// Callbacks after execute has returned are refused.
fn late_calls(stage: &Stage, model: &str, nth: usize) {
    stage.succeeds(model, "call_late");
    stage.release("call_late");
    stage.wait_for_trace("called late: output refused, input refused", nth);
    stage.works(model, "after late calls");
}

/// Of two requests in one batch only the one with the error fails.
fn one_payload_of_two(stage: &Stage) {
    for (first, second) in [("good", "payload_error"), ("payload_error", "good")] {
        let mut pending = [stage.send("pair", first), stage.send("pair", second)];
        let responses = pending.each_mut().map(Connection::response);
        for (response, text) in responses.iter().zip([first, second]) {
            if text == "good" {
                assert_eq!(response.status, 200, "{}", response.text());
                assert_eq!(number(response, "BATCH"), Some(2), "they were not executed together");
            } else {
                let says = response.error_text();
                assert!(
                    says.contains("payload error for 'pair_0_0_cpu': (9) out of paper"),
                    "{says}"
                );
            }
        }
    }
    // An error of the whole batch fails both.
    let mut pending = [stage.send("pair", "good"), stage.send("pair", "execute_error")];
    for response in pending.each_mut().map(Connection::response) {
        let says = response.error_text();
        assert!(says.contains("execute error for 'pair_0_0_cpu': (7) out of ink"), "{says}");
    }
}

/// It blocks in execute until released; only its own requests wait.
fn hangs(stage: &Stage, model: &str) {
    let mut hung = stage.send(model, "hang");
    stage.wait_for_trace("hangs", 1);
    for _ in 0..20 {
        stage.works("good", "while another hangs");
    }
    stage.release("hang");
    assert_eq!(hung.response().status, 200);
    stage.works(model, "after its release");
}

/// Misbehaviour that ends the process: command and parts of the error message.
const DEADLY: [(&str, &[&str]); 7] = [
    ("crash", &["signal", "11"]),
    ("abort", &["signal", "6"]),
    ("exit", &["exit", "3"]),
    ("exit_with_message", &["exit", "4", "message before exit"]),
    ("thread_dies", &["signal", "6"]),
    ("unresolved", &["exit", "undefined_function"]),
    ("throws", &["signal", "6", "exception"]),
];

fn thrower(mode: Mode) -> Custom {
    faulty("throws", Generation::B).bytes(library("thrower.cc", Generation::B, &[])).mode(mode)
}

/// Only isolated.
fn fatal(mode: Mode) {
    assert_eq!(mode, Mode::Isolated, "the server would be what dies");
    let sleeper = faulty("sleeper", Generation::C).parameter("isolation_deadline_seconds", "0.5");
    let mut models =
        vec![thrower(mode), faulty("late", Generation::B).mode(mode), sleeper.mode(mode)];
    for (command, _) in DEADLY.iter().filter(|(command, _)| *command != "throws") {
        models.push(faulty(command, Generation::B).mode(mode));
    }
    let stage = Stage::new(models);
    for (command, parts) in DEADLY {
        let response = stage.command(command, command);
        let says = response.error_text();
        assert!(response.status >= 500, "{command}: {says}");
        for part in parts.iter().chain(&[command]) {
            assert!(says.contains(part), "{command}: no {part:?} in {says:?}");
        }
        // The child is restarted, after a back-off if need be.
        if command != "throws" {
            let well = |_: &Running| stage.send(command, "good").response().status == 200;
            stage.server.poll_until(&format!("{command} to be started again"), well);
        }
        stage.works("good", &format!("after {command}"));
    }
    let response = stage.command("sleeper", "sleep_forever");
    let says = response.error_text();
    assert!(says.contains("did not respond within 0.5 s"), "{says}");
    let response = stage.command("late", "write_late");
    assert_eq!(number(&response, "OUTPUT0"), Some(1));
    stage.release("write_late");
    stage.wait_for_trace("wrote late", 1);
    stage.works("good", "after something was written late");
    stage.ends();
}

/// Libraries whose process dies in initialize.
fn fatal_initialize(mode: Mode) {
    assert_eq!(mode, Mode::Isolated, "the server would be what dies");
    let begins: [(&str, &[&str]); 3] = [
        ("initialize_crash", &["signal", "11"]),
        ("initialize_abort", &["signal", "6"]),
        ("initialize_exit", &["exit", "3"]),
    ];
    let one = |(name, _): &(&str, _)| faulty(name, Generation::B).mode(mode).more(&setting(name));
    let stage = Stage::new(begins.iter().map(one).collect());
    for (name, parts) in begins {
        let line = stage.server.wait_for_log_with(&["failed to load", &format!("'{name}'")]);
        for part in parts {
            assert!(line.contains(part), "no {part:?} in {line:?}");
        }
        assert_eq!(stage.server.get(&format!("/v2/models/{name}/ready")).status, 400);
        stage.works("good", &format!("beside {name}"));
    }
    stage.ends();
}

/// Nothing says its generation, and no trial shows it.
#[test]
fn library_that_crashes_in_every_trial_is_refused() {
    for mode in MODES {
        let crash = "initialize_crash";
        let model = faulty(crash, Generation::V2b).mode(mode).more(&setting(crash));
        let model = model.bytes(library("faulty.c", Generation::B, &[]));
        let stage = Stage::new(vec![model]);
        stage.server.wait_for_log_with(&[
            "failed to load",
            "libcustom.so: it exports no CustomVersion, and no parameter 'custom_api' says its generation",
            "ends with signal 11 as one of generation B",
            "name its generation by the parameter 'custom_api'",
        ]);
        stage.works("good", "beside a library of no generation");
        stage.ends();
    }
}

#[test]
fn misbehaviour_is_contained() {
    for mode in MODES {
        survivable(mode);
        if mode == Mode::Isolated {
            fatal(mode);
            fatal_initialize(mode);
        }
    }
}
