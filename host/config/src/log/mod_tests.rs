//! Unit tests of `mod.rs`.

use super::*;

/// Runs `body` with its own log and returns level letter and message of each line.
fn logged(settings: &LogSettings, body: impl FnOnce(&LogControl)) -> Vec<String> {
    let bytes = Arc::new(Mutex::new(Vec::new()));
    let control = LogControl::new(settings);
    let sink = LogSink::Memory(Arc::clone(&bytes));
    let lines = LineLayer { settings: Arc::clone(&control.0), sink, pid: 7 };
    let subscriber = tracing_subscriber::registry().with(lines);
    tracing::subscriber::with_default(subscriber, || body(&control));
    let text = String::from_utf8(bytes.lock().clone()).unwrap();
    let message = |line: &str| line.split_once("] ").unwrap().1.trim_matches('"').to_owned();
    text.lines().map(|line| format!("{} {}", &line[..1], message(line))).collect()
}

fn one_of_each() {
    tracing::error!("error");
    tracing::warn!("warning");
    tracing::info!("info");
    tracing::debug!("step");
    tracing::trace!("request");
    tracing::debug!(target: "hyper", "library");
}

#[test]
fn levels_switch_independently_at_run_time() {
    let on = LogSettings::default();
    assert_eq!(logged(&on, |_| one_of_each()), ["E error", "W warning", "I info"]);

    let verbose = LogSettings { info: false, verbose: 1, ..on.clone() };
    assert_eq!(logged(&verbose, |_| one_of_each()), ["E error", "W warning", "I step"]);

    let only = LogSettings { error: false, warning: false, ..on.clone() };
    assert_eq!(logged(&only, |_| one_of_each()), ["I info"]);

    let all = LogSettings { verbose: 3, ..on.clone() };
    let changed = logged(&only, |control| {
        one_of_each();
        control.change(|settings| *settings = all.clone());
        assert_eq!(control.settings(), all);
        one_of_each();
    });
    let want = ["I info", "E error", "W warning", "I info", "I step", "I request", "I library"];
    assert_eq!(changed, want);
}

#[test]
fn open_error_names_the_file() {
    let error = open_log_file(Path::new("/no/such/dir/log")).unwrap_err();
    assert!(error.to_string().starts_with("cannot open the log file /no/such/dir/log: "));
}
