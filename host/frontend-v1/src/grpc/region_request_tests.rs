//! Unit tests of `region_request.rs`: the encodings of all releases.

use super::RegionControl::*;
use super::*;
use trtserver_proto_wire::{put_bytes, put_number};

/// A field of a message.
enum F<'a> {
    N(u32, u64),
    T(u32, &'a str),
    M(u32, &'a [F<'a>]),
}
use F::{M, N, T};

fn encoded(fields: &[F<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    for field in fields {
        match field {
            N(number, value) => put_number(&mut out, *number, *value),
            T(number, text) => put_bytes(&mut out, *number, text.as_bytes()),
            M(number, fields) => put_bytes(&mut out, *number, &encoded(fields)),
        }
    }
    out
}

#[test]
fn requests_of_all_releases() {
    let register = |offset, byte_size| Some(Register { name: "n", key: "/k", offset, byte_size });
    let cuda = |handle: &'static str, device_id, byte_size| {
        let memory = CudaMemory { handle: handle.as_bytes(), device_id, byte_size };
        Some(RegisterCuda { name: "n", memory })
    };
    let unregister = Some(Unregister { name: "n" });
    let region: &[F<'_>] = &[T(1, "n"), T(2, "/k"), N(3, 8), N(4, 64)];
    let bare: &[F<'_>] = &[T(1, "n")];
    let table: &[(&str, &[F<'_>], _)] = &[
        ("v1.5 register", &[N(1, 1), M(2, region)], register(8, 64)),
        ("v1.5 unregister", &[M(2, bare)], unregister),
        ("v1.6 register", &[M(2, region)], register(8, 64)),
        (
            "v1.6 register without offset",
            &[M(2, &[T(1, "n"), T(2, "/k"), N(4, 64)])],
            register(0, 64),
        ),
        ("v1.6 unregister", &[N(1, 1), M(2, bare)], unregister),
        ("v1.6 unregister all", &[N(1, 2)], Some(UnregisterAll)),
        ("v1.6 unregister all, with a region", &[N(1, 2), M(2, &[])], Some(UnregisterAll)),
        (
            "v1.7 register",
            &[M(1, &[T(1, "n"), M(2, &[T(2, "/k")]), N(4, 8), N(5, 64)])],
            register(8, 64),
        ),
        (
            "v1.7 register without offset",
            &[M(1, &[T(1, "n"), M(2, &[T(2, "/k")]), N(5, 64)])],
            register(0, 64),
        ),
        (
            "v1.7 register without size",
            &[M(1, &[T(1, "n"), M(2, &[T(2, "/k")]), N(4, 8)])],
            register(8, 0),
        ),
        (
            "v1.7 CUDA",
            &[M(1, &[T(1, "n"), M(3, &[T(1, "/k"), N(2, 0), N(3, 64)])])],
            cuda("/k", 0, 0),
        ),
        (
            "v1.8 register",
            &[M(1, &[T(1, "n"), M(2, &[T(1, "/k"), N(2, 8)]), N(4, 64)])],
            register(8, 64),
        ),
        (
            "v1.8 register, fields in another order",
            &[M(1, &[N(4, 64), M(2, &[N(2, 8), T(1, "/k")]), T(1, "n")])],
            register(8, 64),
        ),
        (
            "v1.8 register of the largest numbers",
            &[M(1, &[T(1, "n"), M(2, &[T(1, "/k"), N(2, u64::MAX)]), N(4, u64::MAX)])],
            register(u64::MAX, u64::MAX),
        ),
        (
            "v1.8 register of nothing",
            &[M(1, &[T(1, "n"), N(4, 64)])],
            Some(RegisterNothing { name: "n" }),
        ),
        (
            "v1.8 CUDA",
            &[M(1, &[T(1, "n"), M(3, &[T(1, "handle"), N(2, 1)]), N(4, 64)])],
            cuda("handle", 1, 64),
        ),
        ("v1.7 unregister", &[M(2, bare)], unregister),
        ("v1.7 unregister all", &[M(3, &[])], Some(UnregisterAll)),
        ("v1.7 status", &[M(4, &[])], Some(Status)),
        ("the last request of several", &[M(3, &[]), M(4, &[]), M(2, bare)], unregister),
        ("unknown fields", &[N(9, 1), T(10, "x"), M(4, &[T(7, "y")])], Some(Status)),
        ("nothing", &[], None),
        ("an enum alone", &[N(1, 1)], None),
    ];
    for (what, fields, want) in table {
        assert_eq!(read_region_request(&encoded(fields)), Ok(*want), "{what}");
    }
}

#[test]
fn malformed_messages_are_refused() {
    let invalid_name = [0x12, 3, 0x0a, 1, 0xff];
    let cases: &[(&[u8], &str)] = &[
        (&[0x12], "truncated message"),
        (&[0x12, 5, 0x0a], "truncated message"),
        (&[0x0a, 2, 0x12, 9], "truncated message"),
        (&[0x00], "invalid tag 0x0"),
        (&invalid_name, "a text is not UTF-8"),
        (&[0x13], "groups are not supported"),
    ];
    for (message, want) in cases {
        assert_eq!(read_region_request(message), Err((*want).to_owned()), "{message:?}");
    }
}
