//! What a merge came to, in numbers.

use sigmund_model::{Hertz, Loss, Ticks};

/// What a merge came to.
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
    /// User events whose CPU both witnesses agree on.
    pub witness_agree: u64,
    /// Those they disagree on.
    pub witness_disagree: u64,
    /// What is missing.
    pub losses: Vec<Loss>,
}

impl Summary {
    /// Whether an input was damaged: what was readable is in the super-trace, and the rest is not.
    pub fn is_damaged(&self) -> bool {
        use sigmund_model::LossKind::{Damaged, Truncated};
        self.losses.iter().any(|loss| matches!(loss.kind, Damaged | Truncated))
    }
}
