//! Unit tests of `refused_ids.rs`.

use super::*;

#[test]
fn requests_renew_an_id_and_the_idle_limit_expires_it() {
    let mut ids = RefusedIds::new(10);
    let one = CorrelationId::Number(1);
    assert!(!ids.refuses(&one, 0));
    ids.remember(one.clone(), 0);
    assert!(!ids.refuses(&CorrelationId::Text("1".into()), 0));
    assert!(ids.refuses(&one, 9));
    ids.expire(18);
    assert!(ids.refuses(&one, 18));
    assert_eq!(ids.next_deadline(), Some(28));
    ids.expire(28);
    assert!(!ids.refuses(&one, 28));
    assert_eq!((ids.next_deadline(), ids.by_id.len(), ids.by_time.len()), (None, 0, 0));
}

#[test]
fn number_of_ids_is_bounded() {
    let mut ids = RefusedIds::new(u64::MAX);
    for id in 1..=MAX_IDS as u64 + 5 {
        ids.remember(CorrelationId::Number(id), id);
    }
    assert_eq!((ids.by_id.len(), ids.by_time.len()), (MAX_IDS, MAX_IDS));
    assert!(!ids.refuses(&CorrelationId::Number(5), 0));
    assert!(ids.refuses(&CorrelationId::Number(6), 0));
    assert_eq!(ids.next_deadline(), None);
}
