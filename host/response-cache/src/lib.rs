//! The response cache: answers a request from the response to an equal one.
//!
//! A [`ResponseStore`] holds responses of all models, bounded by their bytes. Each open version of a
//! model with `response_cache { enable: true }` has a [`VersionCache`], which requests pass on their
//! way to the scheduler. Its key covers everything that the model sees ([`key`]); a version that is
//! opened again has other keys, and closing a version removes its responses.
//!
//! Equal requests in flight are one execution: the first one leads, the others follow it
//! ([`flight`]). A leader that ends without having been executed hands over to a follower. A cache
//! that costs more than it saves switches itself off for a while ([`benefit`]).
//!
//! Terms: an *entry* is a stored response. A *flight* is one execution that equal requests share; its
//! *leader* is the request that is executed, its *followers* wait for the result. In a *hand-over* a
//! follower becomes the leader, because the leader ended without having been executed.

#![forbid(unsafe_code)]

#[cfg(not(any(feature = "aegis", test)))]
#[path = "aegis_absent.rs"]
mod aegis_code;
#[cfg(any(feature = "aegis", test))]
mod aegis_code;
pub mod benefit;
mod cacheable;
mod cached_response;
mod executor;
pub mod flight;
mod flight_sink;
pub mod key;
mod landing;
mod separate_execution;
mod shared_result;
mod store;
mod tensor_hash;
mod version_cache;

pub use benefit::CacheState;
pub use executor::RequestExecutor;
pub use store::{ResponseStore, StoreUsage};
pub use version_cache::{CacheReport, VersionCache};
