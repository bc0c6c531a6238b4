//! The same repository from disk and from each kind of object store gives the same responses.

use super::{cache, server};
use serde_json::Value;
use std::process::Command;
use trtserver_tests::control::Control;
use trtserver_tests::fake_gcs::{FakeGcs, files_below};
use trtserver_tests::{
    Process, Repository, Running, Server, TIMEOUT, azurite, keep_bytecode, python, root,
};

const MODELS: [&str; 3] = ["addsub_fp32", "identity_string", "classes"];

/// What clients see of the models: index, configurations, and the response to a request.
fn seen(server: &Running) -> Vec<Value> {
    let mut seen = vec![server.index()];
    for model in MODELS {
        seen.push(server.get(&format!("/v2/models/{model}/config")).json());
    }
    let request = r#"{"inputs":[
        {"name":"INPUT0","shape":[1,16],"datatype":"FP32","data":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]},
        {"name":"INPUT1","shape":[1,16],"datatype":"FP32","data":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}]}"#;
    let response = server.post("/v2/models/addsub_fp32/infer", &[], request);
    assert_eq!(response.status, 200, "{}", response.text());
    seen.push(response.json());
    seen
}

fn on_disk() -> Server {
    let server = trtserver_tests::control::explicit().flag("--load-model=*");
    MODELS.iter().fold(server, |server, model| server.copy_model(format!("tests/models/{model}")))
}

#[test]
fn google_cloud_storage_gives_the_responses_of_the_disk() {
    let disk = seen(&on_disk().start());
    let gcs = FakeGcs::start();
    for model in MODELS {
        gcs.put_all(&root().join("tests/models").join(model), &format!("models/{model}"));
    }
    let cache = cache();
    let server = server(&gcs, &cache).flag("--load-model=*").start();
    assert_eq!(seen(&server), disk);
}

/// The models below `models/`, as they are uploaded.
fn folder_of_models() -> Repository {
    let repository = Repository::new();
    for model in MODELS {
        for (path, content) in files_below(&root().join("tests/models").join(model)) {
            repository.file(format!("models/{model}/{path}"), content);
        }
    }
    repository
}

/// Runs a script of `tests/python`.
fn script(name: &str, arguments: &[&str]) -> Process {
    let program = python("s3").unwrap_or_else(|| panic!("no Python"));
    let mut command = Command::new(program);
    command.arg(root().join("tests/python").join(name)).args(arguments);
    keep_bytecode(&mut command);
    Process::spawn(command)
}

fn word_after(text: &str, prefix: &str) -> Option<String> {
    let (_, rest) = text.split_once(prefix)?;
    let (line, _) = rest.split_once('\n')?;
    Some(line.trim().to_owned())
}

#[test]
fn s3_gives_the_responses_of_the_disk() {
    let disk = seen(&on_disk().start());
    let models = folder_of_models();
    let s3 = script("s3_server.py", &[&models.path().display().to_string()]);
    let address = s3.stdout_until("listening", |out| word_after(out, "listening "));
    let cache = cache();
    let start = |url: String, credentials: &str| {
        let server = trtserver_tests::control::explicit()
            .flag("--load-model=*")
            .flag(format!("--model-repository={url}"))
            .flag(format!("--model-cache-dir={}", cache.path().display()));
        let file = models.file("credentials.json", credentials);
        server.env("TRITON_CLOUD_CREDENTIAL_PATH", file).start()
    };
    let entry =
        r#"{"s3": {"": {"key_id": "tester", "secret_key": "TOP-SECRET", "region": "us-east-1"}}}"#;
    // As Triton writes it: without a scheme, and with one.
    for url in
        [format!("s3://{address}/bucket/models"), format!("s3://http://{address}/bucket/models")]
    {
        let server = start(url, entry);
        assert_eq!(seen(&server), disk);
        assert!(!server.log().contains("TOP-SECRET"), "{}", server.log());
    }
    // As charts and KServe have it: everything but the bucket in the environment.
    let copies = trtserver_tests::folder();
    let server = trtserver_tests::control::explicit()
        .flag("--load-model=*")
        .flag("--model-repository=s3://bucket/models")
        .env("TRITON_CLOUD_CREDENTIAL_PATH", "")
        .env("AWS_ENDPOINT_URL", format!("http://{address}"))
        .env("AWS_ACCESS_KEY_ID", "tester")
        .env("AWS_SECRET_ACCESS_KEY", "TOP-SECRET")
        .env("AWS_DEFAULT_REGION", "us-east-1")
        .env("TRITON_AWS_MOUNT_DIRECTORY", copies.path())
        .start();
    assert_eq!(seen(&server), disk);
    assert!(copies.path().read_dir().is_ok_and(|mut files| files.next().is_some()), "no copies");
}

#[test]
fn azure_gives_the_responses_of_the_disk() {
    const ACCOUNT: &str = "tester";
    // Base64 of a text.
    const KEY: &str = "YSBrZXkgb2YgdGhpcyB0ZXN0IGFsb25lLCAzMiBieXRl";
    let disk = seen(&on_disk().start());
    let models = folder_of_models();
    let mut command = Command::new(azurite());
    command.args(["--blobHost", "127.0.0.1", "--blobPort", "0"]);
    command.args(["--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry"]);
    command.env("AZURITE_ACCOUNTS", format!("{ACCOUNT}:{KEY}"));
    let azure = Process::spawn(command);
    let endpoint = azure.stdout_until("listens", |out| word_after(out, "listens on "));
    let folder = models.path().display().to_string();
    let upload = script("azure_upload.py", &[&endpoint, ACCOUNT, KEY, &folder]);
    let uploaded = upload.wait(TIMEOUT);
    assert_eq!(uploaded.code(), 0, "{}", uploaded.stderr);
    let cache = cache();
    let server = trtserver_tests::control::explicit()
        .flag("--load-model=*")
        .flag(format!("--model-repository=as://{endpoint}/{ACCOUNT}/container/models"))
        .flag(format!("--model-cache-dir={}", cache.path().display()))
        .env("TRITON_CLOUD_CREDENTIAL_PATH", "")
        .env("AZURE_STORAGE_KEY", KEY)
        .start();
    assert_eq!(seen(&server), disk);
    assert!(!server.log().contains(KEY), "{}", server.log());
}
