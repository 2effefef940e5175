//! Rows of the table `losses`, as the kernel side writes them.

use sigmund_model::{Cpu, Level, Loss, LossKind, Severity, Ticks};

/// A loss of the kernel side that nobody counted.
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
