//! The installed peers: small C programs in `benches/peers`, compiled and run on the same CPU.
//!
//! Each prints lines of `name<TAB>ticks`.

use std::{
    io,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use crate::measure::Cost;

pub(crate) fn print(clock: f64) {
    let folder = tempfile::tempdir().expect("a folder");
    for (peer, measured) in [("FxT", fxt(folder.path())), ("LTTng-UST", lttng(folder.path()))] {
        match measured {
            Ok(costs) => costs.iter().for_each(|cost| cost.print(clock)),
            Err(NotMeasured::NotInstalled) => println!("{peer:<44} not installed"),
            Err(NotMeasured::Failed(why)) => println!("{peer:<44} not measured: {why}"),
        }
    }
}

enum NotMeasured {
    NotInstalled,
    Failed(String),
}

impl From<io::Error> for NotMeasured {
    fn from(error: io::Error) -> NotMeasured {
        NotMeasured::Failed(error.to_string())
    }
}

fn fxt(folder: &Path) -> Result<Vec<Cost>, NotMeasured> {
    let program = folder.join("fxt");
    compile("fxt.c", &program, &[], "fut.h", &["-lfxt"])?;
    run(&mut Command::new(program))
}

fn lttng(folder: &Path) -> Result<Vec<Cost>, NotMeasured> {
    let program = folder.join("lttng");
    compile("lttng.c", &program, &["lttng_events.c"], "lttng/tracepoint.h", &["-llttng-ust", "-ldl"])?;
    let _daemon = Daemon::start()?;
    let session = format!("fut-bench-{}", std::process::id());
    // In flight-recorder mode nothing is written to a file, so only the probes are measured.
    let steps: [&[&str]; 4] = [
        &["create", &session, "--snapshot"],
        &["enable-channel", "-u", "--overwrite", "--subbuf-size=4M", "--num-subbuf=4", "-s", &session, "ch"],
        &["enable-event", "-u", "fut_bench:*", "-s", &session, "-c", "ch"],
        &["start", &session],
    ];
    let recorded =
        steps.iter().try_for_each(|step| ask_lttng(step)).and_then(|()| run(&mut Command::new(&program)));
    ask_lttng(&["destroy", &session])?;
    let mut costs = recorded?;
    let mut off = run(&mut Command::new(&program))?;
    off.iter_mut().for_each(|cost| cost.name.push_str(", off"));
    costs.append(&mut off);
    Ok(costs)
}

/// The session daemon, unless one runs already.
struct Daemon(Option<Child>);

impl Daemon {
    fn start() -> Result<Daemon, NotMeasured> {
        if ask_lttng(&["list"]).is_ok() {
            return Ok(Daemon(None));
        }
        let daemon = quiet(&mut Command::new("lttng-sessiond")).spawn();
        let daemon = Daemon(Some(daemon.map_err(|_| NotMeasured::NotInstalled)?));
        for _ in 0..50 {
            std::thread::sleep(Duration::from_millis(100));
            if ask_lttng(&["list"]).is_ok() {
                return Ok(daemon);
            }
        }
        Err(NotMeasured::Failed("its session daemon does not answer".into()))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let Some(daemon) = &mut self.0 else { return };
        // SAFETY: a signal to a child that was not waited for yet, so the number is still its own.
        unsafe { libc::kill(daemon.id() as i32, libc::SIGTERM) };
        let _ = daemon.wait();
    }
}

fn quiet(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
}

fn ask_lttng(arguments: &[&str]) -> Result<(), NotMeasured> {
    let status = quiet(Command::new("lttng").arg("--no-sessiond").args(arguments)).status();
    match status {
        Err(_) => Err(NotMeasured::NotInstalled),
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(NotMeasured::Failed(format!("lttng {}: {status}", arguments.join(" ")))),
    }
}

/// Compiles a peer, if `header` exists.
fn compile(
    main: &str,
    program: &Path,
    others: &[&str],
    header: &str,
    libraries: &[&str],
) -> Result<(), NotMeasured> {
    let sources = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("benches/peers");
    let mut finds_it = Command::new("cc");
    finds_it.args(["-E", "-x", "c", "-I/usr/include/fxt", "-include", header, "/dev/null"]);
    if !quiet(&mut finds_it).status().is_ok_and(|status| status.success()) {
        return Err(NotMeasured::NotInstalled);
    }
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-I/usr/include/fxt", "-I"]).arg(&sources).arg("-o").arg(program);
    cc.args([main].iter().chain(others).map(|source| sources.join(source))).args(libraries);
    let done = cc.output().map_err(|_| NotMeasured::NotInstalled)?;
    if done.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&done.stderr);
    Err(NotMeasured::Failed(format!("cc: {}", why.lines().next().unwrap_or("failed"))))
}

fn run(program: &mut Command) -> Result<Vec<Cost>, NotMeasured> {
    let done = program.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    if !done.status.success() {
        return Err(NotMeasured::Failed(done.status.to_string()));
    }
    let said = String::from_utf8_lossy(&done.stdout);
    let cost = |line: &str| {
        let (name, ticks) = line.split_once('\t')?;
        Some(Cost { name: name.into(), ticks: ticks.parse().ok()? })
    };
    Ok(said.lines().filter_map(cost).collect())
}
