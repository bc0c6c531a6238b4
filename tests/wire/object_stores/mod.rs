//! Model repositories in object stores.

mod cache;
mod check;
mod faults;
mod hostile;
mod polling;
mod providers;

use tempfile::TempDir;
use trtserver_tests::control::explicit;
use trtserver_tests::fake_gcs::FakeGcs;
use trtserver_tests::{Server, folder, probe};

/// A probe model with one version that has a file.
fn put_model(gcs: &FakeGcs, name: &str) {
    gcs.put(&format!("models/{name}/config.pbtxt"), probe(name, &[]));
    gcs.put(&format!("models/{name}/1/weights"), name.repeat(100));
}

fn cache() -> TempDir {
    folder()
}

/// A server whose repository is `models/` in the fake, with explicit control. Nothing is loaded at
/// start.
fn server(gcs: &FakeGcs, cache: &TempDir) -> Server {
    explicit()
        .flag(format!("--model-store={}", gcs.url("models")))
        .flag(format!("--model-cache-dir={}", cache.path().display()))
        .flag("--store-timeout-secs=2")
        .env("GOOGLE_APPLICATION_CREDENTIALS", gcs.key_file())
        .env("TRITON_CLOUD_CREDENTIAL_PATH", "")
}
