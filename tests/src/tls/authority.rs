//! Certificates, and the files in which a server finds them.

use crate::compile::folder;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SerialNumber,
};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// An authority that signs certificates.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, both PEM.
pub struct Certificate {
    pub chain: String,
    pub key: String,
}

fn made<T>(result: Result<T, rcgen::Error>) -> T {
    result.unwrap_or_else(|e| panic!("cannot make a certificate: {e}"))
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let mut params = made(CertificateParams::new(Vec::new()));
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(made(CertifiedIssuer::self_signed(params, made(KeyPair::generate()))))
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// For localhost and 127.0.0.1, valid until the end of 2040.
    pub fn issue(&self, serial: u64) -> Certificate {
        self.issue_until(serial, 2040)
    }

    pub fn issue_until(&self, serial: u64, year: i32) -> Certificate {
        self.issue_for(&["localhost", "127.0.0.1"], serial, year)
    }

    /// For these DNS names and addresses.
    pub fn issue_for(&self, names: &[&str], serial: u64, year: i32) -> Certificate {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = made(CertificateParams::new(names));
        params.serial_number = Some(SerialNumber::from(serial));
        params.not_after = rcgen::date_time_ymd(year, 12, 31);
        let key = made(KeyPair::generate());
        let chain = made(params.signed_by(&key, &self.0)).pem();
        Certificate { chain, key: key.serialize_pem() }
    }
}

/// `tls.crt`, `tls.key` and `ca.crt` as Kubernetes mounts a secret: each is a link into `..data`, a
/// link to a directory that is replaced.
pub struct MountedSecret {
    folder: TempDir,
    sets: usize,
}

impl MountedSecret {
    pub fn new(certificate: &Certificate, client_ca: &str) -> Self {
        let mut this = Self { folder: folder(), sets: 0 };
        this.replace(certificate, client_ca);
        for name in ["tls.crt", "tls.key", "ca.crt"] {
            let linked = symlink(Path::new("..data").join(name), this.file(name));
            linked.unwrap_or_else(|e| panic!("{name}: {e}"));
        }
        this
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Replaces all files at once.
    pub fn replace(&mut self, certificate: &Certificate, client_ca: &str) {
        self.sets += 1;
        let set = format!("..set-{}", self.sets);
        let path = self.file(&set);
        let link = self.file("..data-new");
        let replaced = fs::create_dir(&path)
            .and_then(|()| fs::write(path.join("tls.crt"), &certificate.chain))
            .and_then(|()| fs::write(path.join("tls.key"), &certificate.key))
            .and_then(|()| fs::write(path.join("ca.crt"), client_ca))
            .and_then(|()| symlink(&set, &link))
            .and_then(|()| fs::rename(&link, self.file("..data")));
        replaced.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }

    /// `--PREFIXcert=… --PREFIXkey=…`, such as for the prefix `tls-`.
    pub fn flags(&self, prefix: &str) -> [String; 2] {
        ["cert", "key"].map(|kind| {
            let name = if kind == "cert" { "tls.crt" } else { "tls.key" };
            format!("--{prefix}{kind}={}", self.file(name).display())
        })
    }

    /// `--FLAG=…/ca.crt`.
    pub fn authority_flag(&self, flag: &str) -> String {
        format!("--{flag}={}", self.file("ca.crt").display())
    }
}
