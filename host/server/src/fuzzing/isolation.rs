//! What the process of an isolated model sends over its control connection: responses, log records
//! and metrics.

use parking_lot::Mutex;
use prost::Message;
use std::collections::HashSet;
use trtserver_isolation::messages::ControlMessage;
use trtserver_isolation::messages::control_message::MessageKind;
use trtserver_isolation::testing;
use trtserver_isolation::testing::{KillReason, MAX_BYTES};
use trtserver_isolation::wire::MAX_MESSAGE;
use trtserver_plugin_host::host_api::metric::gather_metrics;
use trtserver_request::buffer::ALIGN;

/// Bytes over a control connection, see [`frames`]. The first response to each request is delivered
/// as it is, what it says of the backend is valid or refused, the log keeps a few lines, and
/// metrics are removed with the child.
pub fn isolation_control(bytes: &[u8]) {
    // The registry of metrics is one per process.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock();
    let bytes = frames(bytes);
    let mut responses = [None, None];
    let mut metrics = HashSet::new();
    let mut malformed = false;
    for message in messages(&bytes) {
        let Ok(Ok(message)) = message.map(ControlMessage::decode) else {
            malformed = true;
            break;
        };
        let encoded = message.encode_to_vec();
        let decoded = ControlMessage::decode(&*encoded).map(|m| m.encode_to_vec());
        assert_eq!(decoded, Ok(encoded));
        match message.kind {
            Some(MessageKind::Response(response)) => {
                if let Some(slot @ None) =
                    responses.get_mut((response.number as usize).wrapping_sub(1))
                {
                    *slot = Some(response);
                }
            }
            Some(MessageKind::Metric(metric)) => drop(metrics.insert(metric.name)),
            _ => {}
        }
    }
    let outcome = testing::control(&bytes);
    match &outcome.killed {
        None => assert!(!malformed),
        Some(KillReason::ProtocolViolation(_)) => assert!(malformed),
        Some(other) => panic!("{other:?}"),
    }
    assert!(outcome.tail.chars().count() < 2000, "{}", outcome.tail);
    for (found, expected) in outcome.responses.into_iter().zip(responses) {
        assert_eq!(found, expected);
        let Some(facts) = found.and_then(testing::backend_facts) else { continue };
        match facts {
            Ok(facts) => {
                assert!(!facts.name.is_empty() && facts.max_in_flight > 0);
                assert!(facts.align == 0 || facts.align.is_power_of_two() && facts.align <= ALIGN);
                // A thread of the server gets it.
                assert!((1 << 19..1 << 42).contains(&facts.stack_bytes), "{}", facts.stack_bytes);
            }
            Err(e) => assert!(!e.message.is_empty()),
        }
    }
    let left = gather_metrics().into_iter().find(|family| metrics.contains(family.name()));
    assert!(left.is_none(), "{left:?} is left");
}

/// Messages as the wire frames them, each behind its length (two bytes). What is left goes over the
/// wire as it is.
fn frames(mut bytes: &[u8]) -> Vec<u8> {
    let mut framed = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk()
        && let Some((message, rest)) = rest.split_at_checked(u16::from_le_bytes(*length).into())
    {
        framed.extend_from_slice(&u32::from(u16::from_le_bytes(*length)).to_ne_bytes());
        framed.extend_from_slice(message);
        bytes = rest;
    }
    framed.extend_from_slice(bytes);
    framed.truncate(MAX_BYTES);
    framed
}

/// The messages in framed bytes; an error for one that is too long. A message that is cut off is
/// not received.
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Result<&[u8], String>> {
    std::iter::from_fn(move || {
        let (length, rest) = bytes.split_first_chunk()?;
        let length = u32::from_ne_bytes(*length) as usize;
        if length > MAX_MESSAGE {
            return Some(Err(format!("{length} bytes")));
        }
        let (message, rest) = rest.split_at_checked(length)?;
        bytes = rest;
        Some(Ok(message))
    })
}
