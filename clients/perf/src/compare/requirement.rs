//! `--require`: a condition on the result at every load.

use crate::measure::Point;
use crate::number::format_number;

#[derive(Clone, Debug, PartialEq)]
enum Condition {
    Stable,
    /// At most so many nanoseconds; `None` is the average.
    Latency {
        percent: Option<f64>,
        most_ns: f64,
    },
    /// At least so many inferences a second.
    Throughput {
        least: f64,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Requirement {
    text: String,
    condition: Condition,
}

impl Requirement {
    /// `stable`, `throughput>=N`, `avg<=TIME` or `pNN<=TIME` with a time such as 300us, 5ms or 1s.
    ///
    /// # Errors
    /// The text has none of these forms.
    pub fn parse(text: &str) -> Result<Self, String> {
        let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let wrong = || {
            format!(
                "--require '{text}': expected `stable`, `throughput>=N`, `avg<=TIME` or `p99<=TIME` with a TIME such as 5ms"
            )
        };
        let condition = if compact == "stable" {
            Condition::Stable
        } else if let Some(least) = compact.strip_prefix("throughput>=") {
            Condition::Throughput { least: positive_number(least).ok_or_else(wrong)? }
        } else {
            let (metric, limit) = compact.split_once("<=").ok_or_else(wrong)?;
            let percent = match metric.strip_prefix('p') {
                Some(percent) => {
                    Some(positive_number(percent).filter(|p| *p <= 100.0).ok_or_else(wrong)?)
                }
                None if metric == "avg" => None,
                None => return Err(wrong()),
            };
            Condition::Latency { percent, most_ns: parse_time(limit).ok_or_else(wrong)? }
        };
        Ok(Requirement { text: text.to_owned(), condition })
    }

    /// Why it does not hold.
    pub fn missed(&self, point: &Point) -> Option<String> {
        let found = match self.condition {
            Condition::Stable => {
                return (!point.stable).then(|| "the result is not stable".to_owned());
            }
            Condition::Latency { percent, most_ns } => {
                let found = match percent {
                    Some(percent) => point.window.percentile(percent),
                    None => point.window.average_ns,
                };
                (found as f64 > most_ns).then(|| format!("{} usec", found / 1000))
            }
            Condition::Throughput { least } => {
                let found = point.window.infer_per_sec;
                (found < least).then(|| format!("{} infer/sec", format_number(found)))
            }
        };
        found.map(|found| format!("required {}, found {found}", self.text))
    }
}

fn positive_number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0)
}

/// A time in nanoseconds.
fn parse_time(text: &str) -> Option<f64> {
    let units = [("ms", 1e6), ("us", 1e3), ("ns", 1.0), ("s", 1e9)];
    units.iter().find_map(|(unit, ns)| Some(positive_number(text.strip_suffix(unit)?)? * ns))
}

#[cfg(test)]
mod tests {
    use super::Requirement;
    use crate::measure::{LoadPoint, Point};
    use crate::window::Window;

    fn point(stable: bool) -> Point {
        let latencies = (1..=100).map(|n| n * 1_000_000).collect();
        let window =
            Window { latencies, average_ns: 50_500_000, infer_per_sec: 200.0, ..Window::default() };
        let load = LoadPoint::Concurrency(1);
        Point { load, window, rounds: Vec::new(), stable, met: true }
    }

    #[test]
    fn conditions_hold_or_say_what_was_found() {
        let cases = [
            ("stable", None),
            ("p99 <= 100ms", None),
            ("p99<=98000us", Some("required p99<=98000us, found 99000 usec")),
            ("p99.99<=0.1s", None),
            ("avg<=50ms", Some("required avg<=50ms, found 50500 usec")),
            ("throughput>=200", None),
            ("throughput>=200.5", Some("required throughput>=200.5, found 200 infer/sec")),
        ];
        for (text, missed) in cases {
            let requirement = Requirement::parse(text).unwrap();
            assert_eq!(requirement.missed(&point(true)).as_deref(), missed, "{text}");
        }
        assert!(Requirement::parse("stable").unwrap().missed(&point(false)).is_some());
    }

    #[test]
    fn other_conditions_are_refused() {
        for text in [
            "",
            "fast",
            "p99<=5",
            "p0<=5ms",
            "p101<=5ms",
            "p99>=5ms",
            "throughput<=3",
            "avg<=-1ms",
            "throughput>=x",
        ] {
            assert!(Requirement::parse(text).is_err(), "{text}");
        }
    }
}
