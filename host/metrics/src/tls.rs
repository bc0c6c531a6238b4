//! TLS of the listeners: when certificates expire, reloads, failed handshakes.

use super::family::{FamilyBuilder, Labels};
use prometheus::proto::MetricFamily;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use trtserver_base::tls_stats::{HandshakeFailure, TlsReloadOutcome, TlsStats};

pub fn tls_families(listeners: &[Arc<TlsStats>]) -> [MetricFamily; 3] {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let mut expiry = FamilyBuilder::gauge(
        "trtserver_tls_certificate_expiry_seconds",
        "Seconds until the listener's certificate expires; negative afterwards",
    );
    let mut reloads = FamilyBuilder::counter(
        "trtserver_tls_reloads_total",
        "Changed certificate files that were taken over, and looks at files that cannot be used",
    );
    let mut failures = FamilyBuilder::counter(
        "trtserver_tls_handshake_failures_total",
        "TLS handshakes that failed, by reason",
    );
    for stats in listeners {
        let listener = || ("listener".to_owned(), stats.listener.to_owned());
        let left = stats.expires_at().saturating_sub_unsigned(now);
        expiry.put(&Labels::from([listener()]), left as f64);
        for outcome in TlsReloadOutcome::ALL {
            let label = ("outcome".to_owned(), outcome.name().to_owned());
            reloads.put(&Labels::from([listener(), label]), stats.reloads(outcome) as f64);
        }
        for failure in HandshakeFailure::ALL {
            let label = ("reason".to_owned(), failure.name().to_owned());
            failures.put(&Labels::from([listener(), label]), stats.failures(failure) as f64);
        }
    }
    [expiry.done(), reloads.done(), failures.done()]
}
