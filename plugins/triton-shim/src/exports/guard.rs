//! How an exported function takes its arguments, runs, and reports: the macro `export!`.

use crate::fault::{Result, TritonFault};
use crate::handles::{self, LiveObject, TypedObject};
use crate::objects::error::ErrorObject;
use crate::scope;
use std::borrow::Cow;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

/// An argument: `C` as the backend passes it, `Self` as the body of a function uses it.
pub trait Argument: Sized {
    type C;

    /// Checks an argument; `name` is for errors.
    ///
    /// # Safety
    /// A pointer that is not null and not a handle points at what its type says, valid during the
    /// call.
    unsafe fn take(raw: Self::C, name: &str) -> Result<Self>;
}

impl<T: TypedObject> Argument for LiveObject<T> {
    type C = *mut T;
    unsafe fn take(raw: *mut T, _: &str) -> Result<Self> {
        Ok(handles::get_object(raw)?)
    }
}

/// A handle that may be null.
pub struct Maybe<T: 'static>(pub Option<LiveObject<T>>);

impl<T: TypedObject> Argument for Maybe<T> {
    type C = *mut T;
    unsafe fn take(raw: *mut T, _: &str) -> Result<Self> {
        if raw.is_null() { Ok(Self(None)) } else { Ok(Self(Some(handles::get_object(raw)?))) }
    }
}

/// A handle that the function checks itself, because it ends the object's life.
pub struct Ended<T>(pub *mut T);

impl<T: TypedObject> Argument for Ended<T> {
    type C = *mut T;
    unsafe fn take(raw: *mut T, _: &str) -> Result<Self> {
        Ok(Self(raw))
    }
}

/// Where a result goes.
pub struct Out<T>(*mut T);

impl<T> Argument for Out<T> {
    type C = *mut T;
    unsafe fn take(raw: *mut T, name: &str) -> Result<Self> {
        if raw.is_null() { Err(refuse_null(name)) } else { Ok(Self(raw)) }
    }
}

impl<T> Out<T> {
    pub fn set(&self, value: T) {
        // SAFETY: by the contract of `Argument::take`.
        unsafe { self.0.write(value) }
    }
}

/// Where a result goes that the caller may not want.
pub struct OutMaybe<T>(*mut T);

impl<T> Argument for OutMaybe<T> {
    type C = *mut T;
    unsafe fn take(raw: *mut T, _: &str) -> Result<Self> {
        Ok(Self(raw))
    }
}

impl<T> OutMaybe<T> {
    pub fn set(&self, value: T) {
        if !self.0.is_null() {
            // SAFETY: by the contract of `Argument::take`.
            unsafe { self.0.write(value) }
        }
    }
}

/// A C string.
#[derive(Clone, Copy)]
pub struct Text(&'static CStr);

impl Argument for Text {
    type C = *const c_char;
    unsafe fn take(raw: *const c_char, name: &str) -> Result<Self> {
        if raw.is_null() {
            return Err(refuse_null(name));
        }
        // SAFETY: by the contract of `Argument::take`. The lifetime ends with the function, which
        // keeps only copies.
        Ok(Self(unsafe { CStr::from_ptr(raw) }))
    }
}

impl Text {
    pub fn c(&self) -> &CStr {
        self.0
    }

    pub fn text(&self) -> Cow<'_, str> {
        self.0.to_string_lossy()
    }
}

/// A C string that may be null.
#[derive(Clone, Copy)]
pub struct TextMaybe(pub Option<Text>);

impl Argument for TextMaybe {
    type C = *const c_char;
    unsafe fn take(raw: *const c_char, name: &str) -> Result<Self> {
        if raw.is_null() {
            return Ok(Self(None));
        }
        // SAFETY: passed on.
        Ok(Self(Some(unsafe { Text::take(raw, name)? })))
    }
}

/// A `bool`: one byte that may hold anything.
#[derive(Clone, Copy)]
pub struct Flag(pub bool);

impl Argument for Flag {
    type C = u8;
    unsafe fn take(raw: u8, _: &str) -> Result<Self> {
        Ok(Self(raw != 0))
    }
}

/// Numbers and pointers are passed on as they are.
macro_rules! plain {
    ($($ty:ty),*) => { $(
        impl Argument for $ty {
            type C = $ty;
            unsafe fn take(raw: $ty, _: &str) -> Result<Self> {
                Ok(raw)
            }
        }
    )* };
}

plain!(
    c_int,
    u32,
    u64,
    i64,
    f64,
    usize,
    *mut c_void,
    *const c_void,
    *const i64,
    *const u64,
    *const f64
);

/// A function of the backend, which may be null.
impl<F> Argument for Option<F> {
    type C = Option<F>;
    unsafe fn take(raw: Option<F>, _: &str) -> Result<Self> {
        Ok(raw)
    }
}

/// An array of handles, with its length in another argument.
pub struct List<T>(pub *const *mut T);

impl<T: TypedObject> Argument for List<T> {
    type C = *const *mut T;
    unsafe fn take(raw: *const *mut T, _: &str) -> Result<Self> {
        Ok(Self(raw))
    }
}

impl<T: TypedObject> List<T> {
    /// The objects.
    ///
    /// # Errors
    /// A null list that is said to have elements, or a wrong handle.
    pub fn objects(&self, n: u64) -> Result<Vec<LiveObject<T>>> {
        // SAFETY: by the contract of `Argument::take`, the caller's array has that many elements.
        let raw = unsafe { read_array(self.0, n, "the list")? };
        raw.iter().map(|raw| Ok(handles::get_object(*raw)?)).collect()
    }
}

/// No block of memory has more bytes.
pub const MEMORY: u64 = isize::MAX as u64;

/// Elements of an array that the backend passes.
///
/// # Errors
/// It is null and not empty, or longer than memory.
///
/// # Safety
/// `n` elements at `p` are valid for `'a`.
pub unsafe fn read_array<'a, T>(p: *const T, n: u64, name: &str) -> Result<&'a [T]> {
    if n == 0 {
        return Ok(&[]);
    }
    if p.is_null() {
        return Err(refuse_null(name));
    }
    let bytes = n.checked_mul(size_of::<T>() as u64).filter(|bytes| *bytes <= MEMORY);
    if bytes.is_none() {
        return Err(TritonFault::misuse(format_args!("{name} is said to have {n} elements")));
    }
    // SAFETY: by the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(p, n as usize) })
}

fn refuse_null(name: &str) -> TritonFault {
    TritonFault::misuse(format_args!("{name} is null"))
}

/// Runs the body of an exported function. What it returns is owned by the caller; null is success.
pub fn guard_export(function: &str, body: impl FnOnce() -> Result<()>) -> *mut ErrorObject {
    match panic_fault(function, body) {
        Ok(()) => std::ptr::null_mut(),
        Err(fault) => handles::create_object(ErrorObject::from_fault(&fault)).raw(),
    }
}

/// As [`guard_export`], for functions without an error as result: it is logged, and `default`
/// returned.
pub fn guard_value<T>(function: &str, default: T, body: impl FnOnce() -> Result<T>) -> T {
    panic_fault(function, || body().map_err(|fault| TritonFault { misuse: true, ..fault }))
        .unwrap_or(default)
}

fn panic_fault<T>(function: &str, body: impl FnOnce() -> Result<T>) -> Result<T> {
    let fault = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(fault)) if !fault.misuse => return Err(fault),
        Ok(Err(fault)) => fault,
        Err(payload) => {
            let text = payload.downcast_ref::<&str>().map(ToString::to_string);
            let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
            // A payload whose own Drop panics must not unwind into the backend.
            std::mem::forget(payload);
            let mut fault = TritonFault::internal(text.as_deref().unwrap_or("it panicked"));
            fault.misuse = true;
            fault
        }
    };
    Err(report_misuse(function, fault))
}

/// Misuses that are written to the log; a backend may make the same mistake for every request.
const LOGGED_MOST: u64 = 1000;
static LOGGED: AtomicU64 = AtomicU64::new(0);

/// Names backend and function in a misuse, and logs it.
fn report_misuse(function: &str, fault: TritonFault) -> TritonFault {
    let scope = scope::current_scope();
    let fault = match &scope {
        Some(scope) => fault.context(format_args!("backend '{}': {function}", scope.backend())),
        None => fault.context(function),
    };
    if let Some(scope) = scope {
        match LOGGED.fetch_add(1, Ordering::Relaxed) {
            n if n + 1 < LOGGED_MOST => scope.error(&fault.text),
            n if n + 1 == LOGGED_MOST => scope.error(&format!(
                "{} (this was misuse {LOGGED_MOST} in this process; further ones are not logged)",
                fault.text
            )),
            _ => {}
        }
    }
    fault
}

/// Defines exported functions: `fn NAME(argument: Type, …) { body }`, each type an [`Argument`],
/// the body one that uses `?` and returns nothing. They return a `TRITONSERVER_Error *` owned by
/// the caller, null on success.
///
/// A function with a result other than an error is written
/// `fn NAME(…) -> C type, default { body }`, with the result wrapped in `Ok`.
///
/// The functions are `unsafe`: a backend passes pointers as its interface says. What can be checked
/// is: handles, nulls, lengths beyond memory, panics.
macro_rules! export {
    () => {};
    (
        $(#[$meta:meta])*
        fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block
        $($rest:tt)*
    ) => {
        $(#[$meta])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            $($arg: <$ty as $crate::exports::guard::Argument>::C),*
        ) -> *mut $crate::objects::error::ErrorObject {
            $crate::exports::guard::guard_export(stringify!($name), move || {
                $(
                    // SAFETY: the caller passes what the interface says.
                    let $arg = unsafe {
                        <$ty as $crate::exports::guard::Argument>::take($arg, stringify!($arg))
                    }?;
                )*
                $body
                Ok(())
            })
        }
        $crate::exports::guard::export! { $($rest)* }
    };
    (
        $(#[$meta:meta])*
        fn $name:ident($($arg:ident: $ty:ty),* $(,)?) -> $result:ty, $default:expr; $body:block
        $($rest:tt)*
    ) => {
        $(#[$meta])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            $($arg: <$ty as $crate::exports::guard::Argument>::C),*
        ) -> $result {
            $crate::exports::guard::guard_value(stringify!($name), $default, move || {
                $(
                    // SAFETY: the caller passes what the interface says.
                    let $arg = unsafe {
                        <$ty as $crate::exports::guard::Argument>::take($arg, stringify!($arg))
                    }?;
                )*
                $body
            })
        }
        $crate::exports::guard::export! { $($rest)* }
    };
}
pub(crate) use export;
