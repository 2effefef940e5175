//! A server with occasional slow requests: `cargo run --example server`, under `sigmund record`.
//!
//! Requests share a cache guarded by a lock. Occasionally one of them refills it, and holds the lock meanwhile; the
//! others wait. docs/questions.md shows how to find this cause.

mod requests;

fn main() -> std::io::Result<()> {
    let runtime = fut::Runtime::builder().lwps(2).build()?;
    let answered = runtime.run(|| requests::serve(400));
    println!("{answered} requests");
    Ok(())
}
