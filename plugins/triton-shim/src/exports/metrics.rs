//! `TRITONSERVER_Metric*`: metrics of backends on the server's metrics page.

use super::guard::{Ended, List, Maybe, Out, Text, array, export};
use crate::fault::{Fault, Result};
use crate::handles::{self, Live, create, free};
use crate::host::owned;
use crate::objects::metric::{self, Metric, MetricArgs, MetricFamily, kind};
use crate::objects::parameter::Parameter;
use std::ffi::{CString, c_int};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU32, Ordering};

fn labels(list: &List<Parameter>, n: u64) -> Result<Vec<(CString, CString)>> {
    let labels = list.of(n)?;
    let label = |label: &Live<Parameter>| {
        let value = label.value.label().ok_or_else(|| {
            let name = label.name.to_string_lossy();
            Fault::invalid(format_args!("label '{name}' has bytes as value, which cannot be shown"))
        })?;
        Ok((label.name.clone(), owned(&value)))
    };
    labels.iter().map(label).collect()
}

/// Refuses a function for a kind of metric.
fn only(metric: &Metric, allowed: &[i32], what: &str) -> Result<()> {
    if allowed.contains(&metric.kind) {
        return Ok(());
    }
    let name = match metric.kind {
        kind::COUNTER => "a counter",
        kind::GAUGE => "a gauge",
        _ => "a histogram",
    };
    Err(Fault::unsupported(format_args!("{name} cannot be {what}")))
}

export! {
    /// A family, owned by the caller; nothing is shown before it has a metric. A name may be used twice, with the same kind.
    fn TRITONSERVER_MetricFamilyNew(
        family: Out<*mut MetricFamily>,
        kind: c_int,
        name: Text,
        description: Text,
    ) {
        if !matches!(kind, kind::COUNTER | kind::GAUGE | kind::HISTOGRAM) {
            return Err(Fault::misuse(format_args!("metric kind {kind} is unknown")));
        }
        let made = MetricFamily {
            kind,
            name: name.c().into(),
            help: description.c().into(),
            metrics: AtomicU32::new(0),
            scope: metric::scope()?,
        };
        family.set(create(made).raw());
    }

    /// Frees a family, after its metrics.
    fn TRITONSERVER_MetricFamilyDelete(family: Ended<MetricFamily>) {
        let live = handles::get(family.0)?;
        if live.metrics.load(Ordering::Acquire) > 0 {
            return Err(Fault::internal(format_args!(
                "metric family '{}' still has metrics",
                live.name.to_string_lossy()
            )));
        }
        free(family.0)?;
    }

    /// The kind of a family.
    fn TRITONSERVER_GetMetricFamilyKind(family: Live<MetricFamily>, kind: Out<c_int>) {
        kind.set(family.kind);
    }

    /// A metric of a family, owned by the caller. Labels stay the caller's.
    fn TRITONSERVER_MetricNew(
        metric: Out<*mut Metric>,
        family: Live<MetricFamily>,
        labels: List<Parameter>,
        label_count: u64,
    ) {
        metric.set(create(Metric::new(family, &self::labels(&labels, label_count)?, None)?).raw());
    }

    /// As `TRITONSERVER_MetricNew`, with arguments, which histograms need. They stay the caller's.
    fn TRITONSERVER_MetricNewWithArgs(
        metric: Out<*mut Metric>,
        family: Live<MetricFamily>,
        labels: List<Parameter>,
        label_count: u64,
        args: Maybe<MetricArgs>,
    ) {
        let buckets = args.0.and_then(|args| {
            args.buckets.lock().unwrap_or_else(PoisonError::into_inner).clone()
        });
        let labels = self::labels(&labels, label_count)?;
        metric.set(create(Metric::new(family, &labels, buckets.as_deref())?).raw());
    }

    /// Takes a metric off the page and frees it.
    fn TRITONSERVER_MetricDelete(metric: Ended<Metric>) {
        free(metric.0)?.remove();
    }

    /// The value of a counter or gauge.
    fn TRITONSERVER_MetricValue(metric: Live<Metric>, value: Out<f64>) {
        only(&metric, &[kind::COUNTER, kind::GAUGE], "read as one value")?;
        value.set(metric.value()?);
    }

    /// Adds to a counter, not less than 0, or to a gauge.
    fn TRITONSERVER_MetricIncrement(metric: Live<Metric>, value: f64) {
        only(&metric, &[kind::COUNTER, kind::GAUGE], "incremented")?;
        if metric.kind == kind::COUNTER && value < 0.0 {
            return Err(Fault::invalid("a counter cannot be incremented by a negative value"));
        }
        metric.add(value)?;
    }

    /// Sets a gauge.
    fn TRITONSERVER_MetricSet(metric: Live<Metric>, value: f64) {
        only(&metric, &[kind::GAUGE], "set")?;
        metric.put(value)?;
    }

    /// Adds an observation to a histogram.
    fn TRITONSERVER_MetricObserve(metric: Live<Metric>, value: f64) {
        only(&metric, &[kind::HISTOGRAM], "observed")?;
        metric.put(value)?;
    }

    /// The kind of a metric.
    fn TRITONSERVER_GetMetricKind(metric: Live<Metric>, kind: Out<c_int>) {
        kind.set(metric.kind);
    }

    /// Arguments for a metric, owned by the caller.
    fn TRITONSERVER_MetricArgsNew(args: Out<*mut MetricArgs>) {
        args.set(create(MetricArgs::default()).raw());
    }

    /// Sets the upper bounds of a histogram's buckets, which are copied.
    fn TRITONSERVER_MetricArgsSetHistogram(
        args: Live<MetricArgs>,
        buckets: *const f64,
        buckets_count: u64,
    ) {
        // SAFETY: the caller passes that many bounds.
        let bounds = unsafe { array(buckets, buckets_count, "buckets")? };
        *args.buckets.lock().unwrap_or_else(PoisonError::into_inner) = Some(bounds.to_vec());
    }

    /// Frees arguments; null is allowed.
    fn TRITONSERVER_MetricArgsDelete(args: Ended<MetricArgs>) {
        if !args.0.is_null() {
            free(args.0)?;
        }
    }
}
