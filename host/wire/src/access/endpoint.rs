//! What the access check must know of an endpoint, with the names in its request.

use trtserver_config::{AccessKind, AccessedModels, ApiGroup};

/// An endpoint as the access check sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointAccess<'a> {
    /// An endpoint that shows data of several groups needs the scope of all of them. Empty for a
    /// path without an endpoint.
    pub groups: &'static [ApiGroup],
    pub models: AccessedModels<'a>,
    /// `None` if it changes nothing.
    pub control: Option<ControlAction<'a>>,
}

/// A call that changes the server, for the audit line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlAction<'a> {
    /// Such as `load model`.
    pub what: &'static str,
    /// The model or the region; may be empty.
    pub subject: &'a str,
}

/// Groups whose endpoints move to the control listener.
const CONTROL_GROUPS: [ApiGroup; 4] =
    [ApiGroup::SharedMemory, ApiGroup::ModelRepository, ApiGroup::Trace, ApiGroup::Logging];

impl<'a> EndpointAccess<'a> {
    /// A path without an endpoint.
    pub const NONE: Self = Self { groups: &[], models: AccessedModels::None, control: None };

    pub const METRICS: Self =
        Self { groups: &[ApiGroup::Metrics], models: AccessedModels::All, control: None };

    /// An endpoint that shows or executes something.
    pub fn for_models(groups: &'static [ApiGroup], models: AccessedModels<'a>) -> Self {
        Self { groups, models, control: None }
    }

    /// An endpoint that changes something.
    pub fn for_control(
        groups: &'static [ApiGroup],
        models: AccessedModels<'a>,
        what: &'static str,
        subject: &'a str,
    ) -> Self {
        Self { groups, models, control: Some(ControlAction { what, subject }) }
    }

    pub fn kind(&self) -> AccessKind {
        match self.control {
            Some(_) => AccessKind::Control,
            None if self.is_inference() => AccessKind::Infer,
            None => AccessKind::Read,
        }
    }

    pub fn is_inference(&self) -> bool {
        self.groups == [ApiGroup::Inference]
    }

    /// With a control listener it is served there only. The first group decides: the list of models
    /// is metadata, though the repository shows it too.
    pub fn is_for_control_listener(&self) -> bool {
        self.groups.first().is_some_and(|group| CONTROL_GROUPS.contains(group))
    }
}
