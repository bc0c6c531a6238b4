//! Handles: numbers that name objects of the library, so that NULL, released and foreign handles
//! are refused.
//!
//! A handle is the index of a slot and the slot's generation, which rises when the object is
//! released: an old handle names nothing until its slot was used 2^32 times.

use crate::failure::{ClientFailure, Outcome};
use crate::fork;
use std::any::Any;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A type whose objects have handles.
pub trait HandleObject: Any + Send + Sync {
    /// What errors call it.
    const NAME: &'static str;
}

/// A handle of a `T` as C holds it.
#[repr(transparent)]
pub struct ObjectHandle<T>(*mut c_void, PhantomData<fn() -> T>);

impl<T> Clone for ObjectHandle<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for ObjectHandle<T> {}

impl<T> ObjectHandle<T> {
    pub const NULL: Self = ObjectHandle(std::ptr::null_mut(), PhantomData);
    /// Names nothing, and is not NULL: an error that cannot be described.
    pub const INVALID: Self =
        ObjectHandle(std::ptr::without_provenance_mut(usize::MAX), PhantomData);

    pub fn is_null(self) -> bool {
        self.0.is_null()
    }
}

impl<T: HandleObject> ObjectHandle<T> {
    /// Keeps the object until [`release`](Self::release).
    pub fn new(object: Arc<T>) -> Self {
        let mut table = write_table();
        let index = table.free.pop().unwrap_or_else(|| {
            table.slots.push(HandleSlot { generation: 0, object: None });
            table.slots.len() - 1
        });
        let slot = &mut table.slots[index];
        slot.object = Some(object);
        let number = (slot.generation as usize) << 32 | (index + 1);
        ObjectHandle(std::ptr::without_provenance_mut(number), PhantomData)
    }

    /// The object.
    ///
    /// # Errors
    /// The handle names none of this type.
    pub fn get(self) -> Outcome<Arc<T>> {
        let name = T::NAME;
        if self.is_null() {
            return Err(ClientFailure::argument(format!("the handle of the {name} is NULL")));
        }
        self.find().ok_or_else(|| {
            ClientFailure::argument(format!(
                "the handle is of no {name}, or the {name} was released"
            ))
        })
    }

    /// The object, if there is one.
    pub fn find(self) -> Option<Arc<T>> {
        let (index, generation) = self.parts()?;
        let object = read_table().slots.get(index)?.at(generation)?.clone();
        (object as Arc<dyn Any + Send + Sync>).downcast().ok()
    }

    /// Takes the object; the handle names nothing from then on.
    pub fn release(self) -> Option<Arc<T>> {
        // The end of an object waits for threads, which only the parent has.
        if fork::is_child() {
            return None;
        }
        let (index, generation) = self.parts()?;
        let mut table = write_table();
        let object = table.slots.get(index)?.at(generation)?.clone();
        let object = (object as Arc<dyn Any + Send + Sync>).downcast().ok()?;
        let slot = &mut table.slots[index];
        slot.object = None;
        slot.generation = slot.generation.wrapping_add(1);
        table.free.push(index);
        Some(object)
    }

    fn parts(self) -> Option<(usize, u32)> {
        let number = self.0.addr();
        let index = (number & u32::MAX as usize).checked_sub(1)?;
        Some((index, (number >> 32) as u32))
    }
}

/// Number of objects that were not released.
pub fn count_handles() -> usize {
    let table = read_table();
    table.slots.len() - table.free.len()
}

struct HandleSlot {
    generation: u32,
    object: Option<Arc<dyn Any + Send + Sync>>,
}

impl HandleSlot {
    fn at(&self, generation: u32) -> Option<&Arc<dyn Any + Send + Sync>> {
        self.object.as_ref().filter(|_| self.generation == generation)
    }
}

struct HandleTable {
    slots: Vec<HandleSlot>,
    free: Vec<usize>,
}

static TABLE: RwLock<HandleTable> =
    RwLock::new(HandleTable { slots: Vec::new(), free: Vec::new() });

fn read_table() -> RwLockReadGuard<'static, HandleTable> {
    TABLE.read().unwrap_or_else(PoisonError::into_inner)
}

fn write_table() -> RwLockWriteGuard<'static, HandleTable> {
    TABLE.write().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "handle_tests.rs"]
mod tests;
