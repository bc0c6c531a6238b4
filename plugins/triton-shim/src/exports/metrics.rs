//! `TRITONSERVER_Metric*`: metrics of backends on the server's metrics page.

use super::guard::{Ended, List, Maybe, Out, Text, export, read_array};
use crate::fault::{Result, TritonFault};
use crate::handles::{self, LiveObject, create_object, free_object};
use crate::host::owned_text;
use crate::objects::metric::{self, MetricArgs, MetricFamily, MetricObject, kind};
use crate::objects::parameter::ParameterObject;
use std::ffi::{CString, c_int};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU32, Ordering};

fn labels(list: &List<ParameterObject>, n: u64) -> Result<Vec<(CString, CString)>> {
    let labels = list.objects(n)?;
    let label = |label: &LiveObject<ParameterObject>| {
        let value = label.value.label().ok_or_else(|| {
            let name = label.name.to_string_lossy();
            TritonFault::invalid(format_args!(
                "label '{name}' has bytes as value, which cannot be shown"
            ))
        })?;
        Ok((label.name.clone(), owned_text(&value)))
    };
    labels.iter().map(label).collect()
}

/// Refuses a function for a kind of metric.
fn only(metric: &MetricObject, allowed: &[i32], what: &str) -> Result<()> {
    if allowed.contains(&metric.kind) {
        return Ok(());
    }
    let name = match metric.kind {
        kind::COUNTER => "a counter",
        kind::GAUGE => "a gauge",
        _ => "a histogram",
    };
    Err(TritonFault::unsupported(format_args!("{name} cannot be {what}")))
}

export! {
    /// A family, owned by the caller; nothing is shown before it has a metric. A name may be used
    /// twice, with the same kind.
    fn TRITONSERVER_MetricFamilyNew(
        family: Out<*mut MetricFamily>,
        kind: c_int,
        name: Text,
        description: Text,
    ) {
        if !matches!(kind, kind::COUNTER | kind::GAUGE | kind::HISTOGRAM) {
            return Err(TritonFault::misuse(format_args!("metric kind {kind} is unknown")));
        }
        let made = MetricFamily {
            kind,
            name: name.c().into(),
            help: description.c().into(),
            metrics: AtomicU32::new(0),
            scope: metric::metric_scope()?,
        };
        family.set(create_object(made).raw());
    }

    /// Frees a family, after its metrics.
    fn TRITONSERVER_MetricFamilyDelete(family: Ended<MetricFamily>) {
        let live = handles::get_object(family.0)?;
        if live.metrics.load(Ordering::Acquire) > 0 {
            return Err(TritonFault::internal(format_args!(
                "metric family '{}' still has metrics",
                live.name.to_string_lossy()
            )));
        }
        free_object(family.0)?;
    }

    /// The kind of a family.
    fn TRITONSERVER_GetMetricFamilyKind(family: LiveObject<MetricFamily>, kind: Out<c_int>) {
        kind.set(family.kind);
    }

    /// A metric of a family, owned by the caller. Labels stay the caller's.
    fn TRITONSERVER_MetricNew(
        metric: Out<*mut MetricObject>,
        family: LiveObject<MetricFamily>,
        labels: List<ParameterObject>,
        label_count: u64,
    ) {
        metric.set(create_object(MetricObject::new(family, &self::labels(&labels, label_count)?, None)?).raw());
    }

    /// As `TRITONSERVER_MetricNew`, with arguments, which histograms need. They stay the caller's.
    fn TRITONSERVER_MetricNewWithArgs(
        metric: Out<*mut MetricObject>,
        family: LiveObject<MetricFamily>,
        labels: List<ParameterObject>,
        label_count: u64,
        args: Maybe<MetricArgs>,
    ) {
        let buckets = args.0.and_then(|args| {
            args.buckets.lock().unwrap_or_else(PoisonError::into_inner).clone()
        });
        let labels = self::labels(&labels, label_count)?;
        metric.set(create_object(MetricObject::new(family, &labels, buckets.as_deref())?).raw());
    }

    /// Takes a metric off the page and frees it.
    fn TRITONSERVER_MetricDelete(metric: Ended<MetricObject>) {
        free_object(metric.0)?.remove();
    }

    /// The value of a counter or gauge.
    fn TRITONSERVER_MetricValue(metric: LiveObject<MetricObject>, value: Out<f64>) {
        only(&metric, &[kind::COUNTER, kind::GAUGE], "read as one value")?;
        value.set(metric.value()?);
    }

    /// Adds to a counter, not less than 0, or to a gauge.
    fn TRITONSERVER_MetricIncrement(metric: LiveObject<MetricObject>, value: f64) {
        only(&metric, &[kind::COUNTER, kind::GAUGE], "incremented")?;
        if metric.kind == kind::COUNTER && value < 0.0 {
            return Err(TritonFault::invalid("a counter cannot be incremented by a negative value"));
        }
        metric.add(value)?;
    }

    /// Sets a gauge.
    fn TRITONSERVER_MetricSet(metric: LiveObject<MetricObject>, value: f64) {
        only(&metric, &[kind::GAUGE], "set")?;
        metric.put(value)?;
    }

    /// Adds an observation to a histogram.
    fn TRITONSERVER_MetricObserve(metric: LiveObject<MetricObject>, value: f64) {
        only(&metric, &[kind::HISTOGRAM], "observed")?;
        metric.put(value)?;
    }

    /// The kind of a metric.
    fn TRITONSERVER_GetMetricKind(metric: LiveObject<MetricObject>, kind: Out<c_int>) {
        kind.set(metric.kind);
    }

    /// Arguments for a metric, owned by the caller.
    fn TRITONSERVER_MetricArgsNew(args: Out<*mut MetricArgs>) {
        args.set(create_object(MetricArgs::default()).raw());
    }

    /// Sets the upper bounds of a histogram's buckets, which are copied.
    fn TRITONSERVER_MetricArgsSetHistogram(
        args: LiveObject<MetricArgs>,
        buckets: *const f64,
        buckets_count: u64,
    ) {
        // SAFETY: the caller passes that many bounds.
        let bounds = unsafe { read_array(buckets, buckets_count, "buckets")? };
        *args.buckets.lock().unwrap_or_else(PoisonError::into_inner) = Some(bounds.to_vec());
    }

    /// Frees arguments; null is allowed.
    fn TRITONSERVER_MetricArgsDelete(args: Ended<MetricArgs>) {
        if !args.0.is_null() {
            free_object(args.0)?;
        }
    }
}
