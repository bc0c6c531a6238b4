//! Unit tests of `regions.rs`: codes and texts.

use super::RegionControl::*;
use super::*;
use crate::testing;
use trtserver_base::state::ServerPhase;
use trtserver_request::shared_memory::testing::Object;

#[tokio::test]
async fn regions_are_registered_listed_and_unregistered() {
    let ctx = testing::context("");
    let object = Object::new(100);
    let key = &*object.key;
    for (name, offset) in [("b", 10), ("a", 0)] {
        let call = Register { name, key, offset, byte_size: 50 };
        assert_eq!(control_region(&ctx, call).await, Ok(None));
    }
    let regions = async || control_region(&ctx, Status).await.unwrap().unwrap();
    let [_, b] = &regions().await[..] else { panic!("{:?}", regions().await) };
    let system = SystemSharedMemory { shared_memory_key: key.to_owned(), offset: 10 };
    let types = Some(SharedMemoryTypes::SystemSharedMemory(system));
    let want = SharedMemoryRegion { name: "b".into(), byte_size: 50, shared_memory_types: types };
    assert_eq!(*b, want);
    for name in ["unknown", "a", "a"] {
        assert_eq!(control_region(&ctx, Unregister { name }).await, Ok(None));
    }
    assert_eq!(regions().await.len(), 1);
    assert_eq!(control_region(&ctx, UnregisterAll).await, Ok(None));
    assert_eq!(control_region(&ctx, Status).await, Ok(Some(vec![])));
    ctx.state.set_phase(ServerPhase::Exiting);
    assert_eq!(control_region(&ctx, Status).await, Err(Error::unavailable("Server exiting")));
}

#[tokio::test]
async fn refused_registrations_have_the_texts_of_trtis() {
    let ctx = testing::context("");
    let object = Object::new(100);
    let key = &*object.key;
    let register = |name, key, offset, byte_size| Register { name, key, offset, byte_size };
    control_region(&ctx, register("taken", key, 0, 100)).await.unwrap();
    let failed = "failed to register shared memory region 'n': invalid args";
    for (call, code, text) in [
        (
            register("taken", key, 0, 100),
            Code::AlreadyExists,
            "shared memory block 'taken' already in manager",
        ),
        (
            register("n", "/absent", 0, 1),
            Code::Internal,
            "Unable to open shared memory region: '/absent'",
        ),
        (register("n", key, 0, 101), Code::InvalidArg, failed),
        (register("n", key, 0, 0), Code::InvalidArg, failed),
        (register("n", key, u64::MAX, u64::MAX), Code::InvalidArg, failed),
        (
            RegisterCuda {
                name: "n",
                memory: CudaMemory { handle: &[], device_id: 0, byte_size: 1 },
            },
            Code::InvalidArg,
            "failed to register CUDA shared memory region: 'n', GPUs not supported",
        ),
        (
            RegisterNothing { name: "n" },
            Code::InvalidArg,
            "failed to register shared memory region: 'n', improperly formed request.",
        ),
    ] {
        assert_eq!(control_region(&ctx, call).await, Err(Error::new(code, text)), "{call:?}");
    }
    assert_eq!(control_region(&ctx, Status).await.unwrap().unwrap().len(), 1);
}

#[tokio::test]
async fn use_of_an_unknown_region_has_the_text_of_trtis() {
    let error = not_usable_in_v1("n", UseError::Unknown);
    assert_eq!(error, Error::not_found("shared memory block 'n' not found in manager"));
    let error = not_usable_in_v1("n", UseError::Offset);
    assert_eq!(error, Error::invalid("Invalid offset for shared memory region: 'n'"));
}
