//! Rows of the table `losses` for the kernel side.

use sigmund_model::{Cpu, Level, Loss, LossKind, Severity, Ticks};

/// A loss on the kernel side, without a count.
pub(crate) fn kernel_loss(kind: LossKind, severity: Severity, cpu: Option<Cpu>, detail: String) -> Loss {
    Loss { severity, cpu, ..Loss::new(kind, Level::Kern, detail) }
}

/// Events that the ring buffer did not keep, between two instants.
pub(crate) fn dropped(cpu: Cpu, from: Option<Ticks>, to: Option<Ticks>, count: Option<u64>) -> Loss {
    let detail = match count {
        Some(count) => format!("{count} events lost in the kernel's buffer of cpu {cpu}"),
        None => format!("events lost in the kernel's buffer of cpu {cpu}, not counted"),
    };
    let mut loss = Loss {
        from,
        count,
        advice: "record with a larger kernel buffer, or fewer kernel events",
        ..kernel_loss(LossKind::Dropped, Severity::Gap, Some(cpu), detail)
    };
    loss.end_at(to);
    loss
}

/// The loss rows of one stream. The end of a gap is the next known instant: rows stay open until then.
#[derive(Debug, Default)]
pub(crate) struct LossRows {
    rows: Vec<Loss>,
    /// The index of the first open row.
    open: usize,
}

impl LossRows {
    /// Adds a row that stays open until the instant after its gap.
    pub(crate) fn push_open(&mut self, loss: Loss) {
        self.rows.push(loss);
    }

    /// Like [`push_open`](Self::push_open), but replaces the last row if there are already `most`; returns the row.
    pub(crate) fn push_open_up_to(&mut self, most: usize, loss: Loss) -> &mut Loss {
        self.rows.truncate(most.saturating_sub(1));
        self.rows.push(loss);
        let last = self.rows.len() - 1;
        &mut self.rows[last]
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The last row, which is then no longer open.
    pub(crate) fn settle_last(&mut self) -> Option<&mut Loss> {
        self.open = self.rows.len();
        self.rows.last_mut()
    }

    /// Adds a row whose end is known, or that has none. It also closes the rows before it.
    pub(crate) fn push(&mut self, loss: Loss) {
        self.rows.push(loss);
        self.open = self.rows.len();
    }

    /// Ends all open gaps here.
    pub(crate) fn close_gaps(&mut self, to: Ticks) {
        for loss in self.rows.iter_mut().skip(self.open) {
            loss.end_at(Some(to));
        }
        self.open = self.rows.len();
    }

    /// All rows; those that are still open have no end.
    pub(crate) fn take(&mut self) -> Vec<Loss> {
        self.open = 0;
        std::mem::take(&mut self.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // 3: a gap begins   7: the next instant   8: a row with an end, which closes nothing   9: a gap that nothing closes
    #[test]
    fn a_gap_ends_at_the_next_instant_that_is_known() {
        let at = |from: u64| Loss {
            from: Some(Ticks(from)),
            ..kernel_loss(LossKind::Damaged, Severity::Gap, None, String::new())
        };
        let mut rows = LossRows::default();
        rows.push_open(at(3));
        rows.close_gaps(Ticks(7));
        rows.push(at(8));
        rows.push_open(at(9));
        let spans = |rows: Vec<Loss>| rows.iter().map(|row| (row.from, row.to)).collect::<Vec<_>>();
        let expected = [(3, Some(7)), (8, None), (9, None)];
        assert_eq!(spans(rows.take()), expected.map(|(from, to)| (Some(Ticks(from)), to.map(Ticks))));
        rows.close_gaps(Ticks(10));
        assert_eq!(rows.take(), []);
    }
}
