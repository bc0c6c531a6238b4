//! Batches that a server has executed, from its statistics.

use crate::Result;
use crate::process::Process;
use crate::status::get;
use serde_json::Value;
use std::collections::BTreeMap;

/// Since the server started, or between two readings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batches {
    /// Number of batches by rows.
    rows: BTreeMap<u64, u64>,
    /// Number of batches by close reason.
    closed: BTreeMap<String, u64>,
}

impl Batches {
    pub fn read_statistics(server: &Process, model: &str) -> Result<Self> {
        let statistics =
            get(server.http.ok_or("no HTTP port")?, &format!("/v2/models/{model}/stats"))?;
        Self::read(&statistics)
            .ok_or_else(|| format!("the statistics of '{model}' are not as expected: {statistics}"))
    }

    fn read(statistics: &Value) -> Option<Self> {
        let statistics = statistics.pointer("/model_stats/0")?;
        let rows = statistics["batch_stats"].as_array()?.iter().map(|batch| {
            Some((batch["batch_size"].as_u64()?, batch["compute_infer"]["count"].as_u64()?))
        });
        let closed = statistics["batch_closed"].as_object()?.iter();
        let closed = closed.map(|(reason, count)| Some((reason.clone(), count.as_u64()?)));
        Some(Self { rows: rows.collect::<Option<_>>()?, closed: closed.collect::<Option<_>>()? })
    }

    /// The batches since `before`.
    pub fn since(mut self, before: &Self) -> Self {
        for (rows, count) in &mut self.rows {
            *count -= before.rows.get(rows).unwrap_or(&0);
        }
        for (reason, count) in &mut self.closed {
            *count -= before.closed.get(reason).unwrap_or(&0);
        }
        self
    }

    pub fn count(&self) -> u64 {
        self.rows.values().sum()
    }

    /// The share of batches with at least `rows` rows.
    pub fn share_from(&self, rows: u64) -> f64 {
        let large: u64 = self.rows.range(rows..).map(|(_, count)| count).sum();
        large as f64 / self.count().max(1) as f64
    }

    pub fn mean(&self) -> f64 {
        let rows: u64 = self.rows.iter().map(|(rows, count)| rows * count).sum();
        rows as f64 / self.count().max(1) as f64
    }

    /// The close reasons with their shares, the most frequent first.
    pub fn reasons(&self) -> String {
        let sum = self.closed.values().sum::<u64>().max(1) as f64;
        let mut all: Vec<_> = self.closed.iter().filter(|(_, count)| **count > 0).collect();
        all.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let word = |(reason, count): (&String, &u64)| {
            format!("{reason} {:.1} %", *count as f64 / sum * 100.0)
        };
        all.into_iter().map(word).collect::<Vec<_>>().join("; ")
    }
}

#[cfg(test)]
#[path = "batches_tests.rs"]
mod tests;
