//! Unit tests of `health.rs`.

use super::*;
use http::HeaderValue;

#[test]
fn body_follows_what_the_client_asks_for() {
    use HealthBody::{Empty, Json};
    let table: &[(&[(&str, &str)], HealthBody)] = &[
        (&[], Empty),
        (&[("accept", "*/*"), ("user-agent", "curl/8.5.0")], Empty),
        (&[("accept", "*/*"), ("user-agent", "kube-probe/1.31")], Empty),
        (&[("accept", "*/*"), ("user-agent", "python-requests/2.32.3")], Empty),
        (&[("accept", "application/json")], Json),
        (&[("accept", "text/html, Application/JSON;q=0.5")], Json),
        (&[("accept", "application/json;q=0")], Empty),
        (&[("accept", "application/jsonlines")], Empty),
        (&[("accept", "*/*"), ("user-agent", "python-httpx/0.28.1")], Json),
        (&[("user-agent", "like python-httpx/0.28.1")], Empty),
    ];
    for (headers, expected) in table {
        let mut map = HeaderMap::new();
        for (name, value) in *headers {
            map.append(*name, HeaderValue::from_static(value));
        }
        assert_eq!(HealthBody::from_headers(&map), *expected, "{headers:?}");
    }
}
