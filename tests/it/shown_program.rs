fut::events! {
    /// A message arrived.
    pub fn received_msg(len: u64, from: &str) => "{len} bytes from {from}";
}

fn main() -> std::io::Result<()> {
    let runtime = fut::Runtime::builder().lwps(4).build()?;
    runtime.run(|| {
        let daemon = fut::Builder::new().name("daemon").spawn(|| received_msg(512, "10.0.0.1"));
        daemon.join().expect("the daemon panicked");
    });
    Ok(())
}
