//! The losses of one stream, as rows: those between two instants that are known, and those whose end is not known yet.

use sigmund_model::{Cpu, Level, Loss, LossKind, Severity};

use super::clock::Scale;

/// Rows that are kept until they are taken; of more, the number.
const MAX_ROWS: usize = 10_000;

#[derive(Debug)]
pub(super) struct Losses {
    level: Level,
    scale: Scale,
    rows: Vec<Loss>,
    /// Rows that were not kept.
    more: u64,
    /// Rows from here on wait for the instant behind their gap.
    open: usize,
}

impl Losses {
    pub(super) fn new(level: Level, scale: Scale) -> Losses {
        Losses { level, scale, rows: Vec::new(), more: 0, open: 0 }
    }

    /// Adds a row whose end is not known.
    pub(super) fn push(
        &mut self,
        kind: LossKind,
        severity: Severity,
        cpu: Option<Cpu>,
        detail: String,
    ) -> &mut Loss {
        if self.rows.len() >= MAX_ROWS {
            self.more += 1;
            self.rows.truncate(MAX_ROWS - 1);
        }
        self.rows.push(Loss { severity, cpu, ..Loss::new(kind, self.level, detail) });
        let last = self.rows.len() - 1;
        &mut self.rows[last]
    }

    /// The span of the row that was added last: it waits for nothing.
    pub(super) fn span(&mut self, from: Option<u64>, to: Option<u64>) {
        let scale = self.scale;
        if let Some(loss) = self.rows.last_mut() {
            loss.from = from.map(|time| scale.tick(time));
            loss.end_at(to.map(|time| scale.tick(time)));
        }
        self.open = self.rows.len();
    }

    /// What is missing so far ends at this time.
    pub(super) fn close_gaps(&mut self, time: u64) {
        let to = Some(self.scale.tick(time));
        for loss in self.rows.iter_mut().skip(self.open) {
            loss.end_at(to);
        }
        self.open = self.rows.len();
    }

    pub(super) fn take(&mut self) -> Vec<Loss> {
        let more = std::mem::take(&mut self.more);
        if more > 0 {
            let detail = format!("{more} more losses, of which no row was kept");
            self.rows.push(Loss::new(LossKind::Damaged, self.level, detail));
        }
        self.open = 0;
        std::mem::take(&mut self.rows)
    }
}
