//! How fast a CTF trace is read: `read_speed_ctf FOLDER`. One thread, stream after stream; the second time counts.

use std::time::Instant;

use sigmund_model::Event;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which folder?")?;
    let traces = fkt_ingest::open(path.as_ref())?;
    let mut event = Event::default();
    for _ in 0..3 {
        let started = Instant::now();
        let (mut events, mut losses, mut params) = (0u64, Vec::new(), 0);
        for mut stream in traces.iter().flat_map(|trace| trace.streams()) {
            while stream.events.next_into(&mut event)? {
                events += 1;
                params += event.params.len();
            }
            losses.extend(stream.events.take_losses());
        }
        let seconds = started.elapsed().as_secs_f64();
        let rate = events as f64 / seconds / 1e6;
        println!(
            "{events} events, {params} parameters in {seconds:.3} s: {rate:.1} M events/s; {} losses",
            losses.len()
        );
        for loss in losses.iter().take(5) {
            eprintln!("{}", loss.detail);
        }
    }
    Ok(())
}
