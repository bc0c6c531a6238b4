//! JSON goldens.
