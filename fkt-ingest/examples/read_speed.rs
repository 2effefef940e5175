//! Measures the speed of reading a trace file of any format: `read_speed FILE [PASSES]`. One thread, stream after
//! stream; the first pass is slower. Opening is timed separately.

use std::time::Instant;

use sigmund_model::Event;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or("trace.dat".to_owned());
    let passes = std::env::args().nth(2).map_or(Ok(2), |passes| passes.parse())?;
    for _ in 0..passes {
        let started = Instant::now();
        let traces = fkt_ingest::open(path.as_ref())?;
        let opened = started.elapsed().as_secs_f64();
        let (mut events, mut params, mut losses) = (0u64, 0, Vec::new());
        for trace in &traces {
            losses.extend(trace.losses().iter().cloned());
            for mut stream in trace.streams() {
                let mut event = Event::default();
                while stream.events.next_into(&mut event)? {
                    events += 1;
                    params += event.params.len();
                }
                losses.extend(stream.events.take_losses());
            }
        }
        let seconds = started.elapsed().as_secs_f64() - opened;
        let rate = |seconds: f64| events as f64 / seconds / 1e6;
        let formats: Vec<String> = traces.iter().map(|trace| trace.format()).collect();
        println!(
            "{}: {events} events, {params} parameters in {seconds:.3} s: {:.1} M events/s; opened in {opened:.3} s, \
             with that {:.1} M events/s; {} losses",
            formats.join(" + "),
            rate(seconds),
            rate(seconds + opened),
            losses.len()
        );
        for loss in losses.iter().take(5) {
            eprintln!("{}", loss.detail);
        }
    }
    Ok(())
}
