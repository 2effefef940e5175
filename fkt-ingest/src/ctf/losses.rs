//! The loss rows of one stream: those between two known instants, and those whose end is not known yet.

use sigmund_model::{Cpu, Level, Loss, LossKind, Severity};

use super::clock::ClockScale;
use crate::losses::LossRows;

/// Rows that are kept until they are taken; further losses are only counted.
const MAX_ROWS: usize = 10_000;

#[derive(Debug)]
pub(super) struct Losses {
    level: Level,
    scale: ClockScale,
    rows: LossRows,
    /// Number of losses without a row.
    more: u64,
}

impl Losses {
    pub(super) fn new(level: Level, scale: ClockScale) -> Losses {
        Losses { level, scale, rows: LossRows::default(), more: 0 }
    }

    /// Adds a row whose end is not known yet.
    pub(super) fn push(
        &mut self,
        kind: LossKind,
        severity: Severity,
        cpu: Option<Cpu>,
        detail: String,
    ) -> &mut Loss {
        self.more += u64::from(self.rows.len() >= MAX_ROWS);
        let loss = Loss { severity, cpu, ..Loss::new(kind, self.level, detail) };
        self.rows.push_open_up_to(MAX_ROWS, loss)
    }

    /// Sets the beginning and the end of the last row, which is then no longer open.
    pub(super) fn span(&mut self, from: Option<u64>, to: Option<u64>) {
        let scale = self.scale;
        if let Some(loss) = self.rows.settle_last() {
            loss.from = from.map(|time| scale.tick(time));
            loss.end_at(to.map(|time| scale.tick(time)));
        }
    }

    /// Ends all open gaps at this time.
    pub(super) fn close_gaps(&mut self, time: u64) {
        self.rows.close_gaps(self.scale.tick(time));
    }

    pub(super) fn take(&mut self) -> Vec<Loss> {
        let more = std::mem::take(&mut self.more);
        if more > 0 {
            let detail = format!("{more} more losses without a row of their own");
            self.rows.push(Loss::new(LossKind::Damaged, self.level, detail));
        }
        self.rows.take()
    }
}
