//! Chooses the optimisation profile, and so the execution context, for the inputs of a run.

use crate::instance::{ProfileContext, TensorRtInstance};
use crate::profile::{Range, nearest_profile};
use crate::types;
use crate::vtable::TensorShape;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::types::shape_text;

impl TensorRtInstance {
    /// The context whose profile fits the inputs best.
    pub fn choose(&self) -> Result<usize, PluginFault> {
        let (loaded, shapes) = (&self.loaded, &self.buffers.shapes);
        if loaded.engine.implicit_batch.is_some() {
            return Ok(0);
        }
        let ranges = self.contexts.iter().map(|context| context.ranges.as_slice());
        let Some(chosen) = nearest_profile(ranges, shapes) else { return Err(self.outside()) };
        self.check_values(&self.contexts[chosen])?;
        Ok(chosen)
    }

    /// Names an input that fits no profile of the instance.
    fn outside(&self) -> PluginFault {
        let shapes = &self.buffers.shapes;
        let mut reasons = Vec::new();
        for context in &self.contexts {
            let slots = self.loaded.plan.inputs.iter().zip(context.ranges.iter().zip(shapes));
            let outside =
                |(_, (range, shape)): &(_, (&Range, &TensorShape))| !range.allows(shape.dims());
            if let Some((slot, (range, shape))) = slots.into_iter().find(outside) {
                reasons.push(format!(
                    "input '{}' has shape {}, optimisation profile {} allows {}",
                    slot.name,
                    shape_text(shape.dims()),
                    context.profile,
                    range.text()
                ));
            }
        }
        PluginFault::invalid(format!("model '{}': {}", self.model.config.model, reasons.join("; ")))
    }

    fn check_values(&self, context: &ProfileContext) -> Result<(), PluginFault> {
        let slots = self.loaded.plan.inputs.iter().zip(context.ranges.iter());
        for ((slot, range), (input, shape)) in
            slots.zip(self.buffers.inputs.iter().zip(&self.buffers.shapes))
        {
            let (Some(at), Some([min, max])) = (input.at, &range.values) else { continue };
            let count = shape.dims().iter().product::<i64>().max(0) as usize;
            let mut values = [0i64; crate::vtable::MAX_DIMS];
            let Some(values) = values.get_mut(..count) else { continue };
            for (nth, value) in values.iter_mut().enumerate() {
                // SAFETY: a shape tensor in CPU memory of the request, whose size was checked
                // against its shape.
                *value = unsafe {
                    match slot.handle.kind {
                        types::INT64 => at.cast::<i64>().add(nth).read_unaligned(),
                        _ => i64::from(at.cast::<i32>().add(nth).read_unaligned()),
                    }
                };
            }
            if !range.allows_values(values) {
                return Err(PluginFault::invalid(format!(
                    "model '{}': shape tensor '{}' has the values {}, optimisation profile {} allows {} to {}",
                    self.model.config.model,
                    slot.name,
                    shape_text(values),
                    context.profile,
                    shape_text(min),
                    shape_text(max)
                )));
            }
        }
        Ok(())
    }
}
