//! What the backend of a model says about instances: the kinds that it opens and prefers, and which
//! fields of a configuration it uses.

use trtserver_plugin_api::abi::descriptors::backend_flags;
use trtserver_plugin_host::backend_facts::{BackendFacts, OpenFacts};
use trtserver_proto::v2::model_instance_group::Kind;

/// An instance kind and count that a backend prefers; used where the configuration names none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstancePreference {
    pub kind: Kind,
    /// Below 1: no preference.
    pub count: i32,
}

/// The instance kinds that a backend opens and prefers, and the configuration fields that it reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceSupport {
    /// Name of the backend, for messages.
    pub backend: String,
    /// Bit set by number of the kind.
    pub kinds: u32,
    /// Bits of [`backend_flags`].
    pub flags: u32,
    /// Best first.
    pub preferred: Vec<InstancePreference>,
}

impl InstanceSupport {
    /// Adds what the backend says once it is open on this machine.
    pub fn take(&mut self, open: &OpenFacts) {
        self.kinds &= open.instance_kinds;
        self.preferred = read_preferences(&open.preferred);
    }

    pub fn from_facts(facts: &BackendFacts) -> Self {
        Self {
            backend: facts.name.clone(),
            kinds: facts.instance_kinds,
            flags: facts.flags,
            preferred: read_preferences(&facts.preferred),
        }
    }

    /// The support of a backend that opens every kind, prefers none, and uses what most backends
    /// can.
    pub fn every_kind() -> Self {
        Self {
            backend: String::new(),
            kinds: u32::MAX,
            flags: backend_flags::SECONDARY_DEVICES
                | backend_flags::ACCELERATORS
                | backend_flags::BATCH_INPUTS,
            preferred: vec![],
        }
    }

    /// Whether the backend has declared all of `flags`.
    pub(super) fn declares(&self, flags: u32) -> bool {
        self.flags & flags == flags
    }

    pub(super) fn opens(&self, kind: Kind) -> bool {
        self.kinds & 1 << kind as u32 != 0
    }

    /// `KIND_CPU and KIND_MODEL`, for messages.
    pub(super) fn kinds_text(&self) -> String {
        let kinds = [Kind::Gpu, Kind::Cpu, Kind::Model].into_iter().filter(|k| self.opens(*k));
        kinds.map(|kind| kind.as_str_name()).collect::<Vec<_>>().join(" and ")
    }
}

fn read_preferences(preferred: &[(u32, u32)]) -> Vec<InstancePreference> {
    let preference = |(kind, count): &(u32, u32)| {
        let kind = Kind::try_from(i32::try_from(*kind).ok()?).ok()?;
        Some(InstancePreference { kind, count: i32::try_from(*count).unwrap_or(i32::MAX) })
    };
    preferred.iter().filter_map(preference).collect()
}
