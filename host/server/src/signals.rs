//! Signals: SIGINT, SIGTERM and SIGQUIT end the server, SIGHUP re-opens the log file and
//! reads the files of TLS again.

use crate::service_socket::ServiceSocket;
use std::sync::Arc;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;
use trtserver_config::log::LogControl;

/// The number of SIGTERM, which begins the drain delay.
pub const TERMINATE: i32 = 15;

/// The signals of the process. From its creation on none of them ends the process by itself.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    quit: Signal,
    hangup: Signal,
    log: LogControl,
    /// Asks for a look at the files of TLS; `None` without TLS.
    tls_reload: Option<Arc<Notify>>,
    service: Arc<ServiceSocket>,
}

impl Signals {
    /// # Errors
    /// The system's reason.
    pub fn new(
        log: LogControl,
        tls_reload: Option<Arc<Notify>>,
        service: Arc<ServiceSocket>,
    ) -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            quit: signal(SignalKind::quit())?,
            hangup: signal(SignalKind::hangup())?,
            log,
            tls_reload,
            service,
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
        if let Some(reload) = &self.tls_reload {
            tracing::info!("SIGHUP: the files of TLS are read again");
            reload.notify_one();
        }
        match self.log.reopen_log() {
            Ok(true) => tracing::info!("log file re-opened"),
            Ok(false) if self.tls_reload.is_some() => {}
            Ok(false) => tracing::info!("SIGHUP ignored: there is no log file to re-open"),
            Err(e) => tracing::error!("{e}; the log goes on in the old file"),
        }
    }
}
