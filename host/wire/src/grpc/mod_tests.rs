//! Unit tests of the gRPC frontends: RPCs and messages are on the compatibility pages.

use prost::Message;
use prost_types::{DescriptorProto, FileDescriptorProto, FileDescriptorSet};
use std::collections::BTreeMap;
use trtserver_base::compatibility_testing::{Row, rows};

/// The page of a package.
fn page(file: &FileDescriptorProto) -> &'static str {
    if file.package() == "nvidia.inferenceserver" { "v1.md" } else { "v2.md" }
}

fn files() -> Vec<FileDescriptorProto> {
    let all = FileDescriptorSet::decode(trtserver_proto::DESCRIPTORS).unwrap();
    // Fields of configurations have a page of their own.
    let elsewhere = ["model_config.proto", "google/protobuf/duration.proto"];
    let is_here = |file: &FileDescriptorProto| !elsewhere.iter().any(|e| file.name().ends_with(e));
    all.file.into_iter().filter(is_here).collect()
}

fn add_fields(message: &DescriptorProto, scope: &str, fields: &mut Vec<String>) {
    if message.options.as_ref().is_some_and(|options| options.map_entry()) {
        return;
    }
    let name = format!("{scope}{}", message.name());
    fields.extend(message.field.iter().map(|field| format!("{name}.{}", field.name())));
    for inner in &message.nested_type {
        add_fields(inner, &format!("{name}."), fields);
    }
}

/// What `names` finds in the rows of a page, with the place of the row and whether the feature is
/// there.
fn listed(page: &str, names: impl Fn(&Row) -> Vec<String>) -> BTreeMap<String, (String, bool)> {
    let mut listed = BTreeMap::new();
    for row in rows(page) {
        for name in names(&row) {
            let known = listed.insert(name.clone(), (row.place.clone(), row.is_there()));
            assert!(known.is_none(), "{}: {name} has two rows", row.place);
        }
    }
    listed
}

#[test]
fn compatibility_pages_have_every_message_field_once() {
    for page in ["v1.md", "v2.md"] {
        let mut listed = listed(page, |row| {
            let fields = row.names("fields").iter();
            let of = |field| row.names("message").iter().map(move |m| format!("{m}.{field}"));
            fields.flat_map(of).collect()
        });
        let mut fields = Vec::new();
        for file in files().iter().filter(|file| self::page(file) == page) {
            file.message_type.iter().for_each(|m| add_fields(m, "", &mut fields));
        }
        for field in fields {
            assert!(
                listed.remove(&field).is_some(),
                "docs/compatibility/{page} has no row for {field}"
            );
        }
        assert!(listed.is_empty(), "no message has {listed:?}");
    }
}

#[test]
fn compatibility_pages_have_every_rpc() {
    for page in ["v1.md", "v2.md"] {
        let mut listed = listed(page, |row| row.names("RPC").to_vec());
        for file in files().iter().filter(|file| self::page(file) == page) {
            for service in &file.service {
                for method in &service.method {
                    let name = format!("{}.{}", service.name(), method.name());
                    let row = listed.remove(&name);
                    assert!(row.is_some(), "docs/compatibility/{page} has no row for {name}");
                }
            }
        }
        for (name, (place, is_there)) in listed {
            assert!(!is_there, "{place}: the server has no RPC {name}");
        }
    }
}
