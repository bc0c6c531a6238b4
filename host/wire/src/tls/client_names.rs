//! The names in a client's certificate.

use rustls::pki_types::CertificateDer;
use trtserver_config::CertificateName;
use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

/// The subject alternative names of a verified certificate. Those of other kinds, and those of a
/// certificate that cannot be read, are left out: they give no rights.
pub fn certificate_names(certificate: &CertificateDer<'_>) -> Vec<CertificateName> {
    let Ok(certificate) = Certificate::from_der(certificate) else { return Vec::new() };
    let names = certificate.tbs_certificate().get_extension::<SubjectAltName>();
    let Ok(Some((_, SubjectAltName(names)))) = names else { return Vec::new() };
    let names = names.iter().filter_map(|name| match name {
        GeneralName::DnsName(name) => {
            Some(CertificateName::Dns(name.as_str().to_ascii_lowercase()))
        }
        GeneralName::UniformResourceIdentifier(uri) => {
            Some(CertificateName::Uri(uri.as_str().to_owned()))
        }
        GeneralName::Rfc822Name(address) => {
            Some(CertificateName::Email(address.as_str().to_owned()))
        }
        _ => None,
    });
    names.collect()
}

#[cfg(test)]
#[path = "client_names_tests.rs"]
mod tests;
