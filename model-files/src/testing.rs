//! For tests of what reads files: a model directory with links to a secret outside, and names that
//! try to reach it.

use proptest::prelude::*;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The content of every file outside.
pub const SECRET: &[u8] = b"secret\n";
/// The content of every file inside.
pub const OWN: &[u8] = b"public\n";

/// A repository with one model, whose directories hold links of all kinds, and a secret beside the
/// repository.
pub struct HostileModel {
    root: TempDir,
}

impl HostileModel {
    /// `folders` are directories of the model. Each holds the file `own`, and links: `out` to the
    /// secret, `way` to its directory, `up` to the model's directory, `far` to another file of the
    /// repository, `gone` to nothing outside.
    ///
    /// # Panics
    /// The files cannot be written.
    #[allow(clippy::unwrap_used, reason = "for tests")]
    pub fn new(folders: &[&str]) -> Self {
        let this = Self { root: tempfile::tempdir().unwrap() };
        fs::create_dir_all(this.root.path().join("outside")).unwrap();
        fs::create_dir_all(this.repository().join("other")).unwrap();
        fs::write(this.secret(), SECRET).unwrap();
        fs::write(this.repository().join("other/own"), OWN).unwrap();
        for folder in folders {
            let folder = this.model().join(folder);
            fs::create_dir_all(folder.join("sub")).unwrap();
            fs::write(folder.join("own"), OWN).unwrap();
            fs::write(folder.join("sub/own"), OWN).unwrap();
            symlink(this.secret(), folder.join("out")).unwrap();
            symlink(this.root.path().join("outside"), folder.join("way")).unwrap();
            symlink(this.model(), folder.join("up")).unwrap();
            symlink(this.repository().join("other/own"), folder.join("far")).unwrap();
            symlink(this.root.path().join("outside/new"), folder.join("gone")).unwrap();
        }
        this
    }

    pub fn repository(&self) -> PathBuf {
        self.root.path().join("repository")
    }

    pub fn model(&self) -> PathBuf {
        self.repository().join("m")
    }

    pub fn secret(&self) -> PathBuf {
        self.root.path().join("outside/secret")
    }

    /// Names that lead to the secret from a directory of the model. Every reader refuses them.
    pub fn names_of_secret(&self) -> Vec<String> {
        let secret = self.secret().display().to_string();
        let fixed = ["out", "way/secret", "./way/../outside/secret", "../../../outside/secret"];
        let links = ["up/../../outside/secret", "sub/../way/secret", "own\0/../out"];
        fixed.iter().chain(&links).map(|name| (*name).to_owned()).chain([secret]).collect()
    }

    /// Names of all kinds: parts of links, `..`, absolute paths, NUL bytes.
    pub fn names(&self) -> impl Strategy<Value = String> + use<> {
        let parts = ["own", "sub", "out", "way", "up", "far", "gone", "secret", "outside", "other"];
        let odd = ["..", ".", "", "\0", "m", "repository", "new", " ", "%2e%2e", "..\\"];
        let part = prop_oneof![
            2 => Just("own"),
            2 => prop::sample::select(parts.to_vec()),
            1 => prop::sample::select(odd.to_vec()),
        ];
        let root = self.root.path().display().to_string();
        let start = prop_oneof![
            3 => Just(String::new()),
            1 => prop::sample::select(vec!["/".into(), root + "/", "../".into()]),
        ];
        (start, prop::collection::vec(part, 1..5))
            .prop_map(|(start, parts)| start + &parts.join("/"))
    }

    /// Whether this is the text of a [refusal](crate::FileRefusal) or contains it.
    pub fn is_refusal(text: &str) -> bool {
        text.contains("leaves '") || text.contains("leads to '")
    }

    /// Whether the bytes are those of a file outside.
    pub fn is_secret(bytes: &[u8]) -> bool {
        bytes.windows(SECRET.len()).any(|window| window == SECRET)
    }

    /// Whether something was written outside.
    pub fn is_untouched(&self) -> bool {
        let outside: &Path = &self.root.path().join("outside");
        let only_secret = fs::read_dir(outside).is_ok_and(|entries| entries.count() == 1);
        only_secret && fs::read(self.secret()).is_ok_and(|bytes| bytes == SECRET)
    }
}
