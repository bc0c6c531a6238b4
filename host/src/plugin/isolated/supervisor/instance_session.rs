//! The instances of a model: what stays of each while processes come and go, and how it is connected with one.

use super::super::messages::{InstanceFacts, ask};
use super::super::process::Asked;
use super::super::responses::Answers;
use super::super::wire;
use super::super::work_connection::Line;
use super::{Live, Phase, Shared, Unopened};
use crate::error::{Error, Result};
use crate::sync::{Mutex, MutexGuard};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

/// What remains of an instance while its processes come and go.
pub struct Seat {
    facts: InstanceFacts,
    line: Mutex<Connected>,
    /// Called when a process is gone and with it what it remembered.
    pub lost: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

/// With the thread that reads, if it is another one than the instance's.
pub(super) type Connected = Option<(Arc<Line>, Option<JoinHandle<()>>)>;

impl Seat {
    pub fn new(facts: InstanceFacts) -> Arc<Self> {
        Arc::new(Self { facts, line: Mutex::default(), lost: OnceLock::new() })
    }

    pub fn line(&self) -> Option<Arc<Line>> {
        self.lock().as_ref().map(|(line, _)| Arc::clone(line))
    }

    pub fn tell_lost(&self) {
        if let Some(lost) = self.lost.get() {
            lost();
        }
    }

    /// Takes the connection away, if there is one.
    pub(super) fn disconnect(&self) -> Connected {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Connected> {
        self.line.lock()
    }
}

impl Shared {
    pub(super) fn ask_for<'a>(
        &self,
        live: &'a Live,
        seat: &Seat,
    ) -> Result<(Asked<'a>, UnixStream), Unopened> {
        let (ours, theirs) = wire::pair()?;
        // Where the instance reads the answers itself, nobody else would see that a batch is not taken.
        ours.set_write_timeout(self.limits.answer).map_err(|e| {
            Error::internal(format!("{}: no connection to its process: {e}", self.subject))
        })?;
        let open = ask::What::OpenInstance(seat.facts.clone());
        Ok((live.process.ask(open, &[theirs.as_fd()])?, ours))
    }

    /// From here on requests go to the process.
    pub(super) fn connect(&self, live: &Live, seat: &Seat, ours: UnixStream) -> Result<Arc<Line>> {
        let (sender, receiver) = wire::halves(ours);
        let answers = Answers::new(receiver, &live.memory, &self.names, self.limits.answer)?;
        let (process, ordinal) = (Arc::clone(&live.process), seat.facts.ordinal);
        if self.one_at_a_time {
            let line = Line::new(sender, process, ordinal, Some(answers));
            *seat.lock() = Some((Arc::clone(&line), None));
            return Ok(line);
        }
        let line = Line::new(sender, process, ordinal, None);
        let (mut answers, read) = (answers, Arc::clone(&line));
        let thread = std::thread::Builder::new()
            .name(format!("answers {}", seat.facts.name))
            .spawn(move || answers.read(&read, false))
            .map_err(|e| Error::internal(format!("{}: no thread: {e}", self.subject)))?;
        *seat.lock() = Some((Arc::clone(&line), Some(thread)));
        Ok(line)
    }

    /// Opens a further instance in the process that runs.
    pub fn add(&self, seat: &Arc<Seat>) -> Result<(Arc<Line>, u64)> {
        let live = self.live(0)?;
        let opened = self.ask_for(&live, seat).and_then(|(asked, ours)| {
            self.wait(asked)?;
            Ok(self.connect(&live, seat, ours)?)
        });
        match opened {
            Ok(line) => {
                let mut state = self.lock();
                if matches!(&state.phase, Phase::Up(up) if up.generation == live.generation) {
                    state.seats.push(Arc::clone(seat));
                    return Ok((line, live.generation));
                }
                drop(state);
                line.close();
            }
            Err(Unopened::Refused(e)) => return Err(e),
            Err(Unopened::Gone) => {}
        }
        // Whoever reaped it knows why.
        Err(match self.live(live.generation) {
            Err(e) => e,
            Ok(_) => Error::internal(format!("{}: its process ended meanwhile", self.subject)),
        })
    }
}
