//! Unit tests of `regions.rs`: codes and texts.

use super::*;
use crate::echo_testing::{context, context_with};
use trtserver_request::shared_memory::testing::Object;

const MEMORY: CudaMemory<'_> = CudaMemory { handle: &[], device_id: 0, byte_size: 1 };

#[tokio::test]
async fn without_the_flag_only_the_status_works() {
    let ctx = context();
    let disabled = Err(Error::unsupported(
        "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.",
    ));
    assert_eq!(register_system(&ctx, "r", "/k", 0, 1), disabled);
    assert_eq!(register_cuda(&ctx, "r", MEMORY).await, disabled);
    for kind in [RegionKind::System, RegionKind::Cuda] {
        assert_eq!(unregister_regions(&ctx, kind, "r"), disabled);
        assert_eq!(unregister_regions(&ctx, kind, ""), disabled);
    }
    assert_eq!(system_status(&ctx, ""), Ok(vec![]));
    assert_eq!(cuda_status(&ctx, ""), Ok(vec![]));
}

#[tokio::test]
async fn refused_registrations_have_the_texts_of_triton() {
    let ctx = context_with("--allow-client-shm=true");
    let object = Object::new(100);
    let key = &*object.key;
    register_system(&ctx, "taken", key, 0, 100).unwrap();
    let reserved = "/triton_python_backend_shm_region_0";
    let table = [
        (
            "taken",
            key,
            0,
            1,
            Code::AlreadyExists,
            "shared memory region 'taken' already in manager",
        ),
        ("r", "/absent", 0, 1, Code::Internal, "Unable to open shared memory region: '/absent'"),
        (
            "r",
            "../etc/passwd",
            0,
            1,
            Code::Internal,
            "Unable to open shared memory region: '../etc/passwd'",
        ),
        ("r", "", 0, 1, Code::Internal, "Unable to open shared memory region: ''"),
        (
            "r",
            reserved,
            0,
            1,
            Code::InvalidArg,
            "cannot register shared memory region 'r' - invalid shm key '/triton_python_backend_shm_region_0'",
        ),
        (
            "r",
            key,
            0,
            101,
            Code::InvalidArg,
            "failed to register shared memory region 'r': invalid args",
        ),
        (
            "r",
            key,
            0,
            0,
            Code::InvalidArg,
            "failed to register shared memory region 'r': invalid args",
        ),
        (
            "r",
            key,
            u64::MAX,
            1,
            Code::InvalidArg,
            "failed to register shared memory region 'r': invalid args",
        ),
        (
            "",
            key,
            0,
            1,
            Code::InvalidArg,
            "failed to register shared memory region '': the name is empty",
        ),
    ];
    for (name, key, offset, len, code, text) in table {
        let error = register_system(&ctx, name, key, offset, len);
        assert_eq!(error, Err(Error::new(code, text)), "{name} {key} {offset} {len}");
    }
    let error = register_cuda(&ctx, "r", MEMORY).await;
    let text = "failed to register CUDA shared memory region: 'r', GPUs not supported";
    assert_eq!(error, Err(Error::invalid(text)));
    assert_eq!(system_status(&ctx, "").unwrap().len(), 1);
}

#[test]
fn status_of_one_and_of_all_regions() {
    let ctx = context_with("--allow-client-shm=true");
    let object = Object::new(100);
    for (name, offset) in [("b", 10), ("a", 0)] {
        register_system(&ctx, name, &object.key, offset, 50).unwrap();
    }
    let names = |name| -> Result<Vec<String>> {
        Ok(system_status(&ctx, name)?.into_iter().map(|region| region.name).collect())
    };
    assert_eq!(names(""), Ok(vec!["a".to_owned(), "b".to_owned()]));
    let b = SystemStatus { name: "b".into(), key: object.key.clone(), offset: 10, byte_size: 50 };
    assert_eq!(system_status(&ctx, "b"), Ok(vec![b]));
    let text = "Unable to find system shared memory region: 'c'";
    assert_eq!(names("c"), Err(Error::not_found(text)));
    let text = "Unable to find cuda shared memory region: 'c'";
    assert_eq!(cuda_status(&ctx, "c"), Err(Error::not_found(text)));
    let text = "The region named 'a' is registered as system shared memory, not CUDA shared memory";
    assert_eq!(cuda_status(&ctx, "a"), Err(Error::not_found(text)));
    for name in ["c", "a", "a"] {
        assert_eq!(unregister_regions(&ctx, RegionKind::System, name), Ok(()));
    }
    assert_eq!(unregister_regions(&ctx, RegionKind::Cuda, ""), Ok(()));
    assert_eq!(names(""), Ok(vec!["b".to_owned()]));
    assert_eq!(unregister_regions(&ctx, RegionKind::System, ""), Ok(()));
    assert_eq!(names(""), Ok(vec![]));
}

#[test]
fn uses_outside_of_a_region_have_the_texts_of_triton() {
    let fault = Error::invalid("fault");
    for (error, want) in [
        (UseError::Unknown, Error::not_found("Unable to find shared memory region: 'r'")),
        (UseError::Offset, Error::invalid("Invalid offset for shared memory region: 'r'")),
        (
            UseError::Range,
            Error::invalid("Invalid offset + byte size for shared memory region: 'r'"),
        ),
        (
            UseError::OtherKind(RegionKind::Cuda),
            Error::not_found(
                "The region named 'r' is registered as CUDA shared memory, not system shared memory",
            ),
        ),
        (UseError::Fault(fault.clone()), fault),
    ] {
        assert_eq!(not_usable("r", error), want);
    }
}
