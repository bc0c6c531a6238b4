//! Unit tests of `heavy.rs`.

use super::*;
use crate::connections::Wire;
use crate::connections::poll_turn::{HEAVY_POLLS, TURN_COST};
use std::future::poll_fn;
use std::sync::mpsc;
use std::thread;
use tokio::runtime::{Builder, Runtime};

fn runtime(name: &str) -> Runtime {
    Builder::new_multi_thread().worker_threads(1).thread_name(name).build().unwrap()
}

#[test]
fn a_connection_moves_when_it_becomes_heavy_and_when_it_is_light_again() {
    let (light, heavy) = (runtime("light"), runtime("heavy"));
    let state = ConnectionState::alone(Wire::Http2);
    let many = HEAVY_POLLS as usize;
    // What each poll reads.
    let costs = [vec![1; 2], vec![TURN_COST; many], vec![1; many + 2]].concat();
    let (threads, names) = mpsc::channel();
    let (turned, mut costs) = (Arc::clone(&state), costs.into_iter());
    let connection = poll_fn(move |cx| {
        turned.turn.begin();
        threads.send(thread::current().name().unwrap().to_owned()).unwrap();
        let Some(cost) = costs.next() else { return Poll::Ready(()) };
        turned.turn.add(cost);
        cx.waker().wake_by_ref();
        Poll::Pending
    });
    let entered = light.enter();
    Task::spawn(MovingConnection::new(Box::pin(connection), state, heavy.handle().clone()));
    drop(entered);
    // Until the connection has ended.
    let names: Vec<String> = names.iter().collect();
    // A poll is counted at the beginning of the next one, after which the connection moves.
    let runs: Vec<_> =
        names.chunk_by(PartialEq::eq).map(|run| (run[0].as_str(), run.len())).collect();
    assert_eq!(runs, [("light", many + 3), ("heavy", many), ("light", 2)]);
}

#[test]
fn few_full_polls_among_others_make_no_connection_heavy() {
    let state = ConnectionState::alone(Wire::Http2);
    for _ in 0..100 {
        for cost in [TURN_COST, 1] {
            state.turn.add(cost);
            state.turn.begin();
            assert!(!state.turn.is_heavy());
        }
    }
}
