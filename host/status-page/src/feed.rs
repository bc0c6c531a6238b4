//! The status of the server, read at most once a second, when somebody asks. All viewers share what
//! was read: a stream sends them the models that have changed since the reading before.

use crate::counters::VersionTotals;
use crate::model_report::{ModelReport, VersionReadings};
use crate::server_report::{ConnectionCounts, ServerReport};
use bytes::Bytes;
use parking_lot::Mutex;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use trtserver_base::clock::now_ns;
use trtserver_base::error::Result;
use trtserver_base::state::ServerState;
use trtserver_config::ServerSettings;
use trtserver_models::ModelTable;

/// A reading that is younger is used again. Somewhat less than the interval of streams, which is
/// not exact.
const MIN_AGE: Duration = Duration::from_millis(900);
/// Readings take at most this share of the time: with ten thousand models they are rarer.
const COST_SHARE: u32 = 100;
/// What `recent` covers at most, in readings and in time.
const WINDOW_READINGS: usize = 10;
const WINDOW: Duration = Duration::from_secs(60);

/// What is read.
#[derive(Clone)]
pub struct StatusSources {
    pub models: Arc<ModelTable>,
    pub state: Arc<ServerState>,
    pub settings: Arc<ServerSettings>,
}

/// The status at one time.
pub struct StatusSnapshot {
    /// Counts the readings, from 1.
    pub sequence: u64,
    /// The whole status, as JSON.
    pub full: Bytes,
    /// Server, changed and removed models since the reading before, as JSON.
    pub changed: Bytes,
}

/// Makes snapshots for all viewers.
#[derive(Default)]
pub struct StatusFeed {
    readings: Mutex<FeedReadings>,
    viewers: AtomicUsize,
    connections: OnceLock<ConnectionCounts>,
}

/// The id of a model, and a version. `None`: the model has no version.
type VersionKey = (String, Option<i64>);

#[derive(Default)]
struct FeedReadings {
    sequence: u64,
    /// When the server's clock was 0, by the first reading: computed anew it would differ by a
    /// millisecond, and every model would seem to have changed.
    clock_zero_ms: Option<u64>,
    last: Option<LastReading>,
    /// The oldest first; versions that have not changed share their totals.
    window: VecDeque<TotalsReading>,
    /// The text of each model in the last snapshot.
    texts: BTreeMap<VersionKey, Box<str>>,
}

struct LastReading {
    at: Instant,
    cost: Duration,
    snapshot: Arc<StatusSnapshot>,
}

struct TotalsReading {
    at: Instant,
    totals: BTreeMap<VersionKey, Arc<VersionTotals>>,
}

/// Somebody who watches the status, until it is dropped.
pub struct Viewer(Arc<StatusFeed>);

#[derive(Serialize)]
struct SnapshotHead<'a> {
    sequence: u64,
    unix_ms: u64,
    server: ServerReport<'a>,
}

impl StatusFeed {
    /// Sets how connections are counted; once.
    pub fn set_connections(&self, read: ConnectionCounts) {
        let _ = self.connections.set(read);
    }

    /// Counts a viewer.
    pub fn watch(self: &Arc<Self>) -> Viewer {
        self.viewers.fetch_add(1, Relaxed);
        Viewer(Arc::clone(self))
    }

    /// The last snapshot, or a new one if that is old. May take milliseconds.
    ///
    /// # Errors
    /// It cannot be written as JSON, which does not happen.
    pub fn current(&self, sources: &StatusSources) -> Result<Arc<StatusSnapshot>> {
        let mut readings = self.readings.lock();
        if let Some(last) = &readings.last
            && last.at.elapsed() < MIN_AGE.max(last.cost * COST_SHARE)
        {
            return Ok(Arc::clone(&last.snapshot));
        }
        let at = Instant::now();
        let connections = self.connections.get().map(|read| read()).unwrap_or_default();
        let viewers = self.viewers.load(Relaxed);
        let server = ServerReport::new(&sources.settings, &sources.state, connections, viewers);
        let snapshot = Arc::new(readings.read(at, &sources.models, server)?);
        let cost = at.elapsed();
        readings.last = Some(LastReading { at, cost, snapshot: Arc::clone(&snapshot) });
        Ok(snapshot)
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        if self.0.viewers.fetch_sub(1, Relaxed) == 1 {
            // Large with many models. Snapshots of the next viewer have later numbers.
            let mut readings = self.0.readings.lock();
            *readings = FeedReadings { sequence: readings.sequence, ..FeedReadings::default() };
        }
    }
}

impl FeedReadings {
    fn read(
        &mut self,
        at: Instant,
        models: &ModelTable,
        server: ServerReport<'_>,
    ) -> Result<StatusSnapshot> {
        self.window.retain(|reading| at.duration_since(reading.at) <= WINDOW);
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let unix_ms = u64::try_from(unix.as_millis()).unwrap_or(u64::MAX);
        let mut totals = BTreeMap::new();
        let clock_zero = || unix_ms.saturating_sub(now_ns() / 1_000_000);
        let clock_zero_ms = *self.clock_zero_ms.get_or_insert_with(clock_zero);
        let texts = self.model_texts(at, models, clock_zero_ms, &mut totals)?;
        self.sequence += 1;
        let head = SnapshotHead { sequence: self.sequence, unix_ms, server };
        let head = crate::recent::write_json(&head)?;
        let changed = texts.iter().filter_map(|(key, text)| {
            let is_new = self.texts.get(key) != Some(text);
            is_new.then_some(&**text)
        });
        let removed: Vec<_> = self.texts.keys().filter(|key| !texts.contains_key(*key)).collect();
        let changed = join_models(&head, changed, Some(&removed))?;
        let full = join_models(&head, texts.values().map(|text| &**text), None)?;
        self.texts = texts;
        self.window.push_back(TotalsReading { at, totals });
        if self.window.len() > WINDOW_READINGS {
            self.window.pop_front();
        }
        Ok(StatusSnapshot { sequence: self.sequence, full, changed })
    }

    /// The text of each version. Adds their totals.
    fn model_texts(
        &self,
        at: Instant,
        models: &ModelTable,
        clock_zero_ms: u64,
        totals: &mut BTreeMap<VersionKey, Arc<VersionTotals>>,
    ) -> Result<BTreeMap<VersionKey, Box<str>>> {
        let loads = models.loads.list();
        let since = |ns: u64| clock_zero_ms + ns / 1_000_000;
        let mut texts = BTreeMap::new();
        for (id, model) in models.all() {
            if model.versions.is_empty() {
                let text = report_text(&ModelReport::without_versions(&model))?;
                texts.insert((id, None), text);
                continue;
            }
            for version in model.versions.values() {
                let key = (id.clone(), Some(version.number));
                let counters = version.stats.snapshot();
                let before = self.window.back().and_then(|reading| reading.totals.get(&key));
                let total = VersionTotals::read(&counters, before.map(|before| &**before));
                let total = match before {
                    Some(before) if **before == total => Arc::clone(before),
                    _ => Arc::new(total),
                };
                let recent = self.recent(at, &key, &total);
                let load = loads
                    .iter()
                    .find(|load| *load.model == *model.name && load.version == version.number);
                let executing = counters.executing();
                let readings = VersionReadings { total: &total, executing, recent };
                let report = ModelReport::for_version(
                    &model,
                    version,
                    load.map(|load| &**load),
                    Some(readings),
                    since,
                );
                texts.insert(key.clone(), report_text(&report)?);
                totals.insert(key, total);
            }
        }
        Ok(texts)
    }

    /// What came since the oldest reading, and its age in seconds; `None` if nothing did.
    fn recent(
        &self,
        at: Instant,
        key: &VersionKey,
        total: &Arc<VersionTotals>,
    ) -> Option<(f64, VersionTotals)> {
        let oldest = self.window.front()?;
        let before = oldest.totals.get(key)?;
        if Arc::ptr_eq(before, total) {
            return None;
        }
        let recent = total.since(before).filter(|recent| !recent.is_empty())?;
        Some((at.duration_since(oldest.at).as_secs_f64(), recent))
    }
}

fn report_text(report: &ModelReport<'_>) -> Result<Box<str>> {
    let text = crate::recent::write_json(report)?;
    Ok(String::from_utf8_lossy(&text).into())
}

/// The object `head` with a further member `models`, and `removed` if it is given: lists of name
/// and version.
fn join_models<'a>(
    head: &[u8],
    models: impl Iterator<Item = &'a str>,
    removed: Option<&[&VersionKey]>,
) -> Result<Bytes> {
    let mut out = head[..head.len().saturating_sub(1)].to_vec();
    out.extend_from_slice(b",\"models\":[");
    for (at, model) in models.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        out.extend_from_slice(model.as_bytes());
    }
    out.push(b']');
    if let Some(removed) = removed {
        let version = |version: Option<i64>| version.map(|version| version.to_string());
        let removed = removed.iter().map(|(id, number)| (id, version(*number)));
        out.extend_from_slice(b",\"removed\":");
        out.extend(crate::recent::write_json(&removed.collect::<Vec<_>>())?);
    }
    out.push(b'}');
    Ok(out.into())
}

#[cfg(test)]
#[path = "feed_tests.rs"]
mod tests;
