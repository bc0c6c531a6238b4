//! The server's own counters of a model, and their growth during a measurement.

use std::collections::BTreeMap;
use trtserver_proto::{v1, v2};

/// Counters of one version of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerStats {
    pub model: String,
    pub version: String,
    /// Successful requests, and their time in the server.
    pub requests: u64,
    pub total_ns: u64,
    pub failed: u64,
    /// 0 if the server does not count them: v1 servers before v1.9.
    pub inferences: u64,
    pub executions: u64,
    pub queue_ns: u64,
    /// v2 only, as the next two and the batches.
    pub compute_input_ns: u64,
    pub compute_infer_ns: u64,
    pub compute_output_ns: u64,
    /// v1: compute time as a whole.
    pub compute_ns: u64,
    /// Executions by batch size.
    pub batches: BTreeMap<u64, u64>,
    /// The steps of an ensemble.
    pub composing: Vec<ServerStats>,
}

impl ServerStats {
    /// # Errors
    /// The server has no statistics of the version.
    pub fn from_v1(
        model: &str,
        version: i64,
        batch: u32,
        status: &v1::ServerStatus,
    ) -> Result<Self, String> {
        let of_model = status
            .model_status
            .get(model)
            .ok_or_else(|| format!("unable to find status for model {model}"))?;
        // The highest version, if none was named.
        let highest = of_model.version_status.keys().copied().max().unwrap_or(0).max(0);
        let version = if version < 0 { highest } else { version };
        let found = of_model.version_status.get(&version).ok_or_else(|| {
            let mut known: Vec<i64> = of_model.version_status.keys().copied().collect();
            known.sort_unstable();
            let known: Vec<String> = known.iter().map(i64::to_string).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            format!(
                "missing model version status: model '{model}' has no version {version}, only: {known}"
            )
        })?;
        let mut stats = ServerStats {
            model: model.to_owned(),
            version: version.to_string(),
            executions: found.model_execution_count,
            inferences: found.model_inference_count,
            ..Self::default()
        };
        let Some(counters) = found.infer_stats.get(&batch) else { return Ok(stats) };
        let time = |duration: &Option<v1::StatDuration>| {
            duration.as_ref().map_or((0, 0), |duration| (duration.count, duration.total_time_ns))
        };
        (stats.requests, stats.total_ns) = time(&counters.success);
        stats.failed = time(&counters.failed).0;
        stats.queue_ns = time(&counters.queue).1;
        stats.compute_ns = time(&counters.compute).1;
        Ok(stats)
    }

    /// # Errors
    /// The errors of [`Self::from_v1`].
    pub fn from_v2(
        model: &str,
        version: &str,
        all: &v2::ModelStatisticsResponse,
    ) -> Result<Self, String> {
        let fits = |stats: &&v2::ModelStatistics| {
            stats.name == model && (version.is_empty() || stats.version == version)
        };
        let number = |stats: &&v2::ModelStatistics| stats.version.parse::<i64>().unwrap_or(-1);
        let found = all.model_stats.iter().filter(fits).max_by_key(number);
        let found = found.ok_or_else(|| match version {
            "" => format!("the server has no statistics of model '{model}'"),
            _ => format!("the server has no statistics of version {version} of model '{model}'"),
        })?;
        let of = found.inference_stats.unwrap_or_default();
        let count =
            |of: &Option<v2::StatisticDuration>| of.as_ref().map_or(0, |duration| duration.count);
        let ns = |of: &Option<v2::StatisticDuration>| of.as_ref().map_or(0, |time| time.ns);
        let executions = |batch: &v2::InferBatchStatistics| count(&batch.compute_infer);
        let mut stats = ServerStats {
            model: model.to_owned(),
            version: found.version.clone(),
            requests: count(&of.success),
            total_ns: ns(&of.success),
            failed: count(&of.fail),
            inferences: found.inference_count,
            executions: found.execution_count,
            queue_ns: ns(&of.queue),
            compute_input_ns: ns(&of.compute_input),
            compute_infer_ns: ns(&of.compute_infer),
            compute_output_ns: ns(&of.compute_output),
            ..Self::default()
        };
        stats.compute_ns =
            stats.compute_input_ns + stats.compute_infer_ns + stats.compute_output_ns;
        stats.batches = found.batch_stats.iter().map(|b| (b.batch_size, executions(b))).collect();
        Ok(stats)
    }

    /// Growth since `before`. Counters that fell (the model was loaded again) count from 0.
    pub fn since(&self, before: &Self) -> Self {
        let restarted = self.requests < before.requests || self.total_ns < before.total_ns;
        let zero = Self::default();
        let before = if restarted || self.version != before.version { &zero } else { before };
        let less = |now: u64, then: u64| now.saturating_sub(then);
        let batches = self.batches.iter().map(|(size, count)| {
            (*size, less(*count, before.batches.get(size).copied().unwrap_or(0)))
        });
        let composing =
            self.composing.iter().map(|now| now.since(before.step(now).unwrap_or(&zero)));
        ServerStats {
            model: self.model.clone(),
            version: self.version.clone(),
            requests: less(self.requests, before.requests),
            total_ns: less(self.total_ns, before.total_ns),
            failed: less(self.failed, before.failed),
            inferences: less(self.inferences, before.inferences),
            executions: less(self.executions, before.executions),
            queue_ns: less(self.queue_ns, before.queue_ns),
            compute_input_ns: less(self.compute_input_ns, before.compute_input_ns),
            compute_infer_ns: less(self.compute_infer_ns, before.compute_infer_ns),
            compute_output_ns: less(self.compute_output_ns, before.compute_output_ns),
            compute_ns: less(self.compute_ns, before.compute_ns),
            batches: batches.filter(|(_, count)| *count > 0).collect(),
            composing: composing.collect(),
        }
    }

    /// Adds the growth of another window.
    pub fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.total_ns += other.total_ns;
        self.failed += other.failed;
        self.inferences += other.inferences;
        self.executions += other.executions;
        self.queue_ns += other.queue_ns;
        self.compute_input_ns += other.compute_input_ns;
        self.compute_infer_ns += other.compute_infer_ns;
        self.compute_output_ns += other.compute_output_ns;
        self.compute_ns += other.compute_ns;
        for (size, count) in &other.batches {
            *self.batches.entry(*size).or_default() += count;
        }
        for other in &other.composing {
            match self.composing.iter_mut().find(|own| own.is_same_step(other)) {
                Some(own) => own.add(other),
                None => self.composing.push(other.clone()),
            }
        }
    }

    /// The step of an ensemble with this model and version.
    pub fn step(&self, like: &Self) -> Option<&Self> {
        self.composing.iter().find(|step| step.is_same_step(like))
    }

    pub fn is_same_step(&self, other: &Self) -> bool {
        self.model == other.model && self.version == other.version
    }

    /// A time as nanoseconds a request.
    pub fn average(&self, ns: u64) -> u64 {
        ns.checked_div(self.requests).unwrap_or(0)
    }
}

#[cfg(test)]
#[path = "statistics_tests.rs"]
mod tests;
