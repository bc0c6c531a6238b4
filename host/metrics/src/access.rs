//! The access check: reloads of the auth file, refused requests.

use super::family::{FamilyBuilder, Labels};
use prometheus::proto::MetricFamily;
use trtserver_base::access_stats::{AccessRefusalReason, AccessStats, AuthReloadOutcome};

pub fn access_families(stats: &AccessStats) -> [MetricFamily; 2] {
    let mut reloads = FamilyBuilder::counter(
        "trtserver_auth_reloads_total",
        "Changed auth files that were taken over, and looks at files that cannot be used",
    );
    let mut refusals = FamilyBuilder::counter(
        "trtserver_access_refusals_total",
        "Requests that the access check refused, by reason",
    );
    for outcome in AuthReloadOutcome::ALL {
        let label = ("outcome".to_owned(), outcome.name().to_owned());
        reloads.put(&Labels::from([label]), stats.reloads(outcome) as f64);
    }
    for reason in AccessRefusalReason::ALL {
        let label = ("reason".to_owned(), reason.name().to_owned());
        refusals.put(&Labels::from([label]), stats.refusals(reason) as f64);
    }
    [reloads.done(), refusals.done()]
}
