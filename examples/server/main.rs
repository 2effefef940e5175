//! A server with slow requests, whose cause a trace shows: `cargo run --example server`, under `sigmund record`.
//!
//! Requests share a cache behind a lock. From time to time one of them refills it, and holds the lock meanwhile; the
//! others wait. docs/questions.md shows how to find that.

mod requests;

fn main() -> std::io::Result<()> {
    let runtime = fut::Runtime::builder().lwps(2).build()?;
    let answered = runtime.run(|| requests::serve(400));
    println!("{answered} requests");
    Ok(())
}
