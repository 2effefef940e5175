//! The arguments of `sigmund ctl`.

use clap::{Args, Subcommand};

use super::FormatArg;

#[derive(Debug, Args)]
#[command(
    after_help = "Permitted for the user of the process and for root. A program started with FUT_CONTROL=0 does not \
    answer.\n\nExample:\n  sigmund ctl $(pidof myserver) disable 'USER_*'\n\nExit status: 0 found, 1 nothing matched, \
    2 error."
)]
pub(crate) struct CtlArgs {
    /// The process.
    #[arg(value_name = "PID")]
    pub(crate) pid: u32,
    #[command(subcommand)]
    pub(crate) verb: CtlVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CtlVerb {
    /// List its events: on or off, bytes per record, number in the buffers.
    ///
    /// An event of C is `by key` if some of the keys that it may have are on.
    /// `bytes` is the size of a record, the minimum if it has texts. `in_buffers` counts events that are not drained yet,
    /// or are kept by a flight recorder, in a sample: the newest 4 MiB of each LWP.
    List {
        /// Output format.
        #[arg(long, value_enum, default_value = "human")]
        format: FormatArg,
    },
    /// Switch events on by name. Events declared in C are switched only by their keys.
    #[command(after_help = "Example:\n  sigmund ctl 1234 enable 'request*'")]
    Enable {
        /// A name; * matches any characters.
        #[arg(value_name = "PATTERN")]
        pattern: String,
    },
    /// Switch events off by name; a probe that is off is a nop.
    #[command(after_help = "Example:\n  sigmund ctl 1234 disable 'USER_THREAD_*'")]
    Disable {
        /// A name; * matches any characters.
        #[arg(value_name = "PATTERN")]
        pattern: String,
    },
    /// Show which groups of events are on, or switch them: those in MASK on, all others off.
    #[command(after_help = "Example:\n  sigmund ctl 1234 keys scheduler,lwp")]
    Keys {
        /// A number (0x101), or names: scheduler, lwp, sync, locks, spans, program, functions, c (all of C programs), all, default (all but locks), none.
        #[arg(value_name = "MASK", value_parser = key_mask)]
        mask: Option<KeyMask>,
        /// Output format.
        #[arg(long, value_enum, default_value = "human")]
        format: FormatArg,
    },
    /// Show its recording mode, and for each LWP how full its buffer is and how many events were lost.
    ///
    /// `in_use`: packets of 64 KiB with events that are not drained; `percent`: their share of the ring; `packets`, `bytes`:
    /// what the LWP has written so far.
    Status {
        /// Output format. As json, facts and LWPs are one object; tsv and csv have the LWPs only.
        #[arg(long, value_enum, default_value = "human")]
        format: FormatArg,
    },
    /// List its user threads: state, LWP, what each waits for, and the holder of that when the wait began.
    Threads {
        /// Output format.
        #[arg(long, value_enum, default_value = "human")]
        format: FormatArg,
    },
}

/// A key mask as an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyMask(pub(crate) u64);

fn key_mask(text: &str) -> Result<KeyMask, String> {
    use fut::keys;

    let part = |word: &str| match word.strip_prefix("0x") {
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok(),
        _ => match word {
            "scheduler" => Some(keys::SCHEDULER),
            "lwp" => Some(keys::LWP),
            "sync" => Some(keys::SYNC),
            "locks" => Some(keys::LOCKS),
            "spans" => Some(keys::SPANS),
            "program" => Some(keys::PROGRAM),
            "functions" => Some(keys::FUNCTIONS),
            "c" => Some(keys::C_PROGRAM),
            "all" => Some(keys::ALL),
            "default" => Some(keys::DEFAULT),
            "none" => Some(0),
            number => number.parse().ok(),
        },
    };
    text.split(',').try_fold(0, |mask, word| Some(mask | part(word)?)).map(KeyMask).ok_or_else(|| {
        "expected a number as in 0x101, or names of scheduler, lwp, sync, locks, spans, program, functions, c, all, default, none with commas"
            .into()
    })
}
