//! What an isolated backend logs and prints: within one limit, and unable to forge records.

use trtserver_tests::isolated::isolated;
use trtserver_tests::{Running, Server, Signal, probe};

/// The burst of the limit is 1 MiB, then 128 KiB a second.
const MAX_LOG: usize = 4 << 20;

fn ended(server: &Running) -> String {
    server.signal(Signal::TERM);
    server.wait().stderr
}

/// Lines of the flood of a model that are in the log, and those that were left out.
fn count_lines(log: &str, model: &str) -> (usize, usize) {
    let name = format!("model {model}:1");
    let (mut logged, mut left_out) = (0, 0);
    for line in log.lines().filter(|line| line.contains(&name)) {
        logged += usize::from(line.contains("\"logged ") || line.contains("\"printed "));
        if let Some((text, _)) = line.split_once(" lines of ") {
            let number = text.rsplit('"').next().and_then(|number| number.parse::<usize>().ok());
            left_out += number.unwrap_or(0);
        }
    }
    (logged, left_out)
}

#[test]
fn flood_of_lines_is_limited_on_every_way_and_counted() {
    let server = Server::new()
        .model("logging", isolated("logging", &[]))
        .model("printing", isolated("printing", &[]))
        .model("both", isolated("both", &[]))
        .start();
    let floods = [
        ("logging", r#""log_lines":20000"#, 20_000),
        ("printing", r#""print_lines":20000"#, 20_000),
        ("both", r#""log_lines":10000,"print_lines":10000"#, 20_000),
    ];
    for (model, flood, _) in floods {
        assert_eq!(server.infer(model, flood).status, 200, "{model}");
    }
    // By itself: the models log nothing after this.
    for (model, _, sent) in floods {
        server.poll_until("the number of lines that were left out", |server| {
            let (logged, left_out) = count_lines(&server.log(), model);
            logged + left_out >= sent
        });
    }
    let log = ended(&server);
    // 20,000 lines of each would be 18 MB.
    assert!(log.len() < floods.len() * MAX_LOG, "{} bytes", log.len());
    for (model, _, sent) in floods {
        let (logged, left_out) = count_lines(&log, model);
        assert!((100..5000).contains(&logged), "{model}: {logged}");
        // What the process says when it closes is left out, too.
        let all = logged + left_out;
        assert!((sent..sent + 10).contains(&all), "{model}: {logged} logged, {left_out} left out");
    }
}

#[test]
fn source_file_of_a_record_cannot_forge_another() {
    let server = Server::new()
        .model("local", probe("local", &[]))
        .model("isolated", isolated("isolated", &[]))
        .start();
    let forged = r#"x.rs:1] \"all is well\"\nE0101 00:00:00.000000 1 y.rs:2] \"forged\" z"#;
    for model in ["local", "isolated"] {
        let command = format!(r#""log_lines":1,"log_file":"{forged}""#);
        assert_eq!(server.infer(model, &command).status, 200, "{model}");
    }
    let log = ended(&server);
    assert_eq!(log.matches("x.rs_1___all_is_well").count(), 2, "{log}");
    assert!(!log.lines().any(|line| line.starts_with("E0101")), "{log}");
    assert!(!log.contains("x.rs:1]") && !log.contains("y.rs:2]"), "{log}");
}
