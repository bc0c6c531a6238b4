//! One C++ class of a message: nested types, accessors with protobuf's names, the list of fields
//! for reader and writer.

use crate::file::{NAMESPACE, enum_text, flat_enum, order_messages};
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FieldDescriptorProto};
use std::error::Error;
use std::fmt::Write;

const PB: &str = "::trtserver_client::pb";

/// The class and, at the outermost level, protobuf's flat names of what is nested in it.
/// `scope` is the full name of what contains it, with dots around it; `outer` its C++ name.
pub fn class_text(
    message: &DescriptorProto,
    scope: &str,
    outer: &str,
) -> Result<String, Box<dyn Error>> {
    let name = message.name();
    let full = if outer.is_empty() { name.to_owned() } else { format!("{outer}::{name}") };
    let mut out = format!("class {name} : public {PB}::Message<{name}> {{\n public:\n");
    for each in &message.enum_type {
        out += &enum_text(each, &full);
    }
    let nested: Vec<_> = message.nested_type.iter().filter(|n| !is_map_entry(n)).cloned().collect();
    let inner = format!("{scope}{name}.");
    for each in order_messages(&inner, &nested) {
        for line in class_text(each, &inner, &full)?.lines() {
            writeln!(out, "{}{line}", if line.is_empty() { "" } else { "  " })?;
        }
    }
    let fields: Vec<_> =
        message.field.iter().map(|f| MessageField::new(message, f)).collect::<Result<_, _>>()?;
    for oneof in &message.oneof_decl {
        let of = |f: &&MessageField| f.oneof.as_deref() == Some(oneof.name());
        let cases: Vec<_> =
            fields.iter().filter(of).map(|f| (camel_case(&f.name), f.number)).collect();
        out += &oneof_accessors(oneof.name(), &cases);
    }
    for field in &fields {
        out += &field.accessors();
    }
    out += "  template <typename V>\n  void VisitFields(V& v) {\n    (void)v;\n";
    for field in &fields {
        out += &field.visit();
    }
    out += "  }\n";
    if !fields.is_empty() {
        out += "\n private:\n";
    }
    for field in &fields {
        writeln!(out, "  {} {}{};", field.stored(), field.member(), field.initial())?;
    }
    for oneof in &message.oneof_decl {
        writeln!(out, "  int {}_case_ = 0;", oneof.name())?;
    }
    out += "};\n\n";
    if outer.is_empty() {
        out += &flat_names(message, name);
    }
    Ok(out)
}

/// Fields of a map are nested messages whose name ends with `Entry`; protobuf marks them.
fn is_map_entry(message: &DescriptorProto) -> bool {
    message.options.as_ref().is_some_and(|options| options.map_entry())
}

fn flat_names(message: &DescriptorProto, full: &str) -> String {
    let mut out = String::new();
    for each in &message.enum_type {
        out += &flat_enum(each, full);
    }
    for each in message.nested_type.iter().filter(|n| !is_map_entry(n)) {
        let inner = format!("{full}::{}", each.name());
        out += &format!("typedef {inner} {};\n", inner.replace("::", "_"));
        out += &flat_names(each, &inner);
    }
    if !out.is_empty() && !full.contains("::") {
        out.push('\n');
    }
    out
}

fn oneof_accessors(name: &str, cases: &[(String, i32)]) -> String {
    let list = cases.iter().map(|(name, number)| format!("k{name} = {number}")).collect::<Vec<_>>();
    let unset = format!("{}_NOT_SET", name.to_uppercase());
    let kind = format!("{}Case", camel_case(name));
    format!(
        "  enum {kind} : int {{ {}, {unset} = 0 }};\n  \
         {kind} {name}_case() const {{ return static_cast<{kind}>({name}_case_); }}\n  \
         void clear_{name}() {{ {name}_case_ = 0; }}\n\n",
        list.join(", ")
    )
}

/// `dynamic_batching` as `DynamicBatching`.
fn camel_case(name: &str) -> String {
    name.split('_').map(|word| word[..1].to_uppercase() + &word[1..]).collect()
}

enum FieldType {
    /// C++ type of a number or bool.
    Number(&'static str),
    Enum(String),
    Text,
    Message(String),
    /// C++ types of key and value.
    Map(String, String),
}

struct MessageField {
    name: String,
    number: i32,
    kind: FieldType,
    repeated: bool,
    oneof: Option<String>,
}

impl MessageField {
    fn new(
        message: &DescriptorProto,
        field: &FieldDescriptorProto,
    ) -> Result<Self, Box<dyn Error>> {
        let repeated = field.label() == Label::Repeated;
        let oneof = field.oneof_index.map(|i| message.oneof_decl[i as usize].name().to_owned());
        let entry = message.nested_type.iter().find(|nested| {
            is_map_entry(nested)
                && field.type_name().ends_with(&format!(".{}.{}", message.name(), nested.name()))
        });
        let (kind, repeated) = match entry {
            Some(entry) => {
                let part = |at: usize| element_type(&field_type(&entry.field[at])?);
                (FieldType::Map(part(0)?, part(1)?), false)
            }
            None => (field_type(field)?, repeated),
        };
        Ok(MessageField {
            name: field.name().to_owned(),
            number: field.number(),
            kind,
            repeated,
            oneof,
        })
    }

    /// C++ keywords get an underscore as accessors, as in protobuf.
    fn is_keyword(&self) -> bool {
        const KEYWORDS: [&str; 9] = [
            "register",
            "namespace",
            "operator",
            "class",
            "new",
            "delete",
            "union",
            "switch",
            "default",
        ];
        KEYWORDS.contains(&self.name.as_str())
    }

    fn accessor(&self) -> String {
        format!("{}{}", self.name, if self.is_keyword() { "_" } else { "" })
    }

    fn member(&self) -> String {
        format!("{}{}", self.name, if self.is_keyword() { "_value_" } else { "_" })
    }

    fn element(&self) -> String {
        match &self.kind {
            FieldType::Number(kind) => (*kind).to_owned(),
            FieldType::Enum(kind) | FieldType::Message(kind) => kind.clone(),
            FieldType::Text => "std::string".to_owned(),
            FieldType::Map(key, value) => format!("{PB}::Map<{key}, {value}>"),
        }
    }

    fn stored(&self) -> String {
        let element = self.element();
        match (&self.kind, self.repeated) {
            (FieldType::Number(_) | FieldType::Enum(_), true) => {
                format!("{PB}::RepeatedField<{element}>")
            }
            (FieldType::Text | FieldType::Message(_), true) => {
                format!("{PB}::RepeatedPtrField<{element}>")
            }
            (FieldType::Message(_), false) => format!("{PB}::Submessage<{element}>"),
            _ => element,
        }
    }

    fn initial(&self) -> String {
        match &self.kind {
            FieldType::Number(kind) if !self.repeated => format!(" = {kind}()"),
            FieldType::Enum(kind) if !self.repeated => format!(" = static_cast<{kind}>(0)"),
            _ => String::new(),
        }
    }

    fn visit(&self) -> String {
        let MessageField { name, number, .. } = self;
        let field = match &self.kind {
            FieldType::Enum(kind) => {
                let wrapper = if self.repeated { "RepeatedEnumField" } else { "EnumField" };
                format!("{PB}::{wrapper}<{kind}>{{&{}, &{kind}_Name}}", self.member())
            }
            _ => self.member(),
        };
        match &self.oneof {
            Some(oneof) => format!("    v.OneOf({number}, \"{name}\", {field}, {oneof}_case_);\n"),
            None => format!("    v({number}, \"{name}\", {field});\n"),
        }
    }

    fn accessors(&self) -> String {
        let lines = match (&self.kind, self.repeated) {
            (FieldType::Map(..), _) => self.whole(),
            (FieldType::Number(_) | FieldType::Enum(_), true) => self.repeated_number(),
            (FieldType::Text | FieldType::Message(_), true) => self.repeated_object(),
            (FieldType::Message(_), false) => self.message(),
            (FieldType::Text, false) => self.text(),
            _ => self.number(),
        };
        lines.iter().map(|line| format!("  {line}\n")).collect::<String>() + "\n"
    }

    /// Condition that the field is the one set of its oneof, and the statement that makes it so.
    fn case(&self) -> Option<(String, String)> {
        let oneof = self.oneof.as_ref()?;
        let number = self.number;
        Some((format!("{oneof}_case_ == {number}"), format!("{oneof}_case_ = {number}; ")))
    }

    fn number(&self) -> Vec<String> {
        let (name, f, m, kind) = (self.accessor(), &self.name, self.member(), self.element());
        let zero = format!("static_cast<{kind}>(0)");
        match self.case() {
            None => vec![
                format!("{kind} {name}() const {{ return {m}; }}"),
                format!("void set_{f}({kind} value) {{ {m} = value; }}"),
                format!("void clear_{f}() {{ {m} = {zero}; }}"),
            ],
            Some((is, make)) => vec![
                format!("bool has_{f}() const {{ return {is}; }}"),
                format!("{kind} {name}() const {{ return {is} ? {m} : {zero}; }}"),
                format!("void set_{f}({kind} value) {{ {make}{m} = value; }}"),
                self.clear_oneof(),
            ],
        }
    }

    fn clear_oneof(&self) -> String {
        let (f, oneof) = (&self.name, self.oneof.as_deref().unwrap_or_default());
        let number = self.number;
        format!("void clear_{f}() {{ if ({oneof}_case_ == {number}) {oneof}_case_ = 0; }}")
    }

    fn text(&self) -> Vec<String> {
        let (name, f, m) = (self.accessor(), &self.name, self.member());
        let (is, make) = self.case().unwrap_or_default();
        let get = if is.is_empty() {
            format!("return {m};")
        } else {
            format!("static const std::string none; return {is} ? {m} : none;")
        };
        let fresh =
            if is.is_empty() { String::new() } else { format!("if (!({is})) {m}.clear(); {make}") };
        let mut lines = vec![
            format!("const std::string& {name}() const {{ {get} }}"),
            format!("void set_{f}(const std::string& value) {{ {make}{m} = value; }}"),
            format!("void set_{f}(const char* value) {{ {make}{m} = value; }}"),
            format!(
                "void set_{f}(const void* value, size_t size) {{ {make}{m}.assign(static_cast<const char*>(value), size); }}"
            ),
            format!("std::string* mutable_{f}() {{ {fresh}return &{m}; }}"),
        ];
        if is.is_empty() {
            lines.push(format!("void clear_{f}() {{ {m}.clear(); }}"));
        } else {
            lines.push(format!("bool has_{f}() const {{ return {is}; }}"));
            lines.push(self.clear_oneof());
        }
        lines
    }

    fn message(&self) -> Vec<String> {
        let (name, f, m, kind) = (self.accessor(), &self.name, self.member(), self.element());
        match self.case() {
            None => vec![
                format!("bool has_{f}() const {{ return {m}.has(); }}"),
                format!("const {kind}& {name}() const {{ return {m}.get(); }}"),
                format!("{kind}* mutable_{f}() {{ return {m}.mut(); }}"),
                format!("{kind}* release_{f}() {{ return {m}.release(); }}"),
                format!("void clear_{f}() {{ {m}.clear(); }}"),
            ],
            Some((is, make)) => vec![
                format!("bool has_{f}() const {{ return {is}; }}"),
                format!(
                    "const {kind}& {name}() const {{ return {is} ? {m}.get() : {kind}::default_instance(); }}"
                ),
                format!(
                    "{kind}* mutable_{f}() {{ if (!({is})) {m}.clear(); {make}return {m}.mut(); }}"
                ),
                self.clear_oneof(),
            ],
        }
    }

    /// Accessors that repeated fields and maps share.
    fn whole(&self) -> Vec<String> {
        let (name, f, m, stored) = (self.accessor(), &self.name, self.member(), self.stored());
        vec![
            format!("int {f}_size() const {{ return static_cast<int>({m}.size()); }}"),
            format!("const {stored}& {name}() const {{ return {m}; }}"),
            format!("{stored}* mutable_{f}() {{ return &{m}; }}"),
            format!("void clear_{f}() {{ {m} = {stored}(); }}"),
        ]
    }

    fn repeated_number(&self) -> Vec<String> {
        let (name, f, m, kind) = (self.accessor(), &self.name, self.member(), self.element());
        let mut lines = self.whole();
        lines.extend([
            format!("{kind} {name}(int at) const {{ return {m}.Get(at); }}"),
            format!("void set_{f}(int at, {kind} value) {{ {m}.Set(at, value); }}"),
            format!("void add_{f}({kind} value) {{ {m}.Add(value); }}"),
        ]);
        lines
    }

    fn repeated_object(&self) -> Vec<String> {
        let (name, f, m, kind) = (self.accessor(), &self.name, self.member(), self.element());
        let mut lines = self.whole();
        lines.extend([
            format!("const {kind}& {name}(int at) const {{ return {m}.Get(at); }}"),
            format!("{kind}* mutable_{f}(int at) {{ return {m}.Mutable(at); }}"),
            format!("{kind}* add_{f}() {{ return {m}.Add(); }}"),
        ]);
        if matches!(self.kind, FieldType::Text) {
            lines.extend([
                format!("void set_{f}(int at, const std::string& value) {{ *{m}.Mutable(at) = value; }}"),
                format!("void add_{f}(const std::string& value) {{ *{m}.Add() = value; }}"),
                format!(
                    "void add_{f}(const void* value, size_t size) {{ {m}.Add()->assign(static_cast<const char*>(value), size); }}"
                ),
            ]);
        }
        lines
    }
}

fn field_type(field: &FieldDescriptorProto) -> Result<FieldType, String> {
    Ok(match field.r#type() {
        Type::Double => FieldType::Number("double"),
        Type::Float => FieldType::Number("float"),
        Type::Int64 => FieldType::Number("int64_t"),
        Type::Uint64 => FieldType::Number("uint64_t"),
        Type::Int32 => FieldType::Number("int32_t"),
        Type::Uint32 => FieldType::Number("uint32_t"),
        Type::Bool => FieldType::Number("bool"),
        Type::String | Type::Bytes => FieldType::Text,
        Type::Message => FieldType::Message(cpp_name(field.type_name())?),
        Type::Enum => FieldType::Enum(cpp_name(field.type_name())?),
        other => return Err(format!("{}: {other:?} fields are not handled", field.name())),
    })
}

fn element_type(kind: &FieldType) -> Result<String, String> {
    match kind {
        FieldType::Number(kind) => Ok((*kind).to_owned()),
        FieldType::Text => Ok("std::string".to_owned()),
        FieldType::Message(kind) => Ok(kind.clone()),
        FieldType::Enum(_) | FieldType::Map(..) => Err("maps of enums are not handled".to_owned()),
    }
}

/// `.inference.ModelInput.Format` as `::nvidia::inferenceserver::ModelInput::Format`: the
/// configuration was part of v1's package in the original.
fn cpp_name(full: &str) -> Result<String, String> {
    let inner = [".nvidia.inferenceserver.", ".inference."]
        .iter()
        .find_map(|package| full.strip_prefix(package))
        .ok_or_else(|| format!("{full} is in no package of v1"))?;
    Ok(format!("{NAMESPACE}::{}", inner.replace('.', "::")))
}
