//! A start with too few files, threads or too little memory: it fails with a log line that names
//! the limit, never with a panic of the runtime or an abort of the allocator.

use std::process::Command;
use std::time::{Duration, Instant};
use trtserver_tests::{Ended, Process, Signal, TIMEOUT, backends, compile, dist, folder};

/// The end of a server without models that `sh` starts after `prepare`; it is stopped once it is
/// ready.
fn end_of(prepare: &str) -> Ended {
    let models = folder();
    let mut command = Command::new("sh");
    command.args([
        "-c",
        &format!("{prepare}; exec '{}' \"$0\" \"$@\"", dist().join("bin/trtserver").display()),
    ]);
    command.args(["--http-port=0", "--grpc-port=0", "--metrics-port=0"]);
    command.arg(format!("--model-store={}", models.path().display()));
    command.arg(format!("--backend-dir={}", backends().display()));
    let process = Process::spawn(command);
    let begin = Instant::now();
    while !process.has_ended() && !process.stdout().contains("ready") {
        assert!(begin.elapsed() < TIMEOUT, "neither ready nor ended: {process}");
        std::thread::sleep(Duration::from_millis(5));
    }
    if !process.has_ended() {
        process.signal(Signal::TERM);
    }
    process.wait(TIMEOUT)
}

/// Whether it was ready. If it was not, a line of its log has these parts.
#[track_caller]
fn was_ready(ended: &Ended, limit: &str, parts: &[&str]) -> bool {
    let log = &ended.stderr;
    assert!(!log.contains("panicked") && !log.contains("memory allocation"), "{limit}: {log}");
    if ended.stdout.contains("ready") {
        assert_eq!(ended.code(), 0, "{limit}: {log}");
        return true;
    }
    assert_eq!(ended.code(), 1, "{limit}: {log}");
    let fits = |line: &str| line.starts_with('E') && parts.iter().all(|part| line.contains(part));
    assert!(log.lines().any(fits), "{limit}: {log}");
    false
}

#[test]
fn address_space() {
    let parts = ["cannot start", "RLIMIT_AS, ulimit -v", "raise"];
    // 80,000 KiB hold the program itself. With many processors 300,000 are too few.
    let ready = [80, 100, 120, 140, 160, 200, 300, 20_000].map(|megabytes| {
        let limit = format!("ulimit -v {megabytes}000");
        was_ready(&end_of(&limit), &limit, &parts)
    });
    assert!(!ready[0] && ready[7], "{ready:?}");
}

#[test]
fn files() {
    let ready = [6, 7, 8, 12, 14, 64].map(|files| {
        let limit = format!("ulimit -n {files}");
        let parts = ["cannot start", "RLIMIT_NOFILE, ulimit -n", "raise"];
        was_ready(&end_of(&limit), &limit, &parts)
    });
    assert_eq!(ready, [false, false, false, false, false, true]);
}

#[test]
fn threads() {
    let folder = folder();
    let library = folder.path().join("libfew_threads.so");
    compile("tests/fakes/few_threads.c", &library, &[]);
    let parts = ["cannot start: thread", "RLIMIT_NPROC, ulimit -u", "pids.max", "raise"];
    let is_ready = |count: usize| {
        let preload = format!("export LD_PRELOAD='{}' FAKE_THREADS={count}", library.display());
        was_ready(&end_of(&preload), &preload, &parts)
    };
    let enough = (0..500).find(|count| is_ready(*count));
    assert!(enough.is_some_and(|count| count > 4), "{enough:?}");
}
