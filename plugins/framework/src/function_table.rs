//! Tables of C functions that are looked up by name in a library which is opened at run time.

/// Types that only a library looks into.
#[macro_export]
macro_rules! opaque_types {
    ($($name:ident)*) => { $(
        #[repr(C)]
        pub struct $name {
            _private: [u8; 0],
        }
    )* };
}

/// A struct with one field for each function of a C library, and how it is loaded. The crate that
/// uses it depends on `libloading`.
#[macro_export]
macro_rules! function_table {
    (
        $(#[$doc:meta])* $table:ident;
        $($field:ident = $symbol:literal: fn($($argument:ty),* $(,)?) $(-> $result:ty)?;)*
    ) => {
        $(#[$doc])*
        pub struct $table {
            $(pub $field: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl $table {
            /// # Errors
            /// The names of the functions that the library lacks.
            ///
            /// # Safety
            /// Functions of these names have the signatures of the framework's headers.
            pub unsafe fn load(
                library: &::libloading::os::unix::Library,
            ) -> Result<Self, Vec<&'static str>> {
                let mut absent = Vec::new();
                $(
                    // SAFETY: the caller's promise.
                    let $field = unsafe { library.get(concat!($symbol, "\0").as_bytes()) };
                    if $field.is_err() {
                        absent.push($symbol);
                    }
                )*
                match ($($field,)*) {
                    ($(Ok($field),)*) => Ok(Self { $($field: *$field,)* }),
                    _ => Err(absent),
                }
            }
        }
    };
}
