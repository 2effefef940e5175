//! The arguments of `sigmund record`.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum, ValueHint};
use fkt_ingest::live::EventFilter;
use sigmund_schemata::Schema;

use super::size::bytes;

/// The default size of an LWP's buffer in KiB. It takes a program 1.3 ms to fill it if it does nothing but record.
const USER_BUFFER: u32 = 4096;

/// The smallest values of `--max-size` and `--max-time`. A part is a sixteenth of the limit.
const SMALLEST_KEPT: u64 = 32 << 20;
const SHORTEST_KEPT: Duration = Duration::from_secs(1);

const AFTER_HELP: &str = "\
Examples:
  sigmund record -- ./server --port 80
  sigmund record --pid $(pidof server) --for 10s
  sigmund record --all --for 500ms -o busy.run
  sigmund record --max-time 10m --max-size 2G -- ./server
  sudo sigmund record --user $USER -- ./server
  sudo sigmund record --schema locks -- ./server && sigmund report server.supertrace

The first Ctrl-C asks the program to end (or ends the recording), the second kills the program,
the third ends the recorder at once.

Descendants of the program are found by their environment (FUT_ARENA_DIR). One that still
runs when the recording ends has a row in the table `losses` if it has recorded events. A process that cannot reach the recorder (another root, /dev/shm or user),
or has too little address space, runs unrecorded and prints the reason, once.

Exit status:
  0  Recorded, and merged unless --no-merge; also if Ctrl-C or --for ended the recording.
  2  An error, which is reported on stderr. Nothing is recorded: the command line is wrong,
     the program cannot be started, the kernel does not have an event, RUN cannot be used.
     Or a part is missing: the kernel side or user events could not be written (a full disk), a
     process got no buffer, an input of the merge is damaged, a signal came before the
     recording was merged. `sigmund merge RUN` can follow then.

The exit status of the program does not change it; it is printed on stderr, and kept as `ended`
in the table `info`.";

#[derive(Debug, Args)]
#[command(
    override_usage = "sigmund record [OPTIONS] [--] PROGRAM [ARGS…]\n       sigmund record [OPTIONS] --pid PID\n       \
    sigmund record [OPTIONS] --all",
    after_help = AFTER_HELP
)]
pub(crate) struct RecordArgs {
    /// Folder for the recording; the super-trace is RUN.supertrace. Named after the program if not given. A folder that
    /// exists must be empty, owned by you, and not writable by others; only you can read what is recorded.
    #[arg(long, short, value_name = "RUN", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<PathBuf>,
    /// Overwrite what is at RUN and RUN.supertrace.
    #[arg(long)]
    pub(crate) force: bool,
    /// Record only; `sigmund merge RUN` can follow later.
    #[arg(long)]
    pub(crate) no_merge: bool,
    /// Which of the tables wakeups, interrupts, syscalls, spans, locks, counters and processes the merge writes, with commas
    /// between them, or none; all if not given.
    #[arg(long, value_name = "TABLES", value_parser = super::tables::left_out_tables)]
    pub(crate) tables: Option<super::LeftOutTables>,
    /// Stop after this time (10s, 500ms, 2m). A program that was started is asked to end, as by Ctrl-C; one that has not
    /// ended 3 s later continues unrecorded.
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub(crate) length: Option<Duration>,
    /// Keep at most this much on the disk (500M, 2G; at least 32M): the oldest parts of the recording are removed. What is
    /// removed is counted in the table `losses`.
    #[arg(long, value_name = "SIZE", value_parser = kept_size)]
    pub(crate) max_size: Option<u64>,
    /// Keep at least the last TIME (10m, 1h; at least 1s), and up to a sixteenth or half a second more: older parts of the
    /// recording are removed. With --max-size, what exceeds either is removed.
    #[arg(long, value_name = "TIME", value_parser = kept_time)]
    pub(crate) max_time: Option<Duration>,
    /// Which descendants that outlive the program to wait for. By default, those that record with `fut`; for others, the
    /// recorder waits 1 s. A signal ends the recording at any time; processes that are still alive then continue unrecorded.
    #[arg(long, value_enum, value_name = "WHICH", conflicts_with_all = ["pid", "all"])]
    pub(crate) follow: Option<Follow>,
    /// Record a running process and its children, until it ends or Ctrl-C. Its own events are included if it has a
    /// flight recorder.
    #[arg(long, value_name = "PID", conflicts_with_all = ["program", "all", "flight"])]
    pub(crate) pid: Option<u32>,
    /// Record the whole machine, system calls included, until Ctrl-C.
    #[arg(long, short, conflicts_with_all = ["program", "only", "flight", "user_only"])]
    pub(crate) all: bool,
    /// Record only kernel events of the program and its children, and switches between them and other LWPs.
    #[arg(long, conflicts_with = "user_only")]
    pub(crate) only: bool,
    /// Size of the program's buffer for each LWP; a power of two, 128 at least (256 with --flight).
    #[arg(long, value_name = "KIB", default_value_t = USER_BUFFER, value_parser = user_buffer)]
    pub(crate) user_buffer: u32,
    /// Keep only the last events of the program: full buffers overwrite their oldest, and are written when it ends,
    /// also if it is killed. Kernel events are all kept.
    #[arg(long)]
    pub(crate) flight: bool,
    /// Run the program as this user (name or number), with their groups, HOME, USER, LOGNAME and SHELL, and without the
    /// privileges and open files of root. Other variables are passed on. For root only.
    #[arg(long, value_name = "USER", conflicts_with_all = ["pid", "all"])]
    pub(crate) user: Option<String>,
    /// Record what this schema lists, in addition to what other options select: a built-in schema (`sigmund schema` lists them)
    /// or a TOML file; several are combined. `sigmund report` then answers its questions. FUT_KEYMASK, if set, replaces the keys
    /// of schemata.
    #[arg(long, value_name = "NAME|FILE.toml", value_parser = crate::schemata::argument)]
    pub(crate) schema: Vec<Schema>,
    /// Do not record the kernel, even if permitted.
    #[arg(long)]
    pub(crate) user_only: bool,
    #[command(flatten)]
    pub(crate) kernel: KernelArgs,
    /// The program and its arguments.
    #[arg(required_unless_present_any = ["pid", "all"], trailing_var_arg = true, value_name = "PROGRAM",
        value_hint = ValueHint::CommandWithArguments)]
    pub(crate) program: Vec<OsString>,
}

impl RecordArgs {
    /// A recording of this program with the default of every option.
    #[cfg(feature = "sql")]
    pub(crate) fn of(program: Vec<OsString>) -> RecordArgs {
        RecordArgs {
            tables: None,
            output: None,
            force: false,
            no_merge: false,
            length: None,
            max_size: None,
            max_time: None,
            follow: None,
            pid: None,
            all: false,
            only: false,
            kernel: KernelArgs::default(),
            user_buffer: USER_BUFFER,
            flight: false,
            user: None,
            schema: Vec::new(),
            user_only: false,
            program,
        }
    }
}

/// Which descendants of a program are waited for when it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Follow {
    /// Until all descendants have ended, whether they record or not.
    All,
    /// None: the recording ends with the program.
    First,
}

/// How the kernel is recorded.
#[derive(Debug, Args)]
#[command(next_help_heading = "Kernel")]
pub(crate) struct KernelArgs {
    /// Also record this tracepoint, e.g. sched:sched_stat_runtime.
    #[arg(long, value_name = "SYSTEM:EVENT", conflicts_with = "user_only")]
    pub(crate) kernel_event: Vec<String>,
    /// Also record a second source of the time on CPUs, to verify the context switches. `runtime`: the kernel's own accounting of
    /// each LWP (sched_stat_runtime), one more event per switch, timer tick and wakeup of the machine.
    #[arg(long, value_enum, value_name = "WITNESS", conflicts_with_all = ["only", "user_only"])]
    pub(crate) witness: Vec<Witness>,
    /// Record an event only if this condition holds, e.g. 'raw_syscalls:sys_enter: id == 202'. The kernel evaluates it.
    #[arg(long, value_name = "SYSTEM:EVENT: CONDITION", value_parser = event_filter, conflicts_with = "user_only")]
    pub(crate) filter: Vec<EventFilter>,
    /// Size of the kernel's buffer for each CPU.
    #[arg(long, value_name = "KIB", default_value_t = KernelArgs::default().kernel_buffer,
        value_parser = kernel_size, conflicts_with = "user_only")]
    pub(crate) kernel_buffer: usize,
    /// Size of the sub-buffers of the kernel's buffer; a page by default.
    #[arg(long, value_name = "KIB", value_parser = kernel_size, conflicts_with = "user_only")]
    pub(crate) kernel_sub_buffer: Option<usize>,
    /// Clock of kernel events. Clocks other than x86-tsc are converted by snapshots, which is less exact.
    #[arg(long, value_name = "CLOCK", default_value_t = KernelArgs::default().kernel_clock,
        value_parser = ["x86-tsc", "mono", "mono_raw", "boot"], conflicts_with = "user_only")]
    pub(crate) kernel_clock: String,
}

/// What confirms the switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Witness {
    /// The kernel's own accounting of time on CPUs.
    Runtime,
}

impl Default for KernelArgs {
    fn default() -> KernelArgs {
        KernelArgs {
            kernel_event: Vec::new(),
            witness: Vec::new(),
            filter: Vec::new(),
            kernel_buffer: 16384,
            kernel_sub_buffer: None,
            kernel_clock: "x86-tsc".into(),
        }
    }
}

impl KernelArgs {
    /// The options that were given and only tracefs can follow.
    pub(crate) fn given(&self) -> Vec<&'static str> {
        let usual = KernelArgs::default();
        let options = [
            ("--kernel-event", !self.kernel_event.is_empty()),
            ("--witness", !self.witness.is_empty()),
            ("--filter", !self.filter.is_empty()),
            ("--kernel-buffer", self.kernel_buffer != usual.kernel_buffer),
            ("--kernel-sub-buffer", self.kernel_sub_buffer.is_some()),
            ("--kernel-clock", self.kernel_clock != usual.kernel_clock),
        ];
        options.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name).collect()
    }
}

/// The most that a buffer of the kernel may have: 1 TiB.
const MOST_KIB: usize = 1 << 30;

fn kernel_size(text: &str) -> Result<usize, String> {
    let size = text.parse().ok().filter(|kib| (1..=MOST_KIB).contains(kib));
    size.ok_or_else(|| format!("expected a size of 1 to {MOST_KIB} KiB"))
}

fn event_filter(text: &str) -> Result<EventFilter, String> {
    let wrong =
        || "expected SYSTEM:EVENT: CONDITION, as in 'sched:sched_switch: next_prio < 100'".to_string();
    let (system, rest) = text.split_once(':').ok_or_else(wrong)?;
    let (event, condition) = rest.split_once(':').ok_or_else(wrong)?;
    let (event, condition) = (format!("{}:{}", system.trim(), event.trim()), condition.trim().to_string());
    if condition.is_empty() { Err(wrong()) } else { Ok(EventFilter { event, condition }) }
}

fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = text.split_at(text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len()));
    let factor = match unit {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "us" => 1e-6,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => f64::NAN,
    };
    let seconds = number.trim().parse::<f64>().unwrap_or(f64::NAN) * factor;
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|length| !length.is_zero())
        .ok_or_else(|| format!("expected a time such as 10s, 500ms or 2m, found {text:?}"))
}

fn kept_time(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    if time >= SHORTEST_KEPT { Ok(time) } else { Err(format!("expected at least 1s, found {text:?}")) }
}

fn kept_size(text: &str) -> Result<u64, String> {
    let bytes = bytes(text).filter(|bytes| *bytes >= SMALLEST_KEPT);
    bytes.ok_or_else(|| format!("expected a size of at least 32M, such as 500M or 2G, found {text:?}"))
}

fn user_buffer(text: &str) -> Result<u32, String> {
    let kib: u32 = text.parse().map_err(|_| "expected a number of KiB".to_string())?;
    if kib.is_power_of_two() && (128..=4 << 20).contains(&kib) {
        Ok(kib)
    } else {
        Err(format!("expected a power of two from 128 to 4194304, found {kib}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_unit_or_is_in_seconds() {
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("2.5"), Ok(Duration::from_millis(2500)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2 m"), Ok(Duration::from_secs(120)));
        for wrong in ["", "s", "-1s", "0", "1e30s", "1 day", "nan"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_kept_is_not_too_small() {
        assert_eq!((kept_size("32M"), kept_size("33554432")), (Ok(32 << 20), Ok(32 << 20)));
        assert!(kept_size("31M").is_err() && kept_size("1 day").is_err());
        assert_eq!(kept_time("1s"), Ok(Duration::from_secs(1)));
        assert!(kept_time("999ms").is_err());
    }

    #[test]
    fn a_condition_follows_its_event() {
        let filter = event_filter("raw_syscalls:sys_enter: id == 202 || id == 1").unwrap();
        assert_eq!(filter.event, "raw_syscalls:sys_enter");
        assert_eq!(filter.condition, "id == 202 || id == 1");
        assert!(event_filter("sched_switch: prev_prio < 3").is_err());
        assert!(event_filter("sched:sched_switch:").is_err());
    }
}
