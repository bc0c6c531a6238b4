//! One header: includes, enums and classes of a proto file, each after the classes it contains.

use crate::{FILES, class, header};
use prost_types::{DescriptorProto, EnumDescriptorProto, FileDescriptorProto};
use std::collections::HashSet;
use std::error::Error;
use std::fmt::Write;

pub const NAMESPACE: &str = "::nvidia::inferenceserver";

pub fn file_text(file: &FileDescriptorProto) -> Result<String, Box<dyn Error>> {
    let mut out = format!(
        "// Messages of {}. Generated; do not edit.\n#pragma once\n\n#include \"protobuf.h\"\n",
        file.name()
    );
    for import in &file.dependency {
        let name = import.rsplit(['/', '.']).nth(1).unwrap_or_default();
        if FILES.contains(&name) {
            writeln!(out, "#include \"{}\"", header(name))?;
        }
    }
    out.push_str("\nnamespace nvidia {\nnamespace inferenceserver {\n\n");
    for each in &file.enum_type {
        out.push_str(&enum_text(each, ""));
    }
    let package = format!(".{}.", file.package());
    for message in order_messages(&package, &file.message_type) {
        out.push_str(&class::class_text(message, &package, "")?);
    }
    out.push_str("}  // namespace inferenceserver\n}  // namespace nvidia\n");
    Ok(out)
}

/// The messages, each after those of its fields. `scope` is the full name of what contains them,
/// with dots around it.
pub fn order_messages<'a>(
    scope: &str,
    messages: &'a [DescriptorProto],
) -> Vec<&'a DescriptorProto> {
    let (mut done, mut order) = (HashSet::new(), Vec::new());
    for message in messages {
        visit_message(scope, message, messages, &mut done, &mut order);
    }
    order
}

fn visit_message<'a>(
    scope: &str,
    message: &'a DescriptorProto,
    all: &'a [DescriptorProto],
    done: &mut HashSet<&'a str>,
    order: &mut Vec<&'a DescriptorProto>,
) {
    if !done.insert(message.name()) {
        return;
    }
    for used in collect_types(message) {
        let Some(inner) = used.strip_prefix(scope) else { continue };
        let name = inner.split('.').next().unwrap_or_default();
        if let Some(other) = all.iter().find(|each| each.name() == name) {
            visit_message(scope, other, all, done, order);
        }
    }
    order.push(message);
}

/// Full names of the types of all fields, those of nested messages included.
fn collect_types(message: &DescriptorProto) -> Vec<&str> {
    let own = message.field.iter().map(|field| field.type_name());
    own.chain(message.nested_type.iter().flat_map(collect_types))
        .filter(|name| !name.is_empty())
        .collect()
}

/// An enum with the functions that protobuf gives it; `outer` is the class around it.
pub fn enum_text(each: &EnumDescriptorProto, outer: &str) -> String {
    let name = each.name();
    let list = |format: &dyn Fn(&str, i32) -> String| {
        each.value.iter().map(|v| format(v.name(), v.number())).collect::<Vec<_>>().join(", ")
    };
    let (indent, kind) = if outer.is_empty() { ("", "inline") } else { ("  ", "static") };
    let values = list(&|name, number| format!("{name} = {number}"));
    let names = list(&|name, number| format!("{{{number}, \"{name}\"}}"));
    let lines = [
        format!("enum {name} : int {{ {values} }};"),
        format!("{kind} const ::trtserver_client::pb::EnumNames& {name}_Names() {{"),
        format!("  static const ::trtserver_client::pb::EnumNames names({{{names}}});"),
        "  return names;".to_owned(),
        "}".to_owned(),
        format!(
            "{kind} const std::string& {name}_Name({name} value) {{ return {name}_Names().Name(value); }}"
        ),
        format!("{kind} bool {name}_IsValid(int value) {{ return {name}_Names().Has(value); }}"),
        format!("{kind} bool {name}_Parse(const std::string& name, {name}* value) {{"),
        format!("  return {name}_Names().Parse(name, value);"),
        "}".to_owned(),
    ];
    lines.iter().map(|line| format!("{indent}{line}\n")).collect::<String>() + "\n"
}

/// Protobuf's names outside the class for a nested enum: `ModelInput_Format`,
/// `ModelInput_Format_FORMAT_NHWC`.
pub fn flat_enum(each: &EnumDescriptorProto, outer: &str) -> String {
    let flat = format!("{}_{}", outer.replace("::", "_"), each.name());
    let mut out = format!("typedef {outer}::{} {flat};\n", each.name());
    for value in &each.value {
        let name = value.name();
        out += &format!("constexpr {flat} {flat}_{name} = {outer}::{name};\n");
    }
    out += &format!(
        "inline const std::string& {flat}_Name({flat} value) {{ return {outer}::{}_Name(value); }}\n",
        each.name()
    );
    out
}
