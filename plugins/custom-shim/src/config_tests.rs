//! Unit tests of `config.rs`.

use super::*;

fn message(fields: &[(u32, &[u8])], numbers: &[(u32, u64)]) -> Vec<u8> {
    let mut out = Vec::new();
    fields.iter().for_each(|(number, content)| put_bytes(&mut out, *number, content));
    numbers.iter().for_each(|(number, value)| put_number(&mut out, *number, *value));
    out
}

fn config() -> Vec<u8> {
    let control = |kind| {
        let control = message(&[(2, &[0, 1])], &[(1, kind), (4, 8)]);
        message(&[(1, b"CONTROL"), (2, &control)], &[])
    };
    let state = message(&[(1, b"S_IN"), (2, b"S_OUT")], &[(3, 8)]);
    let sequence = message(
        &[(2, &control(0)), (2, &control(2)), (3, &message(&[], &[(1, 9)])), (5, &state)],
        &[(1, 5000)],
    );
    let input = message(&[(1, b"IN"), (5, &message(&[(1, &[4])], &[]))], &[(2, 8), (8, 1)]);
    let group = message(&[(1, b"g"), (3, &[0])], &[(4, 3), (7, 1)]);
    let parameter = |key: &[u8]| message(&[(1, key), (2, &message(&[(1, b"v")], &[]))], &[]);
    let mut all = message(
        &[
            (1, b"m"),
            (2, b"custom"),
            (3, &message(&[(2, &[])], &[])),
            (5, &input),
            (7, &group),
            (9, &message(&[(1, b"7.0"), (2, b"seventy.so")], &[])),
            (11, &message(&[], &[(2, 1 << 40), (3, 1)])),
            (13, &sequence),
            (14, &parameter(b"k")),
            (14, &parameter(b"custom_api")),
            (14, &parameter(b"isolation")),
            (17, b"custom"),
        ],
        &[],
    );
    put_number(&mut all, 4, 8);
    all
}

fn numbers(bytes: &[u8]) -> Vec<u32> {
    Fields::new(bytes).map(|field| field.unwrap().number).collect()
}

fn only(bytes: &[u8], number: u32) -> Vec<u8> {
    let mut all = Fields::new(bytes).bytes(number);
    let one = all.next().unwrap().to_vec();
    assert!(all.next().is_none());
    one
}

#[test]
fn facts_are_read() {
    let want = SequenceFacts { sequences: true, states: vec![("S_OUT".to_owned(), dtype::INT32)] };
    assert_eq!(SequenceFacts::read(&config()), want);
    assert_eq!(SequenceFacts::read(&[0xff; 9]), SequenceFacts::default());
}

#[test]
fn generation_b_gets_fields_of_v0_12() {
    let (bytes, n) = bytes_for(Generation::V0_12, &config());
    assert_eq!((bytes.len(), bytes[n]), (n + 1, 0));
    let bytes = &bytes[..n];
    assert_eq!(numbers(bytes), [1, 2, 3, 5, 7, 9, 11, 13, 4]);
    assert_eq!(numbers(&only(bytes, 5)), [1, 2]);
    // A kind that came later is the default.
    assert_eq!(numbers(&only(bytes, 7)), [1, 3]);
    let batching = only(bytes, 11);
    assert_eq!((numbers(&batching), Fields::new(&batching).varint(2)), (vec![2], i32::MAX as u64));
    // Neither the limit whose number had another meaning nor the control END.
    let control = only(&only(bytes, 13), 2);
    assert_eq!(
        (Fields::new(&control).text(1), numbers(&only(&control, 2))),
        ("CONTROL".into(), vec![2, 1])
    );
}

#[test]
fn generation_a_configuration_contains_no_zero_byte() {
    let (bytes, n) = bytes_for(Generation::V0_10, &config());
    assert_eq!(bytes.iter().position(|b| *b == 0), Some(n));
    // Without the policy, which has no bytes, and without sequences.
    assert_eq!(numbers(&bytes[..n]), [1, 2, 5, 7, 9, 11, 4]);
    assert_eq!(numbers(&only(&bytes[..n], 7)), [1]);
}

#[test]
fn generation_c_gets_fields_of_v1_13() {
    let (bytes, n) = bytes_for(Generation::V1_0, &config());
    let bytes = &bytes[..n];
    assert_eq!(numbers(bytes), [1, 2, 3, 5, 7, 9, 11, 13, 14, 4]);
    assert_eq!(numbers(&only(bytes, 5)), [1, 5, 2]);
    assert_eq!(numbers(&only(bytes, 7)), [1, 3, 4]);
    assert_eq!(Fields::new(&only(bytes, 11)).varint(2), 1 << 40);
    let sequence = only(bytes, 13);
    assert_eq!(numbers(&sequence), [2, 2, 3, 1]);
    // The strategy is chosen, its later setting is not there.
    assert!(only(&sequence, 3).is_empty());
}
