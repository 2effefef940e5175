//! The shared library stays loaded until the process ends, as do its threads, fork handlers and exit handlers.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
