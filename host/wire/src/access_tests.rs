//! Unit tests of `access.rs`.

use super::*;
use trtserver_proto::DESCRIPTORS;

#[test]
fn every_rpc_has_its_group() {
    let set: prost_types::FileDescriptorSet = prost::Message::decode(DESCRIPTORS).unwrap();
    for file in &set.file {
        for service in &file.service {
            for method in &service.method {
                let path = format!("/{}.{}/{}", file.package(), service.name(), method.name());
                let groups = groups_of_rpc(&path);
                assert!(!groups.is_empty() && groups != ALL, "{path}");
            }
        }
    }
    assert_eq!(groups_of_rpc("/x/Unknown"), ALL);
    assert!(groups_of_rpc("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo").is_empty());
}

#[test]
fn header_must_have_the_value() {
    let values = ["inference,health:Key=secret".to_owned(), "trace:other=x".to_owned()];
    let restrictions = ApiRestrictions::parse("http-restricted-api", "api", "", &values).unwrap();
    let restrictions = restrictions.unwrap();
    let mut headers = HeaderMap::new();
    let missing = |groups: &[ApiGroup], headers: &HeaderMap| {
        missing_header(&restrictions, groups, headers).map(str::to_owned)
    };
    assert_eq!(missing(&[ApiGroup::Metadata], &headers), None);
    assert_eq!(missing(&[ApiGroup::Inference], &headers).as_deref(), Some("Key"));
    for wrong in ["", "secre", "secret1", "Secret"] {
        headers.insert("key", wrong.parse().unwrap());
        assert_eq!(missing(&[ApiGroup::Inference], &headers).as_deref(), Some("Key"), "{wrong}");
    }
    headers.insert("key", "secret".parse().unwrap());
    assert_eq!(missing(&[ApiGroup::Health], &headers), None);
    assert_eq!(missing(ALL, &headers).as_deref(), Some("other"));
}

#[test]
fn each_protocol_has_its_own_restrictions() {
    let flags = ["--http-restricted-api=inference:h=1", "--grpc-restricted-protocol=health:g=2"];
    let args = ["trtserver", "--model-store=/m"].into_iter().chain(flags);
    let args = args.map(std::ffi::OsString::from);
    let settings = trtserver_config::from_args(args, &|_| None, "1").unwrap().settings;
    let mut headers = HeaderMap::new();
    headers.insert("h", "1".parse().unwrap());
    let caller = Caller { headers: &headers };
    let missing = Err(AccessRefusal::MissingHeader("triton-grpc-protocol-g"));
    use CallerProtocol::{Grpc, Http};
    for (protocol, groups, expected) in [
        (Http, &[ApiGroup::Inference][..], Ok(())),
        (Http, &[ApiGroup::Health], Ok(())),
        (Grpc, &[ApiGroup::Inference], Ok(())),
        (Grpc, &[ApiGroup::Health], missing),
        (Grpc, &[], Ok(())),
    ] {
        let checked = check_access(&settings, protocol, &caller, || groups);
        assert_eq!(checked, expected, "{protocol:?} {groups:?}");
    }
    let no_headers = HeaderMap::new();
    let caller = Caller { headers: &no_headers };
    let checked = check_access(&settings, Http, &caller, || &[ApiGroup::Inference]);
    assert_eq!(checked, Err(AccessRefusal::MissingHeader("h")));
}

#[test]
fn groups_are_not_asked_for_without_restrictions() {
    let args = ["trtserver", "--model-store=/m"].map(std::ffi::OsString::from);
    let settings = trtserver_config::from_args(args, &|_| None, "1").unwrap().settings;
    let headers = HeaderMap::new();
    let groups = || unreachable!("nothing is restricted");
    let caller = Caller { headers: &headers };
    assert_eq!(check_access(&settings, CallerProtocol::Http, &caller, groups), Ok(()));
}
