//! A server whose slow requests have a reason: `cargo run --example server`, under `sigmund record`.
//!
//! Requests share a cache behind a lock. Now and then one of them fills it again, and holds the lock meanwhile; the others
//! wait. docs/questions.md finds that out.

mod requests;

fn main() -> std::io::Result<()> {
    let runtime = fut::Runtime::builder().lwps(2).build()?;
    let answered = runtime.run(|| requests::serve(400));
    println!("{answered} requests");
    Ok(())
}
