//! Records the machine's scheduling for some seconds: `record_kernel trace.dat 5`.

use std::time::Duration;

use fkt_ingest::live::{Recorder, RecorderOptions, available, remove_leftovers};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().unwrap_or("trace.dat".to_owned());
    let seconds = args.next().map_or(Ok(1), |s| s.parse())?;
    available()?;
    remove_leftovers();
    let mut options = RecorderOptions::default();
    options.machine_events.extend(args);
    let recorder = Recorder::start(options, None, &std::env::temp_dir())?;
    std::thread::sleep(Duration::from_secs(seconds));
    let summary = recorder.stop()?.write_trace_dat(path.as_ref())?;
    println!("{path}: {} bytes, {} events lost", summary.bytes, summary.lost());
    for failure in &summary.failures {
        eprintln!("{failure}");
    }
    Ok(())
}
