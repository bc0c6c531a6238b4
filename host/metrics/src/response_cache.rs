//! Metrics of the response cache: those of Triton by model, and what the cache holds.

use super::family::{FamilyBuilder, Labels};
use prometheus::proto::MetricFamily;
use trtserver_base::stats::{LatencySettings, VersionCounters};
use trtserver_response_cache::{CacheReport, CacheState, StoreUsage};

/// The families under construction. Only models with a cache have series.
pub struct CacheFamilies {
    hits: FamilyBuilder,
    misses: FamilyBuilder,
    /// Without `counter_latencies` they are missing, as in Triton.
    durations: Option<[FamilyBuilder; 2]>,
    shared: FamilyBuilder,
    off: FamilyBuilder,
}

impl CacheFamilies {
    pub fn new(settings: &LatencySettings) -> Self {
        let durations = [
            FamilyBuilder::counter(
                "nv_cache_hit_duration_per_model",
                "Total cache hit duration per model, in microseconds",
            ),
            FamilyBuilder::counter(
                "nv_cache_miss_duration_per_model",
                "Total cache miss (insert+lookup) duration per model, in microseconds",
            ),
        ];
        Self {
            hits: FamilyBuilder::counter(
                "nv_cache_num_hits_per_model",
                "Number of cache hits per model",
            ),
            misses: FamilyBuilder::counter(
                "nv_cache_num_misses_per_model",
                "Number of cache misses per model",
            ),
            durations: settings.counters.then_some(durations),
            shared: FamilyBuilder::counter(
                "trtserver_response_cache_shared_total",
                "Number of cache hits that were answered by the execution of an equal request",
            ),
            off: FamilyBuilder::gauge(
                "trtserver_response_cache_off",
                "1 while the cache of the model is off, because look-ups take longer than hits save",
            ),
        }
    }

    /// Adds the series of a version with a cache.
    pub fn put(&mut self, labels: &Labels, counters: &VersionCounters, report: &CacheReport) {
        let (hit, miss) = (counters.cache_hit, counters.cache_miss);
        self.hits.put(labels, hit.count as f64);
        self.misses.put(labels, miss.count as f64);
        if let Some([hits, misses]) = &mut self.durations {
            hits.put(labels, (hit.ns / 1000) as f64);
            misses.put(labels, (miss.ns / 1000) as f64);
        }
        self.shared.put(labels, report.shared as f64);
        self.off.put(labels, f64::from(u8::from(report.state == CacheState::Off)));
    }

    /// `store`: what the server's cache holds, if it has one.
    pub fn done(self, store: Option<StoreUsage>) -> Vec<MetricFamily> {
        let Self { hits, misses, durations, shared, off } = self;
        let families = [hits, misses].into_iter().chain(durations.into_iter().flatten());
        let mut families: Vec<_> = families.chain([shared, off]).map(FamilyBuilder::done).collect();
        let Some(store) = store else { return families };
        let gauge = |name: &str, help: &str, value: u64| {
            FamilyBuilder::single_gauge(name, help, value as f64)
        };
        let mut evictions = FamilyBuilder::counter(
            "trtserver_response_cache_evictions_total",
            "Number of responses that were removed from the response cache to make room",
        );
        evictions.put(&Labels::new(), store.evictions as f64);
        families.extend([
            gauge(
                "trtserver_response_cache_entries",
                "Responses in the response cache",
                store.entries,
            ),
            gauge(
                "trtserver_response_cache_bytes",
                "Bytes that the response cache counts for its responses",
                store.bytes,
            ),
            gauge(
                "trtserver_response_cache_limit_bytes",
                "Limit of the bytes of the response cache",
                store.limit,
            ),
            evictions.done(),
        ]);
        families
    }
}
