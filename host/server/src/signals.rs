//! Signals: SIGINT, SIGTERM and SIGQUIT end the server, SIGHUP re-opens the log file.

use tokio::signal::unix::{Signal, SignalKind, signal};
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
}

impl Signals {
    /// # Errors
    /// The system's reason.
    pub fn new(log: LogControl) -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            quit: signal(SignalKind::quit())?,
            hangup: signal(SignalKind::hangup())?,
            log,
        })
    }

    /// Waits for a signal that ends the server, and returns its number. Handles the others.
    pub async fn end(&mut self) -> i32 {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => return 2,
                _ = self.terminate.recv() => return TERMINATE,
                _ = self.quit.recv() => return 3,
                _ = self.hangup.recv() => match self.log.reopen_log() {
                    Ok(true) => tracing::info!("log file re-opened"),
                    Ok(false) => tracing::info!("SIGHUP ignored: there is no log file to re-open"),
                    Err(e) => tracing::error!("{e}; the log goes on in the old file"),
                },
            }
        }
    }
}
