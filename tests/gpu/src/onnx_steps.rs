//! Where the time of a request to an ONNX model on a GPU goes: from the statistics and the log of
//! the server.

use serde_json::Value;
use std::time::Duration;

/// Sizes that a model is prepared for, and the time of a run of each when it was loaded: alone on
/// the stream of the instance, with everything in place.
pub fn prepared_runs(log: &str, model: &str) -> Option<Vec<(usize, Duration)>> {
    let begin = format!("model '{model}': prepared for batches of ");
    let line = log.lines().rev().find_map(|line| Some(line.split_once(&begin)?.1))?;
    let (sizes, rest) = line.split_once(" rows")?;
    let times = rest.split_once("a run takes ")?.1.split_once(" us")?.0;
    let numbers =
        |list: &str| list.split(", ").map(|n| n.parse().ok()).collect::<Option<Vec<u64>>>();
    let (sizes, times) = (numbers(sizes)?, numbers(times)?);
    let run = |(rows, us): (u64, u64)| (rows as usize, Duration::from_micros(us));
    (sizes.len() == times.len()).then(|| sizes.into_iter().zip(times).map(run).collect())
}

/// The last means that the plugin has logged: `inputs 8.1 us, run 930.4 us, outputs 5.0 us`.
pub fn plugin_steps<'a>(log: &'a str, model: &str) -> Option<&'a str> {
    let begin = format!("model '{model}': means of ");
    let line = log.lines().rev().find_map(|line| Some(line.split_once(&begin)?.1))?;
    let (_, steps) = line.split_once(" batches: ")?;
    Some(steps.split_once(" us\"").map_or(steps, |(steps, _)| steps))
}

/// Means of the steps of a request between two statistics of a model.
pub fn host_steps(before: &Value, after: &Value) -> Option<String> {
    let number = |of: &Value, step: &str, key: &str| {
        of["model_stats"][0]["inference_stats"][step][key].as_u64()
    };
    let mut parts = Vec::new();
    for step in ["queue", "compute_input", "compute_infer", "compute_output", "success"] {
        let [count, ns] = ["count", "ns"]
            .map(|key| Some(number(after, step, key)?.saturating_sub(number(before, step, key)?)));
        let mean = ns? as f64 / count?.max(1) as f64 / 1000.0;
        parts.push(format!("{step} {mean:.1}"));
    }
    Some(parts.join(", ") + " us")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const LOG: &str = "I1 prepared.rs:1] \"model 'r': prepared for batches of 1, 8 rows with CUDA graphs: a run takes \
         913, 1831 us; 7 bytes of GPU 0 in 2 sessions\"\n\
         V1 step_times.rs:1] \"model 'r': means of 256 batches: inputs 8.1 us, run 930.4 us, outputs 5.0 us\" scope=\"x\"\n";

    #[test]
    fn log_lines_are_read() {
        let runs = prepared_runs(LOG, "r").unwrap();
        assert_eq!(runs, [(1, Duration::from_micros(913)), (8, Duration::from_micros(1831))]);
        assert_eq!(plugin_steps(LOG, "r"), Some("inputs 8.1 us, run 930.4 us, outputs 5.0"));
        assert_eq!((prepared_runs(LOG, "other"), plugin_steps("", "r")), (None, None));
    }

    #[test]
    fn means_are_those_of_the_requests_between() {
        let stats = |count: u64, ns: u64| {
            let step = json!({ "count": count, "ns": ns });
            json!({ "model_stats": [ { "inference_stats": { "queue": step, "compute_input": step,
                "compute_infer": step, "compute_output": step, "success": step } } ] })
        };
        let steps = host_steps(&stats(2, 1000), &stats(6, 9000)).unwrap();
        assert_eq!(
            steps,
            "queue 2.0, compute_input 2.0, compute_infer 2.0, compute_output 2.0, success 2.0 us"
        );
        assert_eq!(host_steps(&json!({}), &stats(1, 1)), None);
    }
}
