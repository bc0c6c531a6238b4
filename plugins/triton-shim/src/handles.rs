//! Handles of the objects that backends hold (`TRITONBACKEND_Request *` and so on), checked
//! whenever one comes back.
//!
//! An object is in a slot of a chunk; a chunk holds objects of one kind, and is never freed. A
//! handle is the address of the slot and, in the bits that are zero because of its alignment, the
//! slot's generation, which each use of a slot changes. So a handle that is null, foreign, of
//! another kind, freed or freed twice is found out without touching memory that is not ours, and is
//! an error instead of undefined behaviour (unless the generation has wrapped around: one chance in
//! [`GENERATIONS`]).
//!
//! Slots are taken from and returned to a list of the thread, which exchanges whole groups with a
//! shared list: objects that live as long as a request cost neither an allocation nor a lock.

use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::cell::{RefCell, UnsafeCell};
use std::fmt;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Kinds of object, with the word that errors use.
macro_rules! kinds {
    ($($kind:ident $text:literal,)*) => {
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u32)]
        pub enum ObjectKind { $($kind,)* }

        const KINDS: &[(ObjectKind, &str)] = &[$((ObjectKind::$kind, $text),)*];
    };
}

kinds! {
    Backend "backend",
    Attribute "backend attribute",
    MemoryManager "memory manager",
    Model "model",
    Instance "model instance",
    Request "request",
    Input "input",
    Reply "reply",
    Factory "response factory",
    Response "response",
    Output "output",
    ResponseStatistics "response statistics",
    State "state",
    Message "message",
    Error "error",
    BufferAttributes "buffer attributes",
    Parameter "parameter",
    MetricFamily "metric family",
    Metric "metric",
    MetricArgs "metric arguments",
    Server "server",
    Allocator "response allocator",
    Trace "trace",
}

impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(KINDS[*self as usize].1)
    }
}

/// What is behind a kind of handle.
pub trait TypedObject: Sized + Send + Sync + 'static {
    const KIND: ObjectKind;
}

/// Size and alignment of a chunk.
const CHUNK: usize = 1 << 16;
/// Alignment of a slot, and number of generations that handles distinguish.
const GENERATIONS: usize = 128;

#[repr(C)]
struct ChunkHead {
    kind: u32,
    stride: u32,
}

/// One object. Free while the generation is even.
#[repr(C, align(128))]
struct ObjectSlot<T> {
    generation: AtomicU32,
    value: UnsafeCell<MaybeUninit<T>>,
}

/// Addresses of all chunks, a hash table with linear probing that only grows.
static CHUNKS: [AtomicUsize; 1 << 14] = [const { AtomicUsize::new(0) }; 1 << 14];
/// Held while a chunk is added; their number.
static ADDING: Mutex<usize> = Mutex::new(0);

/// Free slots, by kind.
struct FreeList(Mutex<Vec<usize>>);

static SHARED: [FreeList; KINDS.len()] = [const { FreeList(Mutex::new(Vec::new())) }; KINDS.len()];

/// Free slots that one thread keeps of a kind, and how many it exchanges with the shared list at
/// once.
const LOCAL_MOST: usize = 256;
const GROUP: usize = 128;

struct Local([Vec<usize>; KINDS.len()]);

impl Drop for Local {
    fn drop(&mut self) {
        for (list, shared) in self.0.iter_mut().zip(&SHARED) {
            shared.lock().append(list);
        }
    }
}

thread_local! {
    static LOCAL: RefCell<Local> = const { RefCell::new(Local([const { Vec::new() }; KINDS.len()])) };
}

impl FreeList {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A live object. Copyable; the backend, or [`free_object`], ends its life.
pub struct LiveObject<T: 'static> {
    raw: *mut T,
    value: &'static T,
}

impl<T> Clone for LiveObject<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for LiveObject<T> {}

impl<T> Deref for LiveObject<T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.value
    }
}

// SAFETY: a shared reference and its address.
unsafe impl<T: Sync> Send for LiveObject<T> {}
// SAFETY: a shared `LiveObject` gives out a shared reference to a `Sync` value, and its address.
unsafe impl<T: Sync> Sync for LiveObject<T> {}

impl<T> LiveObject<T> {
    /// The handle, for the backend.
    pub fn raw(self) -> *mut T {
        self.raw
    }
}

/// What is wrong with a handle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HandleFault {
    Null(ObjectKind),
    /// No object of this library has this address.
    Foreign(ObjectKind, usize),
    /// An object of another kind.
    OtherKind(ObjectKind, usize, ObjectKind),
    Freed(ObjectKind, usize),
}

impl fmt::Display for HandleFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null(kind) => write!(f, "the {kind} is null"),
            Self::Foreign(kind, at) => write!(f, "{at:#x} is not a handle of a {kind}"),
            Self::OtherKind(kind, at, found) => {
                write!(f, "{at:#x} is the handle of a {found}, a {kind} is required")
            }
            Self::Freed(kind, at) => write!(f, "the {kind} {at:#x} was freed before"),
        }
    }
}

fn split_handle(raw: usize) -> (usize, usize) {
    (raw & !(GENERATIONS - 1), raw & (GENERATIONS - 1))
}

/// The generation of a live slot as its handle shows it.
fn visible(generation: u32) -> usize {
    (generation >> 1) as usize % GENERATIONS
}

/// Finds the slot of a handle, whatever the backend passed.
fn find_slot<T: TypedObject>(raw: *mut T) -> Result<&'static ObjectSlot<T>, HandleFault> {
    if raw.is_null() {
        return Err(HandleFault::Null(T::KIND));
    }
    let foreign = HandleFault::Foreign(T::KIND, raw.addr());
    let (at, _) = split_handle(raw.addr());
    let base = at & !(CHUNK - 1);
    if !is_chunk(base) {
        return Err(foreign);
    }
    let chunk = raw.map_addr(|_| base);
    // SAFETY: a chunk begins with its head, and is never freed.
    let head = unsafe { &*chunk.cast::<ChunkHead>() };
    let (offset, stride) = (at - base, head.stride as usize);
    // The first stride holds the head; what does not fit at the end of a chunk is not a slot.
    if offset < stride || !offset.is_multiple_of(stride) || offset + stride > CHUNK {
        return Err(foreign);
    }
    match KINDS.get(head.kind as usize) {
        Some((kind, _)) if *kind == T::KIND => {}
        Some((kind, _)) => return Err(HandleFault::OtherKind(T::KIND, raw.addr(), *kind)),
        None => return Err(foreign),
    }
    // SAFETY: a slot of a chunk for objects of type T: initialised when the chunk was added, never
    // freed.
    Ok(unsafe { &*raw.map_addr(|_| at).cast::<ObjectSlot<T>>() })
}

/// The object of a handle.
///
/// # Errors
/// The handle does not belong to a live object of this kind.
pub fn get_object<T: TypedObject>(raw: *mut T) -> Result<LiveObject<T>, HandleFault> {
    let slot = find_slot(raw)?;
    let generation = slot.generation.load(Ordering::Acquire);
    if generation.is_multiple_of(2) || visible(generation) != split_handle(raw.addr()).1 {
        return Err(HandleFault::Freed(T::KIND, raw.addr()));
    }
    // SAFETY: the slot is in use, so its value is initialised. It may be freed while the reference
    // is used only if the backend frees an object on one thread that it uses on another, which its
    // interface forbids; the memory stays valid then.
    Ok(LiveObject { raw, value: unsafe { (*slot.value.get()).assume_init_ref() } })
}

/// Puts an object into a slot.
pub fn create_object<T: TypedObject>(value: T) -> LiveObject<T> {
    let slot = std::ptr::with_exposed_provenance_mut::<ObjectSlot<T>>(take_slot::<T>());
    // SAFETY: the slot is free and this thread's, so nothing else accesses its value.
    unsafe {
        (*slot).value.get().write(MaybeUninit::new(value));
        let generation = (*slot).generation.load(Ordering::Relaxed).wrapping_add(1);
        (*slot).generation.store(generation, Ordering::Release);
        let raw = slot.map_addr(|at| at + visible(generation)).cast::<T>();
        LiveObject { raw, value: (*(*slot).value.get()).assume_init_ref() }
    }
}

/// Ends the life of an object and returns it.
///
/// # Errors
/// As [`get_object`]: exactly one of several calls succeeds.
pub fn free_object<T: TypedObject>(raw: *mut T) -> Result<T, HandleFault> {
    let slot = find_slot(raw)?;
    let generation = slot.generation.load(Ordering::Acquire);
    let next = generation.wrapping_add(1);
    let freed = HandleFault::Freed(T::KIND, raw.addr());
    if generation.is_multiple_of(2) || visible(generation) != split_handle(raw.addr()).1 {
        return Err(freed);
    }
    let exchanged =
        slot.generation.compare_exchange(generation, next, Ordering::AcqRel, Ordering::Relaxed);
    exchanged.map_err(|_| freed)?;
    // SAFETY: the slot was in use, and this thread alone has ended that.
    let value = unsafe { (*slot.value.get()).assume_init_read() };
    return_slot::<T>(std::ptr::from_ref(slot).expose_provenance());
    Ok(value)
}

fn take_slot<T: TypedObject>() -> usize {
    let of_thread = LOCAL.try_with(|local| {
        let list = &mut local.borrow_mut().0[T::KIND as usize];
        if list.is_empty() {
            refill_slots::<T>(list);
        }
        list.pop()
    });
    // The list of a thread that ends is gone.
    of_thread.ok().flatten().unwrap_or_else(|| {
        let mut list = Vec::new();
        refill_slots::<T>(&mut list);
        let slot = list.pop();
        SHARED[T::KIND as usize].lock().append(&mut list);
        slot.unwrap_or_default()
    })
}

fn return_slot<T: TypedObject>(slot: usize) {
    let shared = &SHARED[T::KIND as usize];
    let kept = LOCAL.try_with(|local| {
        let list = &mut local.borrow_mut().0[T::KIND as usize];
        list.push(slot);
        if list.len() > LOCAL_MOST {
            // Those freed last stay: their memory is in the cache.
            shared.lock().extend(list.drain(..GROUP));
        }
    });
    if kept.is_err() {
        shared.lock().push(slot);
    }
}

/// Fills an empty list with free slots.
fn refill_slots<T: TypedObject>(list: &mut Vec<usize>) {
    let mut shared = SHARED[T::KIND as usize].lock();
    let from = shared.len().saturating_sub(GROUP);
    list.extend(shared.drain(from..));
    if list.is_empty() {
        add_chunk::<T>(list);
        shared.extend(list.drain(GROUP.min(list.len())..));
    }
}

fn add_chunk<T: TypedObject>(list: &mut Vec<usize>) {
    let stride = size_of::<ObjectSlot<T>>();
    const { assert!(size_of::<ObjectSlot<T>>() * 2 <= CHUNK) };
    let Ok(layout) = Layout::from_size_align(CHUNK, CHUNK) else { return };
    // SAFETY: the layout is not empty.
    let Some(chunk) = NonNull::new(unsafe { alloc_zeroed(layout) }) else {
        handle_alloc_error(layout)
    };
    // SAFETY: the chunk is new and large enough for a head. Zeros are free slots.
    unsafe {
        chunk.cast::<ChunkHead>().write(ChunkHead { kind: T::KIND as u32, stride: stride as u32 });
    }
    let base = chunk.as_ptr().expose_provenance();
    list.extend((1..CHUNK / stride).map(|n| base + n * stride));
    let mut count = ADDING.lock().unwrap_or_else(PoisonError::into_inner);
    // A gibibyte of objects: a backend that leaks so many is not helped by more.
    assert!(*count < CHUNKS.len() / 2, "too many objects of backends are alive");
    *count += 1;
    let free = probe_chunks(base).find(|entry| entry.load(Ordering::Relaxed) == 0);
    if let Some(entry) = free {
        entry.store(base, Ordering::Release);
    }
}

/// The entries where a chunk may be found, in order.
fn probe_chunks(base: usize) -> impl Iterator<Item = &'static AtomicUsize> {
    let hash = (base / CHUNK).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    (0..CHUNKS.len()).map(move |n| &CHUNKS[(hash + n) % CHUNKS.len()])
}

fn is_chunk(base: usize) -> bool {
    let entries = probe_chunks(base).map(|entry| entry.load(Ordering::Acquire));
    entries.take_while(|found| *found != 0).any(|found| found == base)
}

#[cfg(test)]
#[path = "handles_tests.rs"]
mod tests;
