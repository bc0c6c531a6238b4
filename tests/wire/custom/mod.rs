//! Libraries of the legacy custom backend interface (`custom.h`), all generations, local and
//! isolated.

mod clients;
mod contract;
mod lifecycle;
mod loading;
mod misbehaving;
