//! Runs oracles over the committed seeds, and over simple mutations of them. Part of the unit tests
//! of each crate that has oracles.

use std::path::{Path, PathBuf};

type Oracle = fn(&[u8]);

/// The tests of a crate's oracles; `$module` holds them.
macro_rules! oracle_tests {
    ($oracles:expr, $module:literal) => {
        #[test]
        fn every_seed_passes_its_oracle() {
            seeds::check_seeds($oracles);
        }

        #[test]
        fn mutated_seeds_pass_their_oracle() {
            seeds::check_mutations($oracles);
        }

        #[test]
        fn every_oracle_has_a_fuzz_target() {
            seeds::check_targets($oracles, $module);
        }
    };
}

fn seeds() -> PathBuf {
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    folders.map(|folder| folder.join("fuzz/seeds")).find(|seeds| seeds.is_dir()).unwrap()
}

fn seeds_of(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let files = std::fs::read_dir(seeds().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "no seeds for {name}");
    files.into_iter().map(|file| (file.clone(), std::fs::read(file).unwrap())).collect()
}

/// Prints the input of an oracle that fails.
struct PrintOnPanic<'a>(&'a str, &'a [u8]);

impl Drop for PrintOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}: \"{}\"", self.0, self.1.escape_ascii());
        }
    }
}

/// Runs the oracles over their seeds.
pub fn check_seeds(oracles: &[(&str, Oracle)]) {
    for (name, oracle) in oracles {
        for (file, bytes) in seeds_of(name) {
            eprintln!("{}", file.display());
            oracle(&bytes);
        }
    }
}

/// Runs each oracle over mutated seeds, `FUZZ_ROUNDS` times: a stand-in for libFuzzer on a stable
/// toolchain.
pub fn check_mutations(oracles: &[(&str, Oracle)]) {
    let rounds = std::env::var("FUZZ_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(200);
    let mut state = 1u64;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % below.max(1)
    };
    for (name, oracle) in oracles {
        let seeds = seeds_of(name);
        for _ in 0..rounds {
            let mut bytes = seeds[random(seeds.len())].1.clone();
            for _ in 0..=random(4) {
                let at = random(bytes.len());
                match random(4) {
                    0 if at < bytes.len() => bytes[at] = random(256) as u8,
                    1 => bytes.insert(at, random(256) as u8),
                    2 if at < bytes.len() => drop(bytes.remove(at)),
                    _ => {
                        let other = &seeds[random(seeds.len())].1;
                        let from = random(other.len());
                        bytes.truncate(at);
                        bytes.extend_from_slice(&other[from..]);
                    }
                }
            }
            let _input = PrintOnPanic(name, &bytes);
            oracle(&bytes);
        }
    }
}

/// Checks that each oracle has a fuzz target, which calls the function of its name in `module`.
pub fn check_targets(oracles: &[(&str, Oracle)], module: &str) {
    for (name, _) in oracles {
        let target = seeds().join(format!("../fuzz_targets/{name}.rs"));
        let text = std::fs::read_to_string(&target).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(text.contains(&format!("{module}::{name}(")), "{}", target.display());
    }
    let manifest = std::fs::read_to_string(seeds().join("../Cargo.toml")).unwrap();
    assert!(oracles.iter().all(|(name, _)| manifest.contains(&format!("name = \"{name}\""))));
}
