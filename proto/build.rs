//! Compiles the proto files without a system protoc, and writes down their schema for the text and
//! JSON forms.
use std::collections::HashMap;
use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use prost::Message;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, EnumDescriptorProto, FileDescriptorSet};
use tonic_prost_build::{Builder, Config};

const V1: &str = "nvidia/inferenceserver/grpc_service.proto";
const STATUS_1804: &str = "nvidia/inferenceserver/status_1804.proto";
const PLATFORM_CONFIG: &str = "nvidia/inferenceserver/platform_config.proto";
const V2: &str = "inference/grpc_service.proto";
const HEALTH: &str = "grpc/health/v1/health.proto";
const LOAD_REPORT: &str = "xds/data/orca/v3/orca_load_report.proto";
const LOAD_REPORTS: &str = "xds/service/orca/v3/orca.proto";

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    for path in ["build.rs", "nvidia", "inference", "grpc", "xds"] {
        println!("cargo:rerun-if-changed={}", root.join(path).display());
    }

    // v1 uses types of `inference`, which are in `crate::v2`. Types with an extern path are not
    // generated, so the two packages are generated separately. v2 comes last because the first pass
    // leaves an empty file under its name.
    let messages = || service_builder().build_server(false);
    let v1 = messages().extern_path(".inference", "crate::v2");
    generate_services(&root, &[V1, STATUS_1804, PLATFORM_CONFIG, HEALTH], v1, |_, _| true)?;
    generate_services(&root, &[V2], messages(), |_, _| true)?;
    generate_services(&root, &[LOAD_REPORT], messages(), |_, _| true)?;
    let reports = || {
        service_builder()
            .codec_path("tonic_prost::ProstCodec")
            .extern_path(".xds.data.orca.v3", "crate::load_report")
    };
    generate_services(&root, &[LOAD_REPORTS], reports().build_server(false), |_, _| true)?;

    // The server side of the services, without the RPCs that the host encodes and decodes itself.
    let services = out.join("services");
    std::fs::create_dir_all(&services)?;
    let server = service_builder()
        .build_client(false)
        .out_dir(&services)
        .extern_path(".nvidia.inferenceserver", "crate::v1")
        .extern_path(".grpc.health.v1", "crate::health")
        .extern_path(".inference", "crate::v2")
        .extern_path(".inference.ModelStreamInferResponse", "crate::codec::Encoded")
        .extern_path(
            ".nvidia.inferenceserver.SharedMemoryControlRequest",
            "crate::codec::UndecodedRegionControl",
        );
    let by_tonic = |service: &str, method: &str| {
        !matches!(
            (service, method),
            ("GRPCService", "Infer" | "StreamInfer" | "InferStream")
                | ("GRPCInferenceService", "ModelInfer" | "ModelStreamInfer")
        )
    };
    generate_services(&root, &[V1, HEALTH, V2], server, by_tonic)?;
    let server = reports()
        .build_client(false)
        .out_dir(services)
        .extern_path(".xds.service.orca.v3", "crate::load_reports");
    generate_services(&root, &[LOAD_REPORTS], server, |_, _| true)?;

    // The program needs names and numbers at run time, not our comments.
    let mut all = protox::Compiler::new([&root])?
        .include_imports(true)
        .open_files([V1, STATUS_1804, PLATFORM_CONFIG, V2, HEALTH])?
        .file_descriptor_set();
    for file in &mut all.file {
        file.source_code_info = None;
    }
    std::fs::write(out.join("schema.rs"), Tables::from_files(&all).text()?)?;
    // What clients ask for is what the services use.
    all.file.retain(|file| ![STATUS_1804, PLATFORM_CONFIG].contains(&file.name()));
    let reports = protox::compile([LOAD_REPORTS], [&root])?.file;
    all.file.extend(reports.into_iter().map(|mut file| {
        file.source_code_info = None;
        file
    }));
    std::fs::write(out.join("descriptors.bin"), all.encode_to_vec())?;
    Ok(())
}

fn service_builder() -> Builder {
    tonic_prost_build::configure()
        .bytes(".")
        .btree_map(".")
        .codec_path("crate::codec::Codec")
        .emit_rerun_if_changed(false)
}

/// Generates the methods that `is_used` names by service and method.
fn generate_services(
    root: &Path,
    files: &[&str],
    builder: Builder,
    is_used: impl Fn(&str, &str) -> bool,
) -> Result<(), Box<dyn Error>> {
    let mut described = protox::compile(files, [root])?;
    for service in described.file.iter_mut().flat_map(|file| &mut file.service) {
        let name = service.name().to_owned();
        service.method.retain(|method| is_used(&name, method.name()));
    }
    let mut config = Config::new();
    config.enable_type_names();
    builder.compile_fds_with_config(described, config)?;
    Ok(())
}

/// Every message and enum under its full name, in the order they get their statics `M0…`, `E0…`.
#[derive(Default)]
struct Tables {
    messages: Vec<(String, DescriptorProto)>,
    enums: Vec<(String, EnumDescriptorProto)>,
    index: HashMap<String, usize>,
    /// Rust path of each top-level message, and its index.
    top: Vec<(String, usize)>,
}

impl Tables {
    fn from_files(set: &FileDescriptorSet) -> Self {
        let mut tables = Self::default();
        for file in &set.file {
            let module = match file.package() {
                "inference" => "v2",
                "grpc.health.v1" => "health",
                _ => "v1",
            };
            for message in &file.message_type {
                let path = format!("crate::{module}::{}", message.name());
                tables.top.push((path, tables.messages.len()));
                tables.add(&format!(".{}", file.package()), message);
            }
            for each in &file.enum_type {
                tables.add_enum(&format!(".{}", file.package()), each);
            }
        }
        tables
    }

    fn add(&mut self, scope: &str, message: &DescriptorProto) {
        let full = format!("{scope}.{}", message.name());
        self.index.insert(full.clone(), self.messages.len());
        self.messages.push((full.clone(), message.clone()));
        for inner in &message.nested_type {
            self.add(&full, inner);
        }
        for inner in &message.enum_type {
            self.add_enum(&full, inner);
        }
    }

    fn add_enum(&mut self, scope: &str, each: &EnumDescriptorProto) {
        let full = format!("{scope}.{}", each.name());
        self.index.insert(full.clone(), self.enums.len());
        self.enums.push((full, each.clone()));
    }

    fn text(&self) -> Result<String, Box<dyn Error>> {
        let mut out = String::new();
        for (at, (full, message)) in self.messages.iter().enumerate() {
            let map_entry = message.options.as_ref().is_some_and(|o| o.map_entry());
            if message.field.len() > 64 {
                return Err(format!("{full} has more than 64 fields").into());
            }
            write!(
                out,
                "pub(super) static M{at}: MessageSchema = MessageSchema {{ name: {:?}, map_entry: {map_entry}, \
                 fields: &[",
                short_name(full)
            )?;
            let mut fields: Vec<_> = message.field.iter().collect();
            fields.sort_by_key(|f| f.number());
            for field in fields {
                let index = |name: &str| {
                    self.index.get(name).copied().ok_or_else(|| format!("{name} is not known"))
                };
                let kind = match field.r#type() {
                    Type::Double => "Double".to_owned(),
                    Type::Float => "Float".to_owned(),
                    Type::Int64 => "Int64".to_owned(),
                    Type::Uint64 => "UInt64".to_owned(),
                    Type::Int32 => "Int32".to_owned(),
                    Type::Uint32 => "UInt32".to_owned(),
                    Type::Bool => "Bool".to_owned(),
                    Type::String => "String".to_owned(),
                    Type::Bytes => "Bytes".to_owned(),
                    Type::Message => format!("Message(&M{})", index(field.type_name())?),
                    Type::Enum => format!("Enum(&E{})", index(field.type_name())?),
                    other => return Err(format!("{full}: {other:?} fields are not handled").into()),
                };
                write!(
                    out,
                    "FieldSchema {{ name: {:?}, number: {}, kind: FieldKind::{kind}, repeated: {}, oneof: {:?} }},",
                    field.name(),
                    field.number(),
                    field.label() == Label::Repeated,
                    field.oneof_index.map(|i| message.oneof_decl[i as usize].name()),
                )?;
            }
            out.push_str("] };\n");
        }
        for (at, (full, each)) in self.enums.iter().enumerate() {
            let values: Vec<_> = each.value.iter().map(|v| (v.name(), v.number())).collect();
            writeln!(
                out,
                "pub(super) static E{at}: Enum = Enum {{ name: {:?}, values: &{values:?} }};",
                short_name(full)
            )?;
        }
        for (path, at) in &self.top {
            writeln!(
                out,
                "impl Described for {path} {{ fn schema() -> &'static MessageSchema {{ &M{at} }} }}"
            )?;
        }
        Ok(out)
    }
}

/// The name without its package, which is written in small letters: `ModelInput.Format`.
fn short_name(full: &str) -> &str {
    let start = full
        .match_indices('.')
        .map(|(dot, _)| dot + 1)
        .find(|at| full[*at..].starts_with(|c: char| c.is_ascii_uppercase()));
    &full[start.unwrap_or(0)..]
}
