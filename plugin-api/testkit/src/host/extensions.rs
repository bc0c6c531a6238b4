//! Extensions of the host: metrics and memory.

use super::{
    Allocation, CallRefusal, METRIC, Str, buf, entry, handle, handle_id, put, refuse_misuse, text,
    void_entry,
};
use crate::host::records::Metric as MetricRecord;
use crate::memory::GuardedBlock;
use trtserver_plugin_api::abi::extensions::{Metric, metric_kind};
use trtserver_plugin_api::abi::types::{
    Buf, Error, Event, Memory, Param, Scope, code, memory_type, param,
};

pub(super) unsafe extern "C" fn memory_alloc(
    scope: *mut Scope,
    memory: Memory,
    bytes: u64,
    align: u64,
    _flags: u32,
    _stream: *mut u8,
    out: *mut Buf,
) -> *mut Error {
    entry("memory_alloc", |state| {
        let (scope, _) = state.scope(scope)?;
        if align != 0 && !align.is_power_of_two() {
            return refuse_misuse(format!("alignment {align} is not a power of two"));
        }
        let refuse = |code, text| Err(CallRefusal { promise: None, code, text });
        if !matches!(memory.memory_type, memory_type::CPU | memory_type::PINNED) || align > 64 {
            let text = format!("memory type {} aligned to {align}", memory.memory_type);
            return refuse(code::UNSUPPORTED, text);
        }
        let bytes_here = usize::try_from(bytes).ok().filter(|n| *n <= isize::MAX as usize);
        let Some(block) = bytes_here.and_then(|n| GuardedBlock::new(n, 0)) else {
            return refuse(code::EXHAUSTED, format!("no memory for {bytes} bytes"));
        };
        let id = state.id();
        // SAFETY: null or valid for one buffer.
        unsafe { put(out, Buf { memory, ..buf(block.ptr(), block.bytes, id) }) }?;
        state.allocations.insert(id, Allocation { scope, block });
        state.counts.allocated += 1;
        Ok(())
    })
}

pub(super) unsafe extern "C" fn memory_free(memory_handle: u64, after: *mut Event) {
    void_entry("memory_free", |state| {
        state.take_event(after)?;
        match state.allocations.remove(&memory_handle) {
            Some(allocation) => match allocation.block.overrun() {
                Some(overrun) => refuse_misuse(format!("memory of memory_alloc: {overrun}")),
                None => Ok(()),
            },
            None => refuse_misuse(format!(
                "memory handle {memory_handle} is unknown, was freed before or closed with its scope"
            )),
        }
    });
}

pub(super) unsafe extern "C" fn memory_report(
    scope: *mut Scope,
    memory: Memory,
    bytes: u64,
) -> *mut Error {
    entry("memory_report", |state| {
        if memory.memory_type > memory_type::MANAGED {
            return refuse_misuse(format!("unknown memory type {}", memory.memory_type));
        }
        let (_, scope) = state.scope(scope)?;
        scope.reported.retain(|(of, _)| *of != memory);
        if bytes > 0 {
            scope.reported.push((memory, bytes));
        }
        Ok(())
    })
}

pub(super) unsafe extern "C" fn metric_new(
    scope: *mut Scope,
    kind: u32,
    name: Str,
    help: Str,
    labels: *const Param,
    n_labels: u32,
    out: *mut *mut Metric,
) -> *mut Error {
    entry("metric_new", |state| {
        if kind > metric_kind::GAUGE {
            return refuse_misuse(format!("a metric is of unknown kind {kind}"));
        }
        // SAFETY: scope, texts and labels are valid during the call; `out` is null or valid for one
        // handle.
        unsafe { create_metric(state, scope, kind, [name, help], (labels, n_labels), out) }
    })
}

pub(super) unsafe extern "C" fn histogram_new(
    scope: *mut Scope,
    name: Str,
    help: Str,
    labels: *const Param,
    n_labels: u32,
    bounds: *const f64,
    n_bounds: u32,
    out: *mut *mut Metric,
) -> *mut Error {
    entry("histogram_new", |state| {
        if bounds.is_null() || n_bounds == 0 {
            return refuse_misuse("a histogram has no bounds");
        }
        // SAFETY: the backend passes `n_bounds` numbers.
        let bounds = unsafe { std::slice::from_raw_parts(bounds, n_bounds as usize) };
        if !bounds.iter().all(|bound| bound.is_finite()) || !bounds.is_sorted() {
            return refuse_misuse(format!(
                "the bounds {bounds:?} of a histogram are not ascending"
            ));
        }
        // SAFETY: the backend passes texts and labels that are valid during the call, and `out` as
        // null or valid for writing.
        unsafe {
            create_metric(
                state,
                scope,
                metric_kind::HISTOGRAM,
                [name, help],
                (labels, n_labels),
                out,
            )
        }
    })
}

/// # Safety
/// Scope, texts and labels are valid during the call; `out` is null or valid for one handle.
unsafe fn create_metric(
    state: &mut super::HostState,
    scope: *mut Scope,
    kind: u32,
    [name, help]: [Str; 2],
    (labels, n_labels): (*const Param, u32),
    out: *mut *mut Metric,
) -> Result<(), CallRefusal> {
    // SAFETY: the strings are valid during the call.
    let name = unsafe {
        text(help, "the help of a metric")?;
        text(name, "the name of a metric")?
    };
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_' || c == ':';
    let valid = name.starts_with(letter) && name.chars().all(|c| letter(c) || c.is_ascii_digit());
    if !valid {
        return refuse_misuse(format!("'{name}' is not a valid metric name"));
    }
    if labels.is_null() && n_labels > 0 {
        return refuse_misuse(format!("metric '{name}' has {n_labels} labels at null"));
    }
    let mut pairs = Vec::new();
    for at in 0..n_labels as usize {
        // SAFETY: the backend passes `n_labels` parameters, whose strings are valid during the
        // call.
        let label = unsafe { &*labels.add(at) };
        if label.kind != param::STRING {
            return refuse_misuse(format!("metric '{name}': a label has kind {}", label.kind));
        }
        // SAFETY: the backend keeps the strings of a label valid during the call.
        pairs.push(unsafe {
            (text(label.key, "the name of a label")?, text(label.text, "the value of a label")?)
        });
    }
    let mut names: Vec<String> = pairs.iter().map(|(name, _)| name.clone()).collect();
    names.sort();
    let family = state.families.entry(name.clone()).or_insert_with(|| (kind, names.clone()));
    if *family != (kind, names) {
        return refuse_misuse(format!(
            "metric '{name}' has another kind or other labels than before"
        ));
    }
    let id = state.id();
    let (scope, record) = state.scope(scope)?;
    record.metrics.push(MetricRecord { name, labels: pairs, value: 0.0 });
    let index = record.metrics.len() - 1;
    state.metrics.insert(id, (scope, index, kind));
    // SAFETY: null or valid for one handle.
    unsafe { put(out, handle(METRIC, id)) }
}

pub(super) unsafe extern "C" fn metric_put(metric: *mut Metric, value: f64) -> *mut Error {
    change("metric_put", metric, value, |kind, now| {
        match kind {
            metric_kind::COUNTER | metric_kind::HISTOGRAM => *now += value,
            _ => *now = value,
        }
        Ok(())
    })
}

pub(super) unsafe extern "C" fn metric_add(metric: *mut Metric, value: f64) -> *mut Error {
    change("metric_add", metric, value, |kind, now| {
        if kind == metric_kind::HISTOGRAM {
            return refuse_misuse("a histogram has no value to add to");
        }
        *now += value;
        Ok(())
    })
}

/// Calls `change` with the kind and the value of a metric. A counter only grows.
fn change(
    function: &'static str,
    metric: *mut Metric,
    value: f64,
    change: impl FnOnce(u32, &mut f64) -> Result<(), CallRefusal>,
) -> *mut Error {
    entry(function, |state| {
        let found = state.metrics.get(&handle_id(METRIC, metric, "metric")?).copied();
        let Some((scope, index, kind)) = found else {
            return refuse_misuse("a metric was used after it was freed");
        };
        let record = state.scopes.get_mut(&scope).and_then(|s| s.metrics.get_mut(index));
        let Some(MetricRecord { value: now, .. }) = record else { return Ok(()) };
        if kind == metric_kind::COUNTER && (value < 0.0 || value.is_nan()) {
            return refuse_misuse(format!("{value} was added to a counter"));
        }
        change(kind, now)
    })
}

pub(super) unsafe extern "C" fn metric_get(metric: *const Metric) -> f64 {
    let state = super::lock_state();
    let found = handle_id(METRIC, metric, "metric").ok().and_then(|id| state.metrics.get(&id));
    let record = found.and_then(|(scope, index, _)| state.scopes.get(scope)?.metrics.get(*index));
    record.map_or(0.0, |metric| metric.value)
}

pub(super) unsafe extern "C" fn metric_free(metric: *mut Metric) {
    if metric.is_null() {
        return;
    }
    let body = |state: &mut super::HostState| match state
        .metrics
        .remove(&handle_id(METRIC, metric, "metric")?)
    {
        Some(_) => Ok(()),
        None => refuse_misuse("a metric was freed twice"),
    };
    void_entry("metric_free", body);
}
