//! Unit tests of `growth_plot.rs`.

use super::*;

#[test]
fn panels_have_a_line_for_each_series_and_the_target() {
    let mut plot = GrowthPlot::default();
    assert!(plot.is_empty());
    for (count, growth) in [(1, 1.0), (10, 1.1), (100, f64::NAN)] {
        plot.add("models", "v2-http, to one".to_owned(), count, growth);
        plot.add("models", "v2-grpc, to one".to_owned(), count, growth);
    }
    plot.add("instances", "v2-http, inline".to_owned(), 4, 0.9);
    let svg = plot.svg();
    assert_eq!(svg.matches("<polyline").count(), 3);
    assert_eq!(svg.matches("<circle").count(), 5);
    assert_eq!(svg.matches("target 1.3").count(), 2);
    assert!(!svg.contains("NaN"));
}
