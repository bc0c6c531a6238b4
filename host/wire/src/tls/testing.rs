//! Certificates for unit tests.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use std::path::Path;
use tempfile::TempDir;
use trtserver_config::TlsFiles;

/// An authority that signs certificates.
pub struct TestAuthority(CertifiedIssuer<'static, KeyPair>);

/// A certificate for localhost and its key, both PEM.
pub struct TestCertificate {
    pub certificate: String,
    pub key: String,
}

impl TestAuthority {
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Valid until the end of this year.
    pub fn issue(&self, year: i32) -> TestCertificate {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(year, 12, 31);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap().pem();
        TestCertificate { certificate, key: key.serialize_pem() }
    }
}

/// Files as Kubernetes mounts a secret: each a link into `..data`, a link that is replaced.
pub struct MountedSecret {
    folder: TempDir,
    sets: usize,
}

impl MountedSecret {
    pub fn new(files: &[(&str, &str)]) -> Self {
        let mut this = Self { folder: TempDir::new().unwrap(), sets: 0 };
        this.replace(files);
        for (name, _) in files {
            std::os::unix::fs::symlink(Path::new("..data").join(name), this.path().join(name))
                .unwrap();
        }
        this
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Replaces all files at once.
    pub fn replace(&mut self, files: &[(&str, &str)]) {
        self.sets += 1;
        let set = format!("..set-{}", self.sets);
        std::fs::create_dir(self.path().join(&set)).unwrap();
        for (name, text) in files {
            std::fs::write(self.path().join(&set).join(name), text).unwrap();
        }
        let link = self.path().join("..data-new");
        std::os::unix::fs::symlink(&set, &link).unwrap();
        std::fs::rename(link, self.path().join("..data")).unwrap();
    }

    /// `tls.crt` and `tls.key`, and `ca.crt` with `mutual`.
    pub fn files(&self, mutual: bool) -> TlsFiles {
        TlsFiles {
            certificate: self.path().join("tls.crt"),
            key: self.path().join("tls.key"),
            client_ca: mutual.then(|| self.path().join("ca.crt")),
        }
    }
}
