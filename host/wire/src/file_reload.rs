//! Files that are looked at again while the server runs: in an interval, and when asked to.

use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::spawn_blocking;

/// Has `files` looked at in this interval (`None`: only when asked to), for as long as the server
/// runs. `what` names them in the log, such as `TLS files are`.
pub async fn reload_files<F: Send + 'static>(
    mut files: F,
    what: &str,
    interval: Option<Duration>,
    asked: Arc<Notify>,
    look: impl Fn(&mut F) + Send + Copy + 'static,
) {
    loop {
        let pause = async {
            match interval {
                Some(interval) => tokio::time::sleep(interval).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = pause => {}
            () = asked.notified() => {}
        }
        // Files may be on a slow or broken disk.
        let looked = spawn_blocking(move || {
            look(&mut files);
            files
        });
        match looked.await {
            Ok(back) => files = back,
            Err(e) => return tracing::error!("{what} not read any more: {e}"),
        }
    }
}
