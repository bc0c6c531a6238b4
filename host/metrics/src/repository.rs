//! Model versions by state, and the use of the model cache.

use super::family::{FamilyBuilder, Labels};
use prometheus::proto::MetricFamily;
use trtserver_model_store::CacheUsage;
use trtserver_models::{ModelTable, VersionState};

const STATES: [VersionState; 4] = [
    VersionState::Ready,
    VersionState::Unavailable,
    VersionState::Loading,
    VersionState::Unloading,
];

pub fn repository_families(models: &ModelTable, cache: Option<CacheUsage>) -> Vec<MetricFamily> {
    let models = models.all();
    let versions = models.values().flat_map(|model| model.versions.values());
    let states: Vec<VersionState> = versions.map(|version| version.status().0).collect();
    let mut by_state = FamilyBuilder::gauge("trtserver_model_versions", "Model versions by state");
    for state in STATES {
        let count = states.iter().filter(|s| **s == state).count();
        by_state.put(&vec![("state".to_owned(), state.name().to_owned())], count as f64);
    }
    let mut families = vec![by_state.done()];
    families.extend(cache.into_iter().flat_map(cache_families));
    families
}

fn cache_families(usage: CacheUsage) -> impl Iterator<Item = MetricFamily> {
    let counter = |name: &str, help: &str, value: u64| {
        let mut family = FamilyBuilder::counter(name, help);
        family.put(&Labels::new(), value as f64);
        family.done()
    };
    let gauge =
        |name: &str, help: &str, bytes: u64| FamilyBuilder::single_gauge(name, help, bytes as f64);
    let limit = usage.limit.map(|limit| {
        gauge(
            "trtserver_model_cache_limit_bytes",
            "Limit of the model cache (--model-cache-size)",
            limit,
        )
    });
    let families = [
        gauge("trtserver_model_cache_bytes", "Bytes of the model cache on disk", usage.bytes),
        counter(
            "trtserver_model_cache_hits_total",
            "Objects whose content was found in the model cache",
            usage.hits,
        ),
        counter(
            "trtserver_model_cache_misses_total",
            "Objects whose content was downloaded into the model cache",
            usage.misses,
        ),
    ];
    families.into_iter().chain(limit)
}
