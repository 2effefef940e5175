//! The flags of drawings: answers to look at.

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// What to draw.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct DrawingArgs {
    /// Draw a line for each thread (or LWP) with its states over time.
    #[arg(long, help_heading = "To look at", conflicts_with_all = ["measure", "list_events", "reactivity", "worst"])]
    pub(crate) gantt: bool,
    /// With --latency, --quanta, --functions, --reactivity ...: show the distribution of the lengths, as bars.
    #[arg(long, help_heading = "To look at", conflicts_with_all = ["list_events"])]
    pub(crate) histogram: bool,
    /// With --gantt or --histogram: write a picture (of a histogram, the cumulative distribution) to this file instead; - is standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "To look at")]
    pub(crate) svg: Option<PathBuf>,
}

impl DrawingArgs {
    /// Whether there is anything to draw.
    pub(crate) fn is_asked(&self) -> bool {
        self.gantt || self.histogram || self.svg.is_some()
    }
}
