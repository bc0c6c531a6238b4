//! Unit tests of `client_names.rs`.

use super::*;
use rcgen::{CertificateParams, KeyPair, SanType};

#[test]
fn names_of_three_kinds_are_read() {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.subject_alt_names = vec![
        SanType::IpAddress([127, 0, 0, 1].into()),
        SanType::DnsName("Client.Example".try_into().unwrap()),
        SanType::URI("spiffe://cluster/ns/a".try_into().unwrap()),
        SanType::Rfc822Name("ops@example.org".try_into().unwrap()),
    ];
    let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
    let expected = [
        CertificateName::Dns("client.example".to_owned()),
        CertificateName::Uri("spiffe://cluster/ns/a".to_owned()),
        CertificateName::Email("ops@example.org".to_owned()),
    ];
    assert_eq!(*certificate_names(certificate.der()), expected);
    let nameless = CertificateParams::new(Vec::new()).unwrap();
    let nameless = nameless.self_signed(&KeyPair::generate().unwrap()).unwrap();
    assert!(certificate_names(nameless.der()).is_empty());
    assert!(certificate_names(&CertificateDer::from(vec![0x30, 1])).is_empty());
}
