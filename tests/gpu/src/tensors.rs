//! Requests of protocol v2 with binary tensors, and the times of their responses.

use serde_json::{Value, json};
use std::time::{Duration, Instant};
use trtserver_tests::http1::{Connection, Response, request};

/// `n` floats, `first`, `first + 1`, and so on.
pub fn floats(first: f32, n: usize) -> Vec<u8> {
    (0..n).flat_map(|i| (first + i as f32).to_le_bytes()).collect()
}

/// An inference request for models of [`crate::models`]: INPUT0 and INPUT1 of `n` floats each, as
/// binary data.
pub fn binary(model: &str, n: usize) -> Vec<u8> {
    let (a, b) = (floats(0.0, n), floats(1.0, n));
    let input = |name: &str, bytes: &[u8]| {
        json!({ "name": name, "datatype": "FP32", "shape": [1, n],
                "parameters": { "binary_data_size": bytes.len() } })
    };
    let head = json!({
        "inputs": [input("INPUT0", &a), input("INPUT1", &b)],
        "outputs": [{ "name": "OUTPUT0", "parameters": { "binary_data": true } }],
    })
    .to_string();
    let length = head.len().to_string();
    let body = [head.as_bytes(), &a, &b].concat();
    request(
        "POST",
        &format!("/v2/models/{model}/infer"),
        &[("Inference-Header-Content-Length", &length)],
        &body,
    )
}

/// The sum that a correct response to [`binary`] ends with.
pub fn sum(n: usize) -> Vec<u8> {
    (0..n).flat_map(|i| (2.0 * i as f32 + 1.0).to_le_bytes()).collect()
}

/// Checks the response to [`binary`].
///
/// # Errors
/// It has another status or another sum.
pub fn check(response: &Response, n: usize) -> Result<(), String> {
    if response.status != 200 {
        return Err(format!("status {}: {}", response.status, response.text()));
    }
    match response.body.ends_with(&sum(n)) {
        true => Ok(()),
        false => Err(format!("the response of {n} floats holds a wrong sum")),
    }
}

/// The mean time of a request of `n` floats, of `times` requests that each of `clients` connections
/// sends.
pub fn mean_time(
    address: &str,
    model: &str,
    n: usize,
    clients: usize,
    times: usize,
) -> Result<Duration, String> {
    mean_time_of(address, &binary(model, n), |response| check(response, n), clients, times)
}

/// The same for a request of these bytes, whose responses are passed to `check`.
pub fn mean_time_of(
    address: &str,
    bytes: &[u8],
    check: impl Fn(&Response) -> Result<(), String> + Sync,
    clients: usize,
    times: usize,
) -> Result<Duration, String> {
    let client = || {
        let mut connection = Connection::open(address);
        (0..times).try_for_each(|_| check(&connection.send(bytes).response()))
    };
    let begin = Instant::now();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..clients).map(|_| scope.spawn(client)).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err("a client failed, see above".to_owned()))
        })
    })?;
    Ok(begin.elapsed() / (clients * times) as u32)
}

/// The median of `times` runs.
pub fn median(
    times: usize,
    mut run: impl FnMut() -> Result<(), String>,
) -> Result<Duration, String> {
    let mut all = Vec::with_capacity(times);
    for _ in 0..times {
        let begin = Instant::now();
        run()?;
        all.push(begin.elapsed());
    }
    all.sort();
    Ok(all[times / 2])
}

/// Requests and their time in the server so far, from the statistics of a model.
pub fn served(statistics: &Value) -> Result<(u64, Duration), String> {
    let success = &statistics["model_stats"][0]["inference_stats"]["success"];
    let number =
        |key: &str| success[key].as_u64().ok_or_else(|| format!("no {key} in {statistics}"));
    Ok((number("count")?, Duration::from_nanos(number("ns")?)))
}
