//! Unit tests of `read.rs`.

use super::*;

fn read_bytes(bytes: &[u8]) -> (String, Result<Option<ModelConfig>, ConfigError>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE_NAME);
    std::fs::write(&path, bytes).unwrap();
    (path.display().to_string(), read_model_config(&path))
}

#[test]
fn file_is_parsed() {
    let (_, config) = read_bytes(b"\xef\xbb\xbfname: 'm' # note\nmax_batch_size: 8\n");
    let config = config.unwrap().unwrap();
    assert_eq!((config.name.as_str(), config.max_batch_size), ("m", 8));
    let (_, config) = read_bytes(b"# \xb7\xd6\xc0\xe0\nname: 'm' # caf\xe9\nmax_batch_size: 8\n");
    let config = config.unwrap().unwrap();
    assert_eq!((config.name.as_str(), config.max_batch_size), ("m", 8));
    assert_eq!(read_bytes(b"").1.unwrap(), Some(ModelConfig::default()));
}

#[test]
fn missing_file_is_no_error() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(read_model_config(&dir.path().join(FILE_NAME)), Ok(None));
    assert!(read_model_config(dir.path()).is_err(), "a directory is");
}

#[test]
fn error_starts_with_file_line_and_column() {
    for (bytes, place) in [
        (&b"name: 'm'\nno_such_field: 1\n"[..], ":2:"),
        (b"name: 'm'\n  max_batch_size: 'eight'\n", ":2:"),
        (b"name: 'm'\n  name: '\xff'\n", ":2:10: not UTF-8 text"),
        (b"# \xff\n# \xff\n  name: '\xff'\n", ":3:10: not UTF-8 text"),
        (b"# \xff\n  no_such_field: 1\n", ":2:3: "),
    ] {
        let (path, result) = read_bytes(bytes);
        let error = result.unwrap_err();
        assert_eq!(error.fault, super::super::ConfigFault::Unreadable);
        assert!(error.message.starts_with(&format!("{path}{place}")), "{error}");
    }
}
