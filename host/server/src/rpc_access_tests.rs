//! Unit tests of `rpc_access.rs`.

use super::*;
use prost::Message;
use trtserver_config::AccessKind::{Control, Infer, Read};
use trtserver_proto::{v1, v2};

const V1: &str = "nvidia.inferenceserver.GRPCService";
const V2: &str = "inference.GRPCInferenceService";

#[test]
fn messages_say_what_a_call_concerns() {
    use AccessedModels::{All, Named, None};
    let model = "m".to_owned();
    let load = v2::RepositoryModelLoadRequest { model_name: model.clone(), ..Default::default() };
    let ready = v2::ModelReadyRequest { name: model.clone(), ..Default::default() };
    let all = v2::ModelStatisticsRequest::default();
    let traced = v2::TraceSettingRequest { model_name: model.clone(), ..Default::default() };
    let mut changed = traced.clone();
    changed.settings.insert("trace_rate".to_owned(), Default::default());
    let mut logs = v2::LogSettingsRequest::default();
    logs.settings.insert("log_info".to_owned(), Default::default());
    let control = v1::ModelControlRequest { model_name: model, r#type: 1 };
    for (service, method, message, kind, models, what) in [
        (V2, "ServerReady", Vec::new(), Read, None, ""),
        (V2, "ModelReady", ready.encode_to_vec(), Read, Named("m"), ""),
        (V2, "ModelStatistics", all.encode_to_vec(), Read, All, ""),
        (V2, "RepositoryIndex", Vec::new(), Read, All, ""),
        (V2, "RepositoryModelLoad", load.encode_to_vec(), Control, Named("m"), "load model"),
        (V2, "RepositoryModelUnload", Vec::new(), Control, All, "unload model"),
        (V2, "TraceSetting", traced.encode_to_vec(), Read, Named("m"), ""),
        (V2, "TraceSetting", changed.encode_to_vec(), Control, Named("m"), "change trace settings"),
        (V2, "LogSettings", Vec::new(), Read, None, ""),
        (V2, "LogSettings", logs.encode_to_vec(), Control, None, "change log settings"),
        (V2, "Unheard", Vec::new(), Control, All, "call an unknown method"),
        (V1, "ModelControl", control.encode_to_vec(), Control, Named("m"), "load model"),
        (V1, "ModelControl", Vec::new(), Control, All, "unload model"),
        (V1, "Infer", Vec::new(), Infer, None, ""),
        (V1, "SharedMemoryControl", vec![0x22, 0], Read, None, ""),
        (V1, "SharedMemoryControl", vec![0x1a, 0], Control, None, "unregister shared memory"),
    ] {
        let path = format!("/{service}/{method}");
        let found = access_of_message(&path, &message).unwrap();
        let found_what = found.control.map_or("", |action| action.what);
        assert_eq!((found.kind(), found.models, found_what), (kind, models, what), "{path}");
        // What is asked for before the message is known is never more than what it says.
        let before = access_of_path(&path);
        assert_eq!(before.groups, found.groups, "{path}");
        assert!(before.kind() == found.kind() || before.kind() == Read, "{path}");
    }
}

#[test]
fn the_last_name_counts_as_in_the_message_itself() {
    let names = ["first", "second"]
        .map(|name| v2::ModelReadyRequest { name: name.to_owned(), ..Default::default() });
    let message = names.map(|request| request.encode_to_vec()).concat();
    let decoded = v2::ModelReadyRequest::decode(&*message).unwrap();
    let path = format!("/{V2}/ModelReady");
    let found = access_of_message(&path, &message).unwrap().models;
    assert_eq!(found, AccessedModels::Named(&decoded.name));
}

#[test]
fn messages_that_cannot_be_read_are_refused() {
    for message in [&[0x0a][..], &[0x0a, 1, 0xff], &[0x0b], &[0x00]] {
        for method in ["ModelReady", "SystemSharedMemoryRegister"] {
            let path = format!("/{V2}/{method}");
            assert!(access_of_message(&path, message).is_err(), "{message:?}");
            assert!(v2::ModelReadyRequest::decode(message).is_err(), "{message:?}");
        }
    }
}
