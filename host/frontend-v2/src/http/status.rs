//! The endpoints of the status page, extensions of this server: `GET /v2/trtserver/status` and its
//! events, `/v2/trtserver/changes`, `/v2/trtserver/log` and the configuration of a model with its
//! source.

use super::response::error_response;
use super::small_body_of;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio_stream::Stream;
use trtserver_base::error::{Error, Result};
use trtserver_base::state::ServerPhase;
use trtserver_models::lifecycle::ModelVersion;
use trtserver_status_page::recent::EntryQuery;
use trtserver_status_page::{
    StatusFeed, StatusSnapshot, StatusSources, Viewer, configuration, recent,
};
use trtserver_wire::chunks::Chunk;
use trtserver_wire::context::FrontendContext;
use trtserver_wire::http::body::ResponseBody;
use trtserver_wire::http::collect::{ReceivedBody, StreamConnection};

/// A stream looks this often whether the server ends, and sends an event every so many looks.
const LOOK: Duration = Duration::from_millis(250);
const LOOKS: u32 = 4;

/// The status.
pub async fn status_json(ctx: &FrontendContext) -> Result<Vec<u8>> {
    Ok(take_snapshot(ctx).await?.full.to_vec())
}

/// The last changes of the repository.
pub fn changes_json(ctx: &FrontendContext, query: Option<&str>) -> Result<Vec<u8>> {
    recent::changes_json(&ctx.models.loads.changes, EntryQuery::parse(query)?)
}

/// The last lines of the log.
pub fn log_json(ctx: &FrontendContext, query: Option<&str>) -> Result<Vec<u8>> {
    recent::lines_json(ctx.log.recent_lines(), EntryQuery::parse(query)?)
}

/// The complete configuration of a model, served or not, with its source.
pub fn configuration_json(ctx: &FrontendContext, name: &str, version: &str) -> Result<Vec<u8>> {
    let model = ctx.models.model(name).map_err(|missing| missing.error())?;
    let number = version.parse().ok();
    let served = number.and_then(|number: i64| model.versions.get(&number)?.served());
    if !version.is_empty() && !number.is_some_and(|number| model.versions.contains_key(&number)) {
        return Err(Error::not_found(format!("model '{name}' has no version {version}")));
    }
    let served =
        served.or_else(|| model.versions.values().rev().find_map(|v| ModelVersion::served(v)));
    let config = served.as_ref().map(|served| &*served.config).or(model.config.as_deref());
    // Of a refused model what its file says.
    let config = config.or_else(|| model.read_config().map(|read| &read.config));
    let config = config.ok_or_else(|| {
        let why = model.refusal.as_deref().unwrap_or("it was not loaded");
        Error::unavailable(format!("model '{name}' has no configuration: {why}"))
    })?;
    configuration::configuration_json(config, model.config_source())
}

/// The snapshot that is due. Made on a thread that may block: with many models it takes a while.
async fn take_snapshot(ctx: &FrontendContext) -> Result<Arc<StatusSnapshot>> {
    let feed = Arc::clone(&ctx.status);
    let sources = StatusSources {
        models: Arc::clone(&ctx.models),
        state: Arc::clone(&ctx.state),
        settings: Arc::clone(&ctx.settings),
    };
    let made = tokio::task::spawn_blocking(move || StatusFeed::current(&feed, &sources));
    made.await.map_err(|e| Error::internal(format!("the status failed: {e}")))?
}

/// Serves the status as server-sent events: the whole one, then what has changed, every second.
pub async fn serve_events<B: ReceivedBody>(
    ctx: Arc<FrontendContext>,
    body: B,
) -> Response<ResponseBody> {
    let connection = body.connection();
    if let Err(error) = small_body_of(body).await {
        return error_response(&error);
    }
    let viewer = ctx.status.watch();
    let events = StatusEvents {
        connection,
        _viewer: viewer,
        next: next_event(Arc::clone(&ctx), 0),
        ctx,
        began: false,
    };
    let mut response = Response::new(ResponseBody::streamed(Box::pin(events)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The sequence number of an event, and the event; `None` at the end of the server.
type EventFuture = Pin<Box<dyn Future<Output = Option<(u64, Bytes)>> + Send>>;

/// The body of the events.
struct StatusEvents {
    ctx: Arc<FrontendContext>,
    connection: StreamConnection,
    _viewer: Viewer,
    next: EventFuture,
    began: bool,
}

/// The event after the snapshot `last`; 0: the first one, which comes at once.
fn next_event(ctx: Arc<FrontendContext>, last: u64) -> EventFuture {
    Box::pin(async move {
        loop {
            for _ in 0..if last == 0 { 0 } else { LOOKS } {
                if ctx.state.phase() == ServerPhase::Exiting {
                    return None;
                }
                tokio::time::sleep(LOOK).await;
            }
            let snapshot = take_snapshot(&ctx).await.ok()?;
            let event = match snapshot.sequence.saturating_sub(last) {
                // With many models snapshots are rarer.
                0 => continue,
                1 if last > 0 => event_text("change", &snapshot.changed),
                _ => event_text("status", &snapshot.full),
            };
            return Some((snapshot.sequence, event));
        }
    })
}

fn event_text(kind: &str, json: &[u8]) -> Bytes {
    // JSON in one line.
    let mut event = format!("event: {kind}\ndata: ").into_bytes();
    event.extend_from_slice(json);
    event.extend_from_slice(b"\n\n");
    event.into()
}

impl Stream for StatusEvents {
    type Item = Chunk;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Chunk>> {
        if !self.began {
            self.began = true;
            self.connection.response_began();
        }
        let Some((sequence, event)) = ready!(self.next.as_mut().poll(cx)) else {
            self.connection.response_ended();
            return Poll::Ready(None);
        };
        self.next = next_event(Arc::clone(&self.ctx), sequence);
        Poll::Ready(Some(Chunk::counted(event, self.connection.unread.as_ref())))
    }
}
