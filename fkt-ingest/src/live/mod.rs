//! Recording the kernel while a program runs.
//!
//! There are three levels; [`plan()`] determines which one this process may use:
//!
//! 1. [`Recorder`]: tracepoints of the whole machine or of one program, with TSC timestamps. Needs root and tracefs.
//! 2. [`PerfRecorder`]: context switches of the program's own LWPs. Ordinary users may record these if
//!    `kernel.perf_event_paranoid` is at most 2.
//! 3. Nothing: only the program's own trace.
//!
//! ```no_run
//! use sigmund_files::Folder;
//! use fkt_ingest::live::{Recorder, RecorderOptions, Scope, available, remove_leftovers};
//!
//! available()?;
//! remove_leftovers();
//! let folder = Folder::create_or_take_empty("recording".as_ref(), None)?;
//! let recorder = Recorder::start(&RecorderOptions::default(), Scope::System, &folder)?;
//! std::thread::sleep(std::time::Duration::from_secs(1));
//! let summary = recorder.stop()?.write_trace_dat(&folder, "trace.dat")?;
//! println!("{} bytes, {} events lost", summary.bytes, summary.lost());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod compressed_pages;
mod file_names;
mod instance;
mod options;
mod perf;
mod plan;
mod pump;
mod recorded;
mod recorder;
mod rotator;
mod stats;
mod system;
mod tracefs;
mod unfinished;
mod writer;

pub use file_names::{part_name, part_number};
pub use options::{EventFilter, RecorderOptions, Scope};
pub use perf::{PerfRecorder, PerfSummary, perf_fallback_available};
pub use plan::{Plan, plan};
pub use recorded::{CpuSummary, Recorded, Summary};
pub use recorder::{Progress, Recorder};
pub use rotator::{ClosedPart, Rotator};
pub use tracefs::{Unavailable, available, remove_leftovers};
pub use unfinished::{
    Finished, finish, finish_parts, is_part, is_unfinished, remove_part, write_part, write_part_compressed,
};
