//! How fast a trace.dat is read: `read_speed trace.dat [PASSES]`. One thread, CPU after CPU; the first time is slower.

use std::time::Instant;

use fkt_ingest::TraceDat;
use sigmund_model::{Event, EventStream};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or("trace.dat".to_owned());
    let passes = std::env::args().nth(2).map_or(Ok(2), |passes| passes.parse())?;
    let trace = TraceDat::open(path.as_ref())?;
    let mut event = Event::default();
    for _ in 0..passes {
        let started = Instant::now();
        let (mut events, mut losses, mut params) = (0u64, Vec::new(), 0);
        for mut stream in trace.streams() {
            while stream.next_into(&mut event)? {
                params += event.params.len();
            }
            events += stream.events();
            losses.extend(stream.take_losses());
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
