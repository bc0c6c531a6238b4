//! Names the library as backends ask for it: the loader binds a backend's `DT_NEEDED` entry to an
//! open library of that name.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libtritonserver.so");
    println!("cargo:rerun-if-changed=build.rs");
}
