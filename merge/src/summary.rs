//! The result of a merge, in numbers.

use sigmund_model::{Hertz, Loss, LossKind, Ticks, sum_of_counts};

/// The result of a merge.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Kernel events.
    pub kernel_events: u64,
    /// User events.
    pub user_events: u64,
    /// User threads.
    pub threads: u64,
    /// LWPs that recorded user events or carry user threads.
    pub carriers: u64,
    /// First and last tick.
    pub span: Option<(Ticks, Ticks)>,
    /// Ticks per second, if known.
    pub tick_hz: Option<Hertz>,
    /// User events whose CPU is the same by the probe and by sched_switch.
    pub witness_agree: u64,
    /// User events whose CPU differs between the two.
    pub witness_disagree: u64,
    /// Assumptions that were made because no input contains the fact, one sentence each.
    pub assumed: Vec<String>,
    /// Runs that were finished because their recorder had not finished them, one sentence each.
    pub finished: Vec<String>,
    /// Inputs that were left out because they were already given, one sentence each.
    pub left_out: Vec<String>,
    /// What is missing.
    pub losses: Vec<Loss>,
}

impl Summary {
    /// Number of events for which no buffer had room, as far as they were counted.
    pub fn lost_events(&self) -> u64 {
        let dropped = self.losses.iter().filter(|loss| loss.kind == LossKind::Dropped);
        sum_of_counts(dropped.filter_map(|loss| loss.count))
    }

    /// Whether an input was damaged. Then the super-trace contains only what was readable.
    pub fn is_damaged(&self) -> bool {
        self.losses.iter().any(|loss| matches!(loss.kind, LossKind::Damaged | LossKind::Truncated))
    }
}
