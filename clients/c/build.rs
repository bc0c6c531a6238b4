//! Gives the library a name that does not depend on where a program found it when it was linked.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libtrtserver_client.so");
    println!("cargo:rerun-if-changed=build.rs");
}
