//! One version: plugin model, instances, scheduler (to come).
