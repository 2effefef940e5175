//! A shared library in Rust with probes in it, as a program loads it while it runs. `tests/unload.rs` does.

fut::events! {
    /// Somebody called.
    fn plugged(number: u64);
}

/// Begins to record: 0, or 1 if nobody wants that, or 2 if it is not possible.
#[unsafe(no_mangle)]
pub extern "C" fn plugin_start() -> i32 {
    match fut::init() {
        fut::Init::Recording | fut::Init::AlreadyRecording => 0,
        fut::Init::NotAsked => 1,
        fut::Init::Failed(error) => {
            eprintln!("{error}");
            2
        }
    }
}

/// Records.
#[unsafe(no_mangle)]
pub extern "C" fn plugin_call(number: u64) {
    plugged(number);
}
