//! Signals: SIGINT, SIGTERM and SIGQUIT end the server, SIGHUP re-opens the log file and the access
//! log, and reads the files of TLS and the auth file again.

use crate::service_socket::ServiceSocket;
use crate::telemetry::Telemetry;
use std::sync::Arc;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;
use trtserver_config::log::LogControl;

/// The number of SIGTERM, which begins the drain delay.
pub const TERMINATE: i32 = 15;

/// Files that are read again when asked for.
pub struct FileReload {
    /// Such as `the auth file is`.
    pub what: &'static str,
    pub asked: Arc<Notify>,
}

/// The signals of the process. From its creation on none of them ends the process by itself.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    quit: Signal,
    hangup: Signal,
    log: LogControl,
    reloads: Vec<FileReload>,
    service: Arc<ServiceSocket>,
    telemetry: Telemetry,
}

impl Signals {
    /// # Errors
    /// The system's reason.
    pub fn new(
        log: LogControl,
        reloads: Vec<FileReload>,
        service: Arc<ServiceSocket>,
        telemetry: Telemetry,
    ) -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            quit: signal(SignalKind::quit())?,
            hangup: signal(SignalKind::hangup())?,
            log,
            reloads,
            service,
            telemetry,
        })
    }

    /// Waits for a signal that ends the server, and returns its number. Handles the others.
    pub async fn end(&mut self) -> i32 {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => return 2,
                _ = self.terminate.recv() => return TERMINATE,
                _ = self.quit.recv() => return 3,
                _ = self.hangup.recv() => self.service.report_reload(|| self.hang_up()),
            }
        }
    }

    fn hang_up(&self) {
        for FileReload { what, asked } in &self.reloads {
            tracing::info!("SIGHUP: {what} read again");
            asked.notify_one();
        }
        let access_log = self.telemetry.reopen();
        if access_log {
            tracing::info!("SIGHUP: the access log is re-opened");
        }
        match self.log.reopen_log() {
            Ok(true) => tracing::info!("log file re-opened"),
            Ok(false) if !self.reloads.is_empty() || access_log => {}
            Ok(false) => tracing::info!("SIGHUP ignored: there is no log file to re-open"),
            Err(e) => tracing::error!("{e}; the log goes on in the old file"),
        }
    }
}
