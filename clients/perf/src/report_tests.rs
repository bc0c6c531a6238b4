//! Unit tests of `report.rs`.

use super::html_page;
use serde_json::{Value, json};

fn result(server: &str) -> Value {
    let point = |concurrency: u64, failures: u64| {
        json!({
            "load": { "concurrency": concurrency }, "throughput": 1000.0 * concurrency as f64,
            "requests": 5000, "failures": failures, "stable": failures == 0,
            "latency_us": { "avg": 120.0, "p50": 100.0, "p90": 150.0, "p99": 900.0, "p99.9": 1000.0, "p99.99": 2000.0, "max": 3000.0 },
            "histogram_us": [[100.0, 90], [900.0, 9], [3000.0, 1]],
            "server": { "queue_us": 12.0, "compute_us": 34.0, "executions": 10, "inferences": 25 },
        })
    };
    json!({ "server": server, "model": "a<b>&\"c\"", "points": [point(1, 0), point(2, 7)] })
}

#[test]
fn the_page_needs_nothing_else_and_shows_all_results() {
    let json = json!({
        "generation": "v2", "protocol": "HTTP", "streaming": false, "batch_size": 1, "window_ms": 5000,
        "results": [result("one:1"), result("two:2")],
    });
    let page = html_page(&json, "x < y");
    assert!(!page.contains("src=") && !page.contains("href=") && !page.contains("<script"));
    assert_eq!(page.matches("<svg").count(), 2);
    // Two curves for each server, one for each load.
    assert_eq!(page.matches("<polyline").count(), 4 + 4);
    assert_eq!(page.matches("<tr>").count(), 2 * 3);
    assert!(page.contains("<h2>a&lt;b&gt;&amp;&quot;c&quot; on two:2</h2>"));
    assert!(page.contains("<td class=\"bad\">7</td>") && page.contains("<td>2.50</td>"));
    assert!(page.contains("<pre>x &lt; y</pre>"));
    assert!(!page.contains("NaN") && !page.contains("inf,"));
}

#[test]
fn a_page_without_results_is_still_a_page() {
    let page = html_page(&json!({ "results": [] }), "");
    assert!(page.ends_with("</body></html>\n") && !page.contains("NaN"));
}
