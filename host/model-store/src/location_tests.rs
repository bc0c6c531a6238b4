//! Unit tests of `location.rs`.

use super::*;

fn parse(text: &str) -> Result<StoreLocation, String> {
    StoreLocation::parse(Path::new(text))
}

#[test]
fn urls_are_read_as_triton_writes_them() {
    // URL; endpoint, account, bucket, prefix.
    let cases = [
        ("gs://bucket", None, "", "bucket", ""),
        ("gs://bucket/models/live/", None, "", "bucket", "models/live"),
        ("s3://bucket/models", None, "", "bucket", "models"),
        ("s3://https://host:9000/bucket/a//b", Some("https://host:9000"), "", "bucket", "a/b"),
        ("s3://http://host/bucket", Some("http://host"), "", "bucket", ""),
        ("s3://127.0.0.1:9000/bucket/a", Some("http://127.0.0.1:9000"), "", "bucket", "a"),
        ("as://account/container/a/b", None, "account", "container", "a/b"),
        ("as://account.blob.core.windows.net/container", None, "account", "container", ""),
        (
            "as://http://127.0.0.1:10000/account/container/a",
            Some("http://127.0.0.1:10000"),
            "account",
            "container",
            "a",
        ),
    ];
    for (text, endpoint, account, bucket, prefix) in cases {
        let Ok(StoreLocation::Object(url)) = parse(text) else { panic!("{text}") };
        let found = (url.endpoint.as_deref(), &*url.account, &*url.bucket, &*url.prefix);
        assert_eq!(found, (endpoint, account, bucket, prefix), "{text}");
    }
}

#[test]
fn paths_are_local() {
    for text in ["/models", "models", "./a:b", "s3:/x"] {
        assert_eq!(parse(text), Ok(StoreLocation::Local(text.into())));
    }
}

#[test]
fn incomplete_urls_are_refused() {
    for (text, reason) in [
        ("gs://", "names no bucket"),
        ("s3://host:9000", "names no bucket"),
        ("as://account", "names no container"),
        ("as:///", "names no account"),
        ("hdfs://host/models", "unknown scheme 'hdfs'"),
        ("gs://bucket/../other", "must not contain '.' or '..'"),
        ("s3://https://key:secret@host/bucket", "must not contain credentials"),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.contains(reason), "{text}: {error}");
        assert!(!error.contains("secret@"), "{error}");
    }
}

#[test]
fn keys_and_urls_of_objects_are_below_the_prefix() {
    let Ok(StoreLocation::Object(url)) = parse("s3://bucket/models/") else { panic!() };
    assert_eq!(url.key("m/1/model.onnx"), "models/m/1/model.onnx");
    assert_eq!(url.object_url("models/m/1/model.onnx"), "s3://bucket/models/m/1/model.onnx");
}
