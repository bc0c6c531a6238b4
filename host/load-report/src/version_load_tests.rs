//! Unit tests of `version_load.rs`.

use super::*;

#[test]
fn load_is_busy_time_and_predicted_wait() {
    let earlier = VersionReading { ended: 100, failed: 10, executing_ns: 1_000_000_000 };
    let second = Duration::from_secs(1);
    let ms = Duration::from_millis;
    // Requests ended and failed since, executing time in ms, instances, wait, expected values.
    for (ended, failed, executing_ms, instances, wait, expected) in [
        (0, 0, 0, 1, ms(0), (0.0, 0.0, 0.0)),
        (50, 5, 500, 1, ms(0), (50.0, 5.0, 0.5)),
        (50, 0, 500, 2, ms(0), (50.0, 0.0, 0.25)),
        // Executions may overlap on one instance; it is not busier than busy.
        (50, 0, 5000, 2, ms(0), (50.0, 0.0, 1.0)),
        (50, 0, 1000, 1, ms(50), (50.0, 0.0, 1.5)),
        (50, 0, 1000, 1, ms(200), (50.0, 0.0, 3.0)),
    ] {
        let now = VersionReading {
            ended: earlier.ended + ended,
            failed: earlier.failed + failed,
            executing_ns: earlier.executing_ns + executing_ms * 1_000_000,
        };
        let load = now.load_since(&earlier, second, instances, (wait, ms(100)));
        let found = (load.requests_per_second, load.errors_per_second, load.utilization);
        assert_eq!(found, expected, "{ended} {failed} {executing_ms} {instances} {wait:?}");
    }
}

#[test]
fn counters_that_began_anew_are_not_negative() {
    let earlier = VersionReading { ended: 100, failed: 10, executing_ns: 5 };
    let pair = (Duration::ZERO, Duration::ZERO);
    let load = VersionReading::default().load_since(&earlier, Duration::ZERO, 0, pair);
    assert_eq!(load, VersionLoad::default());
}
