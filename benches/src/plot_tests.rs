//! Unit tests of `plot.rs`.

use super::*;

#[test]
fn both_servers_of_a_series_have_one_colour() {
    let mut plot = Plot::default();
    plot.add("identity 64", "v2-http own", false, [1000.0, 50.0, 90.0]);
    plot.add("identity 64", "v2-http own", false, [9000.0, 150.0, 400.0]);
    plot.add("identity 64", "v2-http own", true, [500.0, 100.0, 200.0]);
    plot.add("nothing", "v2-http own", false, [f64::NAN, 1.0, 1.0]);
    let svg = plot.svg();
    assert_eq!(svg.matches("<polyline").count(), 4);
    assert_eq!(svg.matches("stroke-dasharray").count(), 3);
    assert_eq!(svg.matches("<circle").count(), 6);
    assert_eq!(svg.matches(&format!("stroke=\"{}\"", COLOURS[0])).count(), 4 + 6 + 2);
    assert!(!svg.contains("nothing"));
}

#[test]
fn an_axis_holds_all_values() {
    let axis = Axis::of([12.0, 90.0].into_iter(), 200.0);
    let ticks: Vec<_> = axis.ticks().map(|(at, text)| (at.round(), text)).collect();
    let expected = [(0.0, "10"), (60.0, "20"), (140.0, "50"), (200.0, "100")];
    assert_eq!(ticks, expected.map(|(at, text)| (at, text.to_owned())));
    // One value too.
    assert_eq!(Axis::of([10.0].into_iter(), 1.0).ticks().count(), 2);
}
