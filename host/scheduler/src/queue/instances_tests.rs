//! Unit tests of `instances.rs`: one for each transition.

use super::InstanceState::{Draining, Idle, Inline, Running, Waking};
use super::*;

/// Three instances; the ones listed in `order` fell asleep in this order.
fn idle(order: &[usize]) -> QueueInstances {
    let mut instances = QueueInstances::new(3);
    order.iter().for_each(|instance| instances.sleep(*instance));
    instances
}

/// Instance 0 of three, run inline.
fn inline() -> QueueInstances {
    let mut instances = idle(&[0]);
    instances.wake(WakeTarget::Any);
    instances.take_woken();
    instances.start_inline(0);
    instances
}

fn woken(instances: &mut QueueInstances) -> Vec<usize> {
    instances.take_woken().into_vec()
}

#[test]
fn sleep_makes_running_instances_idle() {
    let instances = idle(&[2, 0]);
    assert_eq!([0, 1, 2].map(|i| instances.state(i)), [Idle, Running, Idle]);
    assert!(instances.any_idle() && !idle(&[]).any_idle());
    assert!(instances.any_free() && !idle(&[]).any_free());
}

#[test]
fn wake_any_takes_the_last_to_fall_asleep() {
    let mut instances = idle(&[1, 2, 0]);
    for want in [[0].as_slice(), &[2], &[1], &[]] {
        instances.wake(WakeTarget::Any);
        assert_eq!(woken(&mut instances), want);
        assert!(want.iter().all(|i| instances.state(*i) == Waking));
    }
}

#[test]
fn wake_instance_leaves_the_others_and_their_order() {
    let mut instances = idle(&[1, 2, 0]);
    instances.wake(WakeTarget::Instance(2));
    // It is no longer idle: nothing to do.
    instances.wake(WakeTarget::Instance(2));
    assert_eq!(woken(&mut instances), [2]);
    instances.wake_all();
    assert_eq!(woken(&mut instances), [0, 1]);
}

#[test]
fn wake_ignores_running_and_inline_instances() {
    let mut instances = inline();
    instances.wake_all();
    assert!((0..3).all(|i| !instances.wake(WakeTarget::Instance(i))));
    assert!(woken(&mut instances).is_empty());
    assert_eq!([0, 1, 2].map(|i| instances.state(i)), [Inline, Running, Running]);
}

#[test]
fn woke_after_a_notification_makes_running() {
    let mut instances = idle(&[0, 1]);
    instances.wake(WakeTarget::Any);
    assert!(!instances.woke(1));
    assert_eq!([0, 1].map(|i| instances.state(i)), [Idle, Running]);
}

#[test]
fn woke_after_a_timeout_leaves_the_idle_list() {
    let mut instances = idle(&[0, 1]);
    assert!(!instances.woke(1));
    instances.wake(WakeTarget::Any);
    assert_eq!(([0, 1].map(|i| instances.state(i))), [Waking, Running]);
}

#[test]
fn start_inline_takes_a_waking_instance() {
    assert_eq!(inline().state(0), Inline);
}

#[test]
fn finish_inline_and_sleep_makes_idle_without_notification() {
    let mut instances = inline();
    instances.finish_inline(0, AfterInline::Sleep);
    assert_eq!((instances.state(0), woken(&mut instances)), (Idle, vec![]));
    instances.wake(WakeTarget::Any);
    assert_eq!(woken(&mut instances), [0]);
}

#[test]
fn finish_inline_and_wake_notifies_the_own_thread() {
    let mut instances = inline();
    instances.finish_inline(0, AfterInline::Wake);
    assert_eq!((instances.state(0), woken(&mut instances)), (Waking, vec![0]));
    assert!(!instances.woke(0));
}

#[test]
fn finish_inline_and_drain_makes_the_own_thread_wait_first() {
    let mut instances = inline();
    instances.finish_inline(0, AfterInline::Drain);
    assert_eq!((instances.state(0), woken(&mut instances)), (Draining, vec![0]));
    assert!(!instances.any_idle());
    assert!(instances.woke(0));
    assert_eq!(instances.state(0), Running);
}
