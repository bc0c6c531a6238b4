//! Unit tests of the wire format reader and writer.

use super::*;

fn read(message: &[u8]) -> Result<Vec<(u32, WireValue<'_>)>, WireError> {
    Fields::new(message).map(|field| field.map(|f| (f.number, f.value))).collect()
}

#[test]
fn written_fields_are_read_back() {
    let mut message = Vec::new();
    put_number(&mut message, 4, 300);
    put_bytes(&mut message, 1, b"name");
    put_tag(&mut message, 5, WireType::Fixed32);
    message.extend([1, 0, 0, 0]);
    put_tag(&mut message, 6, WireType::Fixed64);
    message.extend([0, 1, 0, 0, 0, 0, 0, 0]);
    put_number(&mut message, (1 << 29) - 1, u64::MAX);
    let fields = [
        (4, WireValue::Varint(300)),
        (1, WireValue::Bytes(b"name")),
        (5, WireValue::Fixed32(1)),
        (6, WireValue::Fixed64(256)),
        ((1 << 29) - 1, WireValue::Varint(u64::MAX)),
    ];
    assert_eq!(read(&message).unwrap(), fields);
    let encoded: Vec<_> = Fields::new(&message).flat_map(|f| f.unwrap().encoded).collect();
    assert!(encoded.into_iter().eq(&message));
}

#[test]
fn valid_encodings() {
    let table: [(&[u8], (u32, WireValue<'_>)); 6] = [
        (&[0x0a, 0], (1, WireValue::Bytes(b""))),
        (&[0x08, 0x7f], (1, WireValue::Varint(127))),
        // Longer than needed is allowed.
        (&[0x88, 0, 0x81, 0], (1, WireValue::Varint(1))),
        (
            &[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
            (1, WireValue::Varint(!0)),
        ),
        (
            &[0x08, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0],
            (1, WireValue::Varint(0)),
        ),
        (&[0xfa, 1, 1, 7], (31, WireValue::Bytes(&[7]))),
    ];
    for (message, field) in table {
        assert_eq!(read(message).unwrap(), [field], "{message:x?}");
    }
    assert_eq!(read(&[]).unwrap(), []);
}

#[test]
fn malformed_messages_end_with_an_error() {
    let table: [(&[u8], WireError); 17] = [
        (&[0x80], WireError::Truncated),
        (&[0x08], WireError::Truncated),
        (&[0x08, 0x80], WireError::Truncated),
        (&[0x09, 1, 2, 3, 4, 5, 6, 7], WireError::Truncated),
        (&[0x0d, 1, 2, 3], WireError::Truncated),
        (&[0x0a], WireError::Truncated),
        (&[0x0a, 2, 1], WireError::Truncated),
        (&[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1], WireError::Truncated),
        (&[0xff; 20], WireError::VarintOverflow),
        (
            &[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2],
            WireError::VarintOverflow,
        ),
        (
            &[0x08, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80],
            WireError::VarintOverflow,
        ),
        (&[0x02, 0], WireError::InvalidTag(2)),
        (&[0x0e], WireError::InvalidTag(0x0e)),
        (&[0x0f], WireError::InvalidTag(0x0f)),
        (&[0x82, 0x80, 0x80, 0x80, 0x10, 0], WireError::InvalidTag(0x1_0000_0002)),
        (&[0x0b, 0x0c], WireError::Group),
        (&[0x0c], WireError::Group),
    ];
    for (message, error) in table {
        assert_eq!(read(message), Err(error), "{message:x?}");
        // Nothing follows the error, and what precedes it is read.
        let longer = [&[0x10, 7], message].concat();
        let items: Vec<_> = Fields::new(&longer).collect();
        assert_eq!((items.len(), items[1]), (2, Err(error)));
        assert_eq!((Fields::new(&longer).varint(2), Fields::new(&longer).varint(1)), (7, 0));
    }
}

#[test]
fn every_cut_and_every_changed_byte_is_read_without_panic() {
    let mut message = Vec::new();
    put_bytes(&mut message, 1, b"name");
    put_number(&mut message, 300, 1 << 40);
    put_tag(&mut message, 2, WireType::Fixed32);
    message.extend([0xff; 4]);
    for at in 0..message.len() {
        let _ = read(&message[..at]);
        for byte in 0..=u8::MAX {
            let mut changed = message.clone();
            changed[at] = byte;
            let len: usize = Fields::new(&changed).flatten().map(|field| field.encoded.len()).sum();
            assert!(len <= changed.len());
        }
    }
}

#[test]
fn last_value_of_a_field_counts() {
    let mut message = Vec::new();
    for (text, number) in [("a", 1), ("b\u{e9}", 2)] {
        put_bytes(&mut message, 1, text.as_bytes());
        put_number(&mut message, 2, number);
    }
    let fields = Fields::new(&message);
    assert_eq!((fields.text(1), fields.varint(2)), ("b\u{e9}".to_owned(), 2));
    assert_eq!(fields.bytes(1).count(), 2);
    // Other fields, and fields of another wire type.
    assert_eq!(
        (fields.text(2), fields.varint(1), fields.text(9)),
        (String::new(), 0, String::new())
    );
}

#[test]
fn varint_is_read_byte_by_byte() {
    let mut varint = PartialVarint::default();
    assert_eq!(varint.push(0xac), Ok(None));
    assert_eq!(varint.push(0x02), Ok(Some(300)));
    assert_eq!(varint.push(0x01), Ok(Some(1)));
    let mut endless = PartialVarint::default();
    let pushed: Vec<_> = (0..10).map(|_| endless.push(0xff)).collect();
    assert_eq!(pushed[8..], [Ok(None), Err(WireError::VarintOverflow)]);
}
