//! Backends as their authors and installers know them: the ABI, upgrades, misbehaviour, the SDK.

mod abi_versions;
mod adapters;
mod autocomplete;
mod crash_reports;
mod framework_project;
mod misbehaving;
mod model_probe;
mod new_framework;
mod sdk;
mod side_by_side;
mod unusable_versions;
mod upgrades;
mod written_in_c;
