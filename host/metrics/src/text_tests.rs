//! Unit tests of `text.rs`.

use super::super::family::{FamilyBuilder, Labels};
use super::*;

fn labels(value: &str) -> Labels {
    vec![("l".to_owned(), value.to_owned())]
}

fn families() -> Vec<MetricFamily> {
    let mut old = FamilyBuilder::counter("nv_old", "a \"quoted\" \\ help");
    old.put(&labels("x\"\\\n"), 3.0);
    let mut new = FamilyBuilder::counter("new_total", "h");
    new.put(&Labels::new(), 0.5);
    let mut histogram = FamilyBuilder::histogram("h", "h");
    histogram.put_buckets(&labels("v"), &[0.25, 2.0], &[1, 0, 2], 7.5);
    let mut summary = FamilyBuilder::summary("s", "h");
    summary.put_quantiles(&Labels::new(), [(0.5, f64::NAN), (1.0, 4.0)].into_iter(), (2, 6.0));
    [old, new, histogram, summary].map(FamilyBuilder::done).into()
}

#[test]
fn text_format() {
    let expected = r#"# HELP nv_old a "quoted" \\ help
# TYPE nv_old counter
nv_old{l="x\"\\\n"} 3
# HELP new_total h
# TYPE new_total counter
new_total 0.5
# HELP h h
# TYPE h histogram
h_bucket{l="v",le="0.25"} 1
h_bucket{l="v",le="2"} 1
h_bucket{l="v",le="+Inf"} 3
h_sum{l="v"} 7.5
h_count{l="v"} 3
# HELP s h
# TYPE s summary
s{quantile="0.5"} NaN
s{quantile="1"} 4
s_sum 6
s_count 2
"#;
    assert_eq!(encode_families(&families(), MetricsFormat::Text), expected);
}

#[test]
fn open_metrics_has_counters_that_end_in_total() {
    let expected = r#"# HELP nv_old a \"quoted\" \\ help
# TYPE nv_old counter
nv_old_total{l="x\"\\\n"} 3
# HELP new h
# TYPE new counter
new_total 0.5
# HELP h h
# TYPE h histogram
h_bucket{l="v",le="0.25"} 1
h_bucket{l="v",le="2.0"} 1
h_bucket{l="v",le="+Inf"} 3
h_sum{l="v"} 7.5
h_count{l="v"} 3
# HELP s h
# TYPE s summary
s{quantile="0.5"} NaN
s{quantile="1.0"} 4
s_sum 6
s_count 2
# EOF
"#;
    assert_eq!(encode_families(&families(), MetricsFormat::OpenMetrics), expected);
}

#[test]
fn counters_do_not_become_one_family_in_open_metrics() {
    let families = ["a", "a_total"].map(|name| {
        let mut family = FamilyBuilder::counter(name, "h");
        family.put(&Labels::new(), 1.0);
        family.done()
    });
    let expected = "# HELP a h\n# TYPE a unknown\na 1\n\
                    # HELP a h\n# TYPE a counter\na_total 1\n# EOF\n";
    assert_eq!(encode_families(&families, MetricsFormat::OpenMetrics), expected);
}
