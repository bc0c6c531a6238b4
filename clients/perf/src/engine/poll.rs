//! epoll with a timeout of nanosecond precision, and sockets that connect without blocking.

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// Token of the timer.
const TIMER: u64 = u64::MAX;
/// Waits that are shorter do not sleep: setting the timer and waking up takes longer.
const NO_SLEEP: Duration = Duration::from_micros(20);

pub struct Poll {
    epoll: OwnedFd,
    timer: OwnedFd,
    events: Vec<Event>,
}

impl Poll {
    pub fn new() -> Result<Self, String> {
        let wrap = |e: Errno| format!("epoll: {e}");
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(wrap)?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags).map_err(wrap)?;
        // Edge-triggered: it need not be read.
        let once = EventFlags::IN | EventFlags::ET;
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), once).map_err(wrap)?;
        Ok(Poll { epoll, timer, events: Vec::with_capacity(256) })
    }

    /// Edge-triggered, both directions.
    pub fn add(&self, socket: impl AsFd, token: usize) -> Result<(), Errno> {
        let both = EventFlags::IN | EventFlags::OUT | EventFlags::ET | EventFlags::RDHUP;
        epoll::add(&self.epoll, socket, EventData::new_u64(token as u64), both)
    }

    /// Waits for events; `tokens` are the sockets with one. `precise` wakes up at the nanosecond
    /// instead of the millisecond, at the cost of a system call.
    pub fn wait(
        &mut self,
        timeout: Duration,
        precise: bool,
        tokens: &mut Vec<usize>,
    ) -> Result<(), String> {
        let timeout = match timeout {
            short if short < NO_SLEEP => Timespec { tv_sec: 0, tv_nsec: 0 },
            long => spec(long),
        };
        let long = timeout.tv_sec > 0 || timeout.tv_nsec > 0;
        if precise && long {
            let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
            let once = Itimerspec { it_interval: zero, it_value: timeout };
            timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)
                .map_err(|e| format!("timerfd: {e}"))?;
        }
        self.events.clear();
        let space = rustix::buffer::spare_capacity(&mut self.events);
        match epoll::wait(&self.epoll, space, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(e) => return Err(format!("epoll: {e}")),
        }
        tokens.clear();
        let all = self.events.iter().map(|event| event.data.u64());
        tokens.extend(all.filter(|token| *token != TIMER).map(|token| token as usize));
        Ok(())
    }
}

fn spec(duration: Duration) -> Timespec {
    Timespec { tv_sec: duration.as_secs().min(1 << 30) as _, tv_nsec: duration.subsec_nanos() as _ }
}

/// A socket that connects in the background.
pub fn connect_socket(address: SocketAddr) -> Result<TcpStream, Errno> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    match rustix::net::connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(TcpStream::from(socket)),
        Err(e) => Err(e),
    }
}
