//! The repository on disk into the table (to come).
