//! The arguments of `sigmund check`.

use std::path::PathBuf;

#[cfg(feature = "sql")]
use clap::ValueEnum;
use clap::{Args, ValueHint};

#[cfg(feature = "sql")]
use super::DamageArgs;
use super::FormatArg;

#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 sound, sound with gaps, whole, or valid; 1 broken, not whole, not valid, or no event to check; 2 error."
)]
pub(crate) struct CheckArgs {
    /// The super-trace; not needed if there is just one in this folder. Or an input of `merge` (a run, or a file of any of its formats):
    /// whether all of it can be read. Or a Pajé file of any program, recognised by its `%EventDef`: whether it is valid.
    #[arg(value_name = "T", value_hint = ValueHint::AnyPath)]
    pub(crate) trace: Option<PathBuf>,
    /// Number of gaps to list, and of events whose CPU differs between the probe and sched_switch; of a Pajé file, of faults.
    #[cfg(feature = "sql")]
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) list: usize,
    /// List all of them.
    #[cfg(feature = "sql")]
    #[arg(long, conflicts_with = "list")]
    pub(crate) all: bool,
    /// Show only this part.
    #[cfg(feature = "sql")]
    #[arg(long, value_enum, value_name = "PART")]
    pub(crate) only: Option<CheckPart>,
    /// Output format. As json, all parts are one object; tsv, csv and ndjson have one part, by default the invariants.
    #[arg(long, value_enum, default_value = "human")]
    pub(crate) format: FormatArg,
    #[cfg(feature = "sql")]
    #[command(flatten)]
    pub(crate) damage: DamageArgs,
}

/// A part of the report of `check`.
#[cfg(feature = "sql")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckPart {
    /// The invariants, and whether each holds.
    #[value(alias = "promises")]
    Invariants,
    /// For each LWP, the number of events whose CPU agrees between the probe and sched_switch.
    Witnesses,
    /// Events whose CPU differs between the two.
    Disagreements,
    /// What is missing, by source.
    Losses,
    /// Each gap, and the threads and LWPs that were active across it.
    Gaps,
    /// LWPs whose time on CPUs differs from the kernel's accounting.
    CpuTimes,
    /// How well other clocks fit the main clock.
    Clocks,
}

#[cfg(feature = "sql")]
impl CheckPart {
    /// All parts after the invariants.
    pub(crate) const TABLES: [CheckPart; 6] = [
        CheckPart::Witnesses,
        CheckPart::Disagreements,
        CheckPart::Losses,
        CheckPart::Gaps,
        CheckPart::CpuTimes,
        CheckPart::Clocks,
    ];

    /// As it is written.
    pub(crate) fn name(self) -> &'static str {
        match self {
            CheckPart::Invariants => "invariants",
            CheckPart::Witnesses => "witnesses",
            CheckPart::Disagreements => "disagreements",
            CheckPart::Losses => "losses",
            CheckPart::Gaps => "gaps",
            CheckPart::CpuTimes => "cpu-times",
            CheckPart::Clocks => "clocks",
        }
    }
}
