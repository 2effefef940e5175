//! Measures the cost of an export: `export_speed NAME.supertrace FORMAT [OUT]`.
//!
//! FORMAT is `paje`, `perfetto`, `chrome`, or `nothing` for a sink that ignores all changes. OUT is overwritten; the
//! default is `/dev/null`.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::PathBuf,
    sync::Arc,
    time::Instant,
};

use sigmund_export::{
    ViewerFormat, replay,
    timeline::{Change, Sink},
};
use sigmund_model::Ticks;
use sigmund_query::Filter;
use sigmund_sql::SuperTrace;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const USAGE: &str = "export_speed NAME.supertrace paje|perfetto|chrome|nothing [OUT]";

fn main() -> Result<()> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(trace), Some(format)) = (arguments.next(), arguments.next()) else { return Err(USAGE.into()) };
    let viewer = match format.to_str() {
        Some("paje") => Some(ViewerFormat::Paje),
        Some("perfetto") => Some(ViewerFormat::Perfetto),
        Some("chrome") => Some(ViewerFormat::Chrome),
        Some("nothing") => None,
        _ => return Err(USAGE.into()),
    };
    let out = arguments.next().unwrap_or_else(|| "/dev/null".into());
    tokio::runtime::Builder::new_multi_thread().build()?.block_on(measure(trace, viewer, out))
}

async fn measure(trace: PathBuf, viewer: Option<ViewerFormat>, out: PathBuf) -> Result<()> {
    let trace = SuperTrace::open(trace).await?;
    let filter = Filter::default();
    let actors = Arc::new(replay::read_actors(&trace, &filter).await?);
    let mut file = Counted { file: File::create(out)?, bytes: 0 };
    let (started, before) = (Instant::now(), cpu_seconds()?);
    let mut sink: Box<dyn Sink + '_> = match viewer {
        Some(viewer) => Box::new(viewer.write(&mut file, &actors, None)?),
        None => Box::new(Ignore),
    };
    let replayed = replay::replay(&trace, &filter, &actors, &mut sink, |_, _| Ok(())).await?;
    drop(sink);
    let ([user, kernel], [user_before, kernel_before]) = (cpu_seconds()?, before);
    let (user, kernel) = (user - user_before, kernel - kernel_before);
    let events = replayed.events as f64;
    println!(
        "{} events, {} states, {} changes in {:.2} s; CPU {user:.2} s and the kernel's {kernel:.2} s: {:.2} M events/s; \
         {} bytes, {:.1} an event",
        replayed.events,
        replayed.states,
        replayed.changes,
        started.elapsed().as_secs_f64(),
        events / (user + kernel) / 1e6,
        file.bytes,
        file.bytes as f64 / events,
    );
    Ok(())
}

/// Ignores all changes.
struct Ignore;

impl Sink for Ignore {
    fn change(&mut self, _: Ticks, _: &Change<'_>) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A file that counts the bytes written to it.
struct Counted {
    file: File,
    bytes: u64,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// User and system time of this process, from `/proc/self/stat` (proc_pid_stat(5): hundredths of a second).
fn cpu_seconds() -> Result<[f64; 2]> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let mut ticks = after_name.split_whitespace().skip(11);
    let mut next = || -> Result<f64> { Ok(ticks.next().ok_or("/proc/self/stat")?.parse::<f64>()? / 100.0) };
    Ok([next()?, next()?])
}
