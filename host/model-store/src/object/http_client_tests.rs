//! Unit tests of `http_client.rs`.

use super::*;

#[test]
fn redirects_stay_on_their_host() {
    for (from, to, expected) in [
        ("https://s3.example/a", "https://s3.example/b", true),
        ("http://s3.example/a", "https://s3.example/a", true),
        ("http://s3.example:9000/a", "http://s3.example:9000/b", true),
        ("http://s3.example:9000/a", "http://s3.example:6379/a", false),
        ("http://s3.example:9000/a", "https://s3.example:9000/a", false),
        ("https://s3.example/a", "http://s3.example/a", false),
        ("https://s3.example/a", "https://other.example/a", false),
        ("http://127.0.0.1/a", "http://169.254.169.254/latest/meta-data/", false),
    ] {
        let [first, second] = [from, to].map(|url| url.parse().unwrap());
        assert_eq!(is_same_host(&first, &second), expected, "{from} to {to}");
    }
}

fn request(uri: &str, range: Option<&str>) -> HttpRequest {
    let mut request = http::Request::get(uri);
    if let Some(range) = range {
        request = request.header("range", range);
    }
    request.body(Bytes::new().into()).unwrap()
}

#[test]
fn pages_and_parts_of_objects_are_told_by_their_request() {
    for (uri, is_page) in [
        ("http://h/b?list-type=2&prefix=m%2F", true),
        ("http://h/b?delimiter=%2F&list-type=2", true),
        ("http://h/a/b?restype=container&comp=list", true),
        ("http://h/b/list-type=2", false),
        ("http://h/token", false),
    ] {
        assert_eq!(is_listing(&request(uri, None)), is_page, "{uri}");
    }
    for (range, bytes) in [
        (Some("bytes=0-9"), Some(10)),
        (Some("bytes=8-8"), Some(1)),
        (Some("bytes=8-"), None),
        (Some("bytes=9-8"), None),
        (None, None),
    ] {
        assert_eq!(requested_bytes(&request("http://h/b/k", range)), bytes, "{range:?}");
    }
}

#[test]
fn options_of_the_client_are_understood() {
    let options = ClientOptions::new()
        .with_connect_timeout(Duration::from_millis(1500))
        .with_read_timeout(Duration::from_secs(90))
        .with_http2_keep_alive_interval(Duration::from_secs(20))
        .with_proxy_url("http://127.0.0.1:1")
        .with_proxy_excludes("localhost")
        .with_allow_http(true);
    assert!(client_builder(&options).is_ok());
    let wrong = ClientOptions::new().with_config(Key::Timeout, "soon");
    assert!(client_builder(&wrong).is_err());
}
