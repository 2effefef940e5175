//! Links the shared library such that it stays loaded until the process ends. Its threads, fork handlers and exit
//! handlers stay until then, too.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
