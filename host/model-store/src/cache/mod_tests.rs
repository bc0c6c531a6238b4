//! Unit tests of the cache.

use super::partial::CHUNK;
use super::*;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use tempfile::TempDir;

const URL: &str = "s3://bucket/object";

fn open(dir: &TempDir, limit: Option<u64>) -> Arc<ModelCache> {
    ModelCache::open(dir.path(), limit).unwrap()
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::from_parts(&[name])
}

/// Downloads `content`.
fn put(cache: &ModelCache, name: &str, content: &[u8]) -> CachedBlob {
    let size = content.len() as u64;
    let partial = cache.partial(&key(name), size).unwrap().unwrap();
    for chunk in partial.missing().unwrap() {
        let mut writer = partial.chunk(chunk.clone()).unwrap();
        writer.write(&content[chunk.start as usize..chunk.end as usize]).unwrap();
        writer.finish().unwrap();
    }
    cache.complete(partial, &key(name), URL).unwrap()
}

#[test]
fn content_is_found_after_a_restart_unless_it_was_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let cache = open(&dir, None);
    let blob = put(&cache, "a", b"content");
    assert_eq!(fs::read(&blob.path).unwrap(), b"content");
    assert!(cache.find(&key("a"), 7).unwrap().is_some());
    assert!(cache.find(&key("a"), 8).unwrap().is_none(), "another size");
    assert!(cache.find(&key("b"), 7).unwrap().is_none());
    drop(cache);
    let cache = open(&dir, None);
    assert!(cache.find(&key("a"), 7).unwrap().is_some());
    drop(cache);
    fs::remove_file(&blob.path).unwrap();
    fs::write(&blob.path, b"Content").unwrap();
    let cache = open(&dir, None);
    assert!(cache.find(&key("a"), 7).unwrap().is_none());
    assert!(!blob.path.exists());
}

#[test]
fn equal_contents_share_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let cache = open(&dir, None);
    assert_eq!(put(&cache, "a", b"same").path, put(&cache, "b", b"same").path);
}

#[test]
fn interrupted_download_resumes_at_complete_chunks() {
    let dir = tempfile::tempdir().unwrap();
    let cache = open(&dir, None);
    let size = CHUNK * 2 + 5;
    let partial = cache.partial(&key("a"), size).unwrap().unwrap();
    partial.reserve_space().unwrap();
    assert!(cache.partial(&key("a"), size).unwrap().is_none(), "locked");
    let chunks = [0..CHUNK, CHUNK..CHUNK * 2, CHUNK * 2..size];
    assert_eq!(partial.missing().unwrap(), chunks);
    let content = vec![1; CHUNK as usize];
    let mut first = partial.chunk(chunks[0].clone()).unwrap();
    first.write(&content).unwrap();
    assert!(first.write(b"x").is_err(), "beyond the chunk");
    first.finish().unwrap();
    let mut second = partial.chunk(chunks[1].clone()).unwrap();
    second.write(&content[1..]).unwrap();
    assert_eq!(second.finish().unwrap_err().kind(), ErrorKind::UnexpectedEof);
    drop(partial);

    let partial = cache.partial(&key("a"), size).unwrap().unwrap();
    assert_eq!(partial.missing().unwrap(), chunks[1..]);
    drop(partial);
    // A chunk that did not reach the disk before a crash of the machine.
    let path = cache.path("partial", key("a").name());
    File::options().write(true).open(path).unwrap().write_all_at(&[0], 77).unwrap();
    let partial = cache.partial(&key("a"), size).unwrap().unwrap();
    assert_eq!(partial.missing().unwrap(), chunks);
    partial.discard();
    assert_eq!(fs::read_dir(dir.path().join("partial")).unwrap().count(), 0);
}

#[test]
fn contents_that_no_model_uses_make_space() {
    let dir = tempfile::tempdir().unwrap();
    let cache = open(&dir, Some(100_000));
    let used = put(&cache, "used", &[1; 40_000]);
    let unused = put(&cache, "unused", &[2; 40_000]);
    let tree = cache.tree("model").unwrap();
    tree.add_file("1/model", &used).unwrap();
    cache.make_space(50_000).unwrap();
    assert!(used.path.exists() && !unused.path.exists());
    let error = cache.make_space(70_000).unwrap_err();
    assert!(
        error.contains("70000 bytes do not fit: 40000 bytes belong to loaded models"),
        "{error}"
    );
    drop(tree);
    cache.make_space(70_000).unwrap();
    assert!(!used.path.exists());
}

#[test]
fn trees_end_with_their_server() {
    let dir = tempfile::tempdir().unwrap();
    let trees = dir.path().join("trees");
    let cache = open(&dir, None);
    let blob = put(&cache, "a", b"content");
    let tree = cache.tree("model").unwrap();
    tree.add_file("1/model", &blob).unwrap();
    assert_eq!(tree.path().file_name().unwrap(), "model");
    // Of a server that was killed.
    fs::create_dir_all(trees.join("1-0/0/model")).unwrap();
    fs::write(trees.join("1-0.lock"), "").unwrap();
    let second = open(&dir, None);
    assert!(!trees.join("1-0").exists());
    assert_eq!(fs::read(tree.path().join("1/model")).unwrap(), b"content");
    drop((second, tree, cache));
    assert_eq!(fs::read_dir(trees).unwrap().count(), 0);
}
