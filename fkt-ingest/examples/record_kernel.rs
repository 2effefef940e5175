//! Records the whole machine for some seconds: `record_kernel FOLDER 5 [BUFFER_KIB [SUB_BUFFER_KIB]]`.
//!
//! Prints the cost of recording: the CPU time of the threads that move pages, as a share of one CPU.

use std::time::{Duration, Instant};

use fkt_ingest::live::{Recorder, RecorderOptions, Scope, available, remove_leftovers};
use sigmund_files::Folder;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().unwrap_or("recording".to_owned());
    let seconds = args.next().map_or(Ok(1), |s| s.parse())?;
    let mut options = RecorderOptions::default();
    if let Some(kb) = args.next() {
        options.buffer_kb_per_cpu = kb.parse()?;
    }
    options.sub_buffer_kb = args.next().map(|kb| kb.parse()).transpose()?;
    let folder = Folder::create_or_take_empty(path.as_ref(), None)?;
    available()?;
    remove_leftovers();
    let start = Instant::now();
    let recorder = Recorder::start(&options, Scope::System, &folder)?;
    std::thread::sleep(Duration::from_secs(seconds));
    let recorded = recorder.stop()?;
    let length = start.elapsed();
    let summary = recorded.write_trace_dat(&folder, "trace.dat")?;
    let share = 100.0 * summary.pump_time.as_secs_f64() / length.as_secs_f64();
    println!(
        "{path}/trace.dat: {} bytes, {} events lost, {share:.1} % of one CPU",
        summary.bytes,
        summary.lost()
    );
    for failure in &summary.failures {
        eprintln!("{failure}");
    }
    Ok(())
}
