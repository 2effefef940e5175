//! Interrupts: entries and exits on CPUs.

use sigmund_model::{
    Effect, Event, Ticks,
    vocabulary::{InterruptKind, Meaning, Role},
};

use crate::{
    error::Error,
    input_event_types::InputEventType,
    machine::{Machine, Placed},
    pairing::InterruptEvent,
};

impl Machine {
    pub(super) fn pair_interrupt(
        &mut self,
        kind: &InputEventType,
        event: &Event,
        placed: &Placed,
    ) -> Result<(), Error> {
        let (Some(cpu), tick) = (placed.cpu, event.tick) else { return Ok(()) };
        let of_effect = |number: i64| match number.checked_neg().map(|number| number - 1) {
            // Softirqs have the numbers −1, −2, …
            Some(vec) if number < 0 => {
                InterruptEvent { kind: InterruptKind::Softirq, number: Some(vec), name: None }
            }
            _ => InterruptEvent { kind: InterruptKind::Irq, number: Some(number), name: None },
        };
        let interrupted = (placed.lwp, placed.lwp.and_then(|lwp| self.lwps.get(lwp)?.mounted.thread()));
        let interrupts = &mut self.intervals.pairing.interrupts;
        match (kind.known.map(|known| known.meaning()), event.effect) {
            (Some(Meaning::InterruptEnter(interrupt)), _) => {
                interrupts.enter(cpu, interrupt_event(kind, interrupt, event), interrupted, tick)
            }
            (Some(Meaning::InterruptExit(interrupt)), _) => {
                interrupts.exit(cpu, interrupt_event(kind, interrupt, event), tick)
            }
            (Some(Meaning::NmiHandled), _) => {
                let length =
                    kind.known.and_then(|known| event.params.get(known.field(Role::DurationNs)?)?.number);
                let (Some(hz), Some(length)) = (self.tick_hz, length) else { return Ok(()) };
                let length = (length.max(0) as f64 * hz.per_second() / 1e9) as u64;
                let since = Ticks(tick.0.saturating_sub(length));
                interrupts.ended(
                    cpu,
                    interrupt_event(kind, InterruptKind::Nmi, event),
                    interrupted,
                    (since, tick),
                )
            }
            (_, Effect::InterruptEnter(number)) => {
                interrupts.enter(cpu, of_effect(number), interrupted, tick)
            }
            (_, Effect::InterruptExit(number)) => interrupts.exit(cpu, of_effect(number), tick),
            _ => Ok(()),
        }
    }
}

fn interrupt_event<'e>(
    kind: &'e InputEventType,
    interrupt: InterruptKind,
    event: &'e Event,
) -> InterruptEvent<'e> {
    let param = |role| kind.known.and_then(|known| event.params.get(known.field(role)?));
    let number = param(Role::Number);
    let name = match interrupt {
        InterruptKind::Irq | InterruptKind::Nmi => param(Role::Name).or(number).and_then(|param| param.text),
        InterruptKind::Softirq => number.and_then(|number| number.text),
        InterruptKind::Timer | InterruptKind::Ipi | InterruptKind::Vector => {
            let name = kind.event_type.name.as_str();
            Some(name.strip_suffix("_entry").or_else(|| name.strip_suffix("_exit")).unwrap_or(name))
        }
    };
    InterruptEvent { kind: interrupt, number: number.and_then(|number| number.number), name }
}
