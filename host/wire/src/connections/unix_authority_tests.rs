//! Unit tests of `net/connections/unix_authority`.

use super::*;

fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, 4, 0, 0, 0, 1], payload].concat()
}

/// The header as gRPC's C core sends it.
fn authority(value: &str) -> Vec<u8> {
    let mut length = vec![value.len() as u8];
    if value.len() >= 0x7f {
        let rest = value.len() - 0x7f;
        length = vec![0x7f, 0x80 | (rest % 128) as u8, (rest / 128) as u8];
    }
    [b"@\x05:path\x04/a%b@".as_slice(), NAME, &length, value.as_bytes(), b"@\x02te\x01%"].concat()
}

fn rewritten(bytes: &[u8], chunk: usize) -> Vec<u8> {
    let mut all = bytes.to_vec();
    let mut authority = UnixAuthority::default();
    all.chunks_mut(chunk).for_each(|part| authority.rewrite(part));
    all
}

#[test]
fn percent_signs_of_the_authority_alone_are_replaced_in_any_chunks() {
    let long = "tmp%2F".repeat(50);
    let connection = |first: &str, second: &str, third: &str| {
        let data = authority("run%2Fs");
        let third = authority(third);
        let (half, rest) = third.split_at(third.len() / 2);
        [
            vec![b'P'; PREFACE],
            frame(4, b"%%"),
            frame(HEADERS, &authority(first)),
            frame(0, &data),
            frame(HEADERS, &authority(second)),
            frame(HEADERS, half),
            frame(CONTINUATION, rest),
            frame(HEADERS, b"@\x0a:authority\x83%%%"),
        ]
        .concat()
    };
    let sent = connection("tmp%2Fs", &long, "a%2Fb");
    let expected = connection("tmp-2Fs", &long.replace('%', "-"), "a-2Fb");
    for chunk in [1, 2, 7, 64, sent.len()] {
        assert_eq!(rewritten(&sent, chunk), expected, "{chunk}");
    }
}
