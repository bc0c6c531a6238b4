//! Unit tests of `mod.rs`.

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
