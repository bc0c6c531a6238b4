//! Unit tests of `gate.rs`, and what a check costs.

use super::*;
use crate::connections::PeerAddress;
use crate::testing;
use CallerProtocol::{Grpc, Http};
use sha2::{Digest, Sha256};
use std::time::Instant;
use trtserver_base::access_stats::AccessRefusalReason;
use trtserver_config::{AccessedModels, ApiGroup, AuthFile, CertificateName};

fn settings(flags: &[&str]) -> Arc<ServerSettings> {
    let args = ["trtserver", "--model-store=/m"].iter().chain(flags).map(std::ffi::OsString::from);
    Arc::new(trtserver_config::from_args(args, &|_| None, "1").unwrap().settings)
}

fn hex(token: &str) -> String {
    Sha256::digest(token).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn gate(flags: &[&str], file: Option<&str>) -> AccessGate {
    let stats = Arc::<AccessStats>::default();
    let names = file
        .map(|text| NameTable::new(AuthFile::parse("f", text.as_bytes()).unwrap(), &stats, None));
    let rules = Arc::new(AccessRules::new(settings(flags), names, stats));
    AccessGate { rules, is_control_listener: false }
}

fn headers(values: &[(&'static str, &str)]) -> HeaderMap {
    values.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
}

fn infer(model: &str) -> EndpointAccess<'_> {
    EndpointAccess::for_models(&[ApiGroup::Inference], AccessedModels::Named(model))
}

/// The name under which a request is admitted, or the reason of its refusal.
fn admit(
    gate: &AccessGate,
    headers: &HeaderMap,
    names: &[CertificateName],
    endpoint: &EndpointAccess<'_>,
) -> Result<String, AccessRefusal> {
    let base = testing::context((*settings(&[])).clone(), []);
    let peer = ConnectionPeer { address: PeerAddress::Unix, certificate_names: names.to_vec() };
    let caller = Caller { protocol: Http, headers, peer: &peer };
    let admitted = gate.admit(&base, &caller, endpoint, true)?;
    assert!(admitted.context.access.is_none());
    Ok(admitted.context.caller.as_ref().map_or(String::new(), |caller| caller.name.to_string()))
}

#[test]
fn callers_are_known_by_token_then_certificate() {
    let file = format!(
        "anonymous - infer:*:open\na {} infer\nb dns:b.example,{} infer:*:open,b-*\n",
        hex("s3cret"),
        hex("other")
    );
    let gate = gate(&[], Some(&file));
    let b = [CertificateName::Uri("x".into()), CertificateName::Dns("b.example".into())];
    let unknown = [CertificateName::Uri("b.example".into())];
    let needs = |model: &str| AccessRefusal::NoToken(format!("infer:inference:{model}"));
    let lacks = |name: &str, model: &str| AccessRefusal::MissingScope {
        name: name.to_owned(),
        scope: format!("infer:inference:{model}"),
    };
    for (authorization, names, model, expected) in [
        (&[][..], &[][..], "open", Ok("anonymous")),
        (&[], &[], "b-1", Err(needs("b-1"))),
        (&["Bearer s3cret"], &[], "x", Ok("a")),
        (&["bearer   s3cret "], &[], "x", Ok("a")),
        (&["Bearer s3cre"], &[], "open", Err(AccessRefusal::UnknownToken)),
        (&["Bearer "], &[], "open", Err(AccessRefusal::UnknownToken)),
        (&["Basic s3cret"], &[], "x", Err(needs("x"))),
        (&["Basic x", "Bearer s3cret"], &[], "x", Ok("a")),
        (&["Bearer other"], &[], "a-1", Err(lacks("b", "a-1"))),
        (&[], &b, "b-1", Ok("b")),
        (&[], &b, "open", Ok("b")),
        (&["Bearer s3cret"], &b, "x", Ok("a")),
        (&["Bearer wrong"], &b, "b-1", Err(AccessRefusal::UnknownToken)),
        (&[], &unknown, "b-1", Err(needs("b-1"))),
    ] {
        let mut sent = HeaderMap::new();
        for value in authorization {
            sent.append(AUTHORIZATION, value.parse().unwrap());
        }
        let found = admit(&gate, &sent, names, &infer(model));
        assert_eq!(found, expected.map(str::to_owned), "{authorization:?} {names:?} {model}");
    }
    let count = |reason| gate.rules.stats.refusals(reason);
    assert_eq!(count(AccessRefusalReason::NoToken), 3);
    assert_eq!(count(AccessRefusalReason::UnknownToken), 3);
    assert_eq!(count(AccessRefusalReason::Scope), 1);
}

#[test]
fn each_protocol_has_its_own_restrictions() {
    let flags = ["--http-restricted-api=inference:h=1", "--grpc-restricted-protocol=health:g=2"];
    let gate = gate(&flags, None);
    let base = testing::context((*settings(&[])).clone(), []);
    let sent = headers(&[("h", "1")]);
    let missing = Err(AccessRefusal::MissingHeader("triton-grpc-protocol-g".to_owned()));
    for (protocol, groups, expected) in [
        (Http, &[ApiGroup::Inference][..], Ok(())),
        (Http, &[ApiGroup::Health], Ok(())),
        (Grpc, &[ApiGroup::Inference], Ok(())),
        (Grpc, &[ApiGroup::Health], missing),
        (Grpc, &[], Ok(())),
        // Triton does not know this group, so no header can be asked for.
        (Http, &[ApiGroup::Metrics], Ok(())),
    ] {
        let caller = Caller { protocol, headers: &sent, peer: &ConnectionPeer::UNKNOWN };
        let endpoint = EndpointAccess::for_models(groups, AccessedModels::None);
        let found = gate.admit(&base, &caller, &endpoint, true).map(|_| ());
        assert_eq!(found, expected, "{groups:?}");
    }
    let none = HeaderMap::new();
    let refused = admit(&gate, &none, &[], &infer("m")).unwrap_err();
    assert_eq!(refused, AccessRefusal::MissingHeader("h".to_owned()));
}

#[test]
fn restrictions_by_header_hold_beside_tokens() {
    let file = format!("a {} *\n", hex("s3cret"));
    let gate = gate(&["--http-restricted-api=inference:h=1"], Some(&file));
    let token = ("authorization", "Bearer s3cret");
    let with = |values: &[(&'static str, &str)]| admit(&gate, &headers(values), &[], &infer("m"));
    assert_eq!(with(&[token, ("h", "1")]), Ok("a".to_owned()));
    assert_eq!(with(&[token]), Err(AccessRefusal::MissingHeader("h".to_owned())));
    assert!(matches!(with(&[("h", "1")]), Err(AccessRefusal::NoToken(_))));
}

#[test]
fn only_tokens_are_taken_out_of_the_headers() {
    for (value, stays) in [("Bearer x", false), ("Basic x", true)] {
        let mut sent = headers(&[("authorization", value), ("other", "1")]);
        remove_token(&mut sent);
        assert_eq!(sent.contains_key(AUTHORIZATION), stays, "{value}");
        assert!(sent.contains_key("other"));
    }
}

/// What a request with a token costs: `cargo test --release -p trtserver-wire cost_of -- --ignored
/// --nocapture`.
#[test]
#[ignore = "measures"]
fn cost_of_a_check_with_a_token() {
    let mut file = String::new();
    for name in 0..1000 {
        file += &format!("n{name} {} infer,read:*:team-{name}-*\n", hex(&format!("token-{name}")));
    }
    let gate = gate(&[], Some(&file));
    let base = testing::context((*settings(&[])).clone(), []);
    let sent = headers(&[("authorization", "Bearer token-500"), ("content-type", "x")]);
    let caller = Caller { protocol: Http, headers: &sent, peer: &ConnectionPeer::UNKNOWN };
    let rounds = 200_000;
    let start = Instant::now();
    for _ in 0..rounds {
        let admitted = gate.admit(&base, &caller, &infer("team-500-net"), true);
        std::hint::black_box(admitted.is_ok());
    }
    println!("{} ns a request", start.elapsed().as_nanos() / rounds);
}
