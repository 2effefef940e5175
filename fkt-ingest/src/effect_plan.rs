//! The effect of a known event on the state, and the numbers it needs: the same for every format. The meanings of
//! events are in [`sigmund_model::vocabulary`].

use sigmund_model::vocabulary::{InterruptKind, KnownEvent, Meaning, Role};
use sigmund_model::{Context, Cpu, Effect, EventType, Lwp, PrevState};

/// An effect, with the positions of the numbers that it needs: among an event's parameters, or in its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EffectPlan<At> {
    None,
    Switch { prev: Option<At>, state: Option<At>, next: At },
    Waking(At),
    Wakeup { lwp: At, target: Option<At> },
    Migrate { lwp: At, to: At },
    New(At),
    Exit(Option<At>),
    InterruptEnter(InterruptKind, At),
    InterruptExit(InterruptKind, At),
}

impl<At: Copy> EffectPlan<At> {
    /// The plan for this event; `at` gives the position of the number in a field. [`EffectPlan::None`] for an event
    /// whose meaning is not known, that has no effect on the kernel's state, or that lacks a number.
    pub(crate) fn of(event_type: &EventType, at: impl Fn(usize) -> Option<At>) -> EffectPlan<At> {
        let known = KnownEvent::of(event_type);
        known.and_then(|known| EffectPlan::of_known(&known, at)).unwrap_or(EffectPlan::None)
    }

    fn of_known(known: &KnownEvent, at: impl Fn(usize) -> Option<At>) -> Option<EffectPlan<At>> {
        let role = |role| known.field(role).and_then(&at);
        Some(match known.meaning() {
            Meaning::Switch => EffectPlan::Switch {
                prev: role(Role::PrevLwp),
                state: role(Role::PrevState),
                next: role(Role::NextLwp)?,
            },
            Meaning::Waking => EffectPlan::Waking(role(Role::Lwp)?),
            Meaning::Wakeup => EffectPlan::Wakeup { lwp: role(Role::Lwp)?, target: role(Role::TargetCpu) },
            Meaning::Migrate => EffectPlan::Migrate { lwp: role(Role::Lwp)?, to: role(Role::TargetCpu)? },
            Meaning::LwpNew => EffectPlan::New(role(Role::Lwp)?),
            Meaning::LwpExit => EffectPlan::Exit(role(Role::Lwp)),
            Meaning::InterruptEnter(kind) => EffectPlan::InterruptEnter(kind, role(Role::Number)?),
            Meaning::InterruptExit(kind) => EffectPlan::InterruptExit(kind, role(Role::Number)?),
            _ => return None,
        })
    }

    /// The effect of an event with these numbers; [`Effect::None`] if a number is missing.
    #[inline]
    pub(crate) fn effect(
        self,
        number: impl Fn(At) -> Option<i64>,
        state: impl FnOnce(At) -> Option<PrevState>,
    ) -> Effect {
        self.known_effect(number, state).unwrap_or(Effect::None)
    }

    #[inline]
    fn known_effect(
        self,
        number: impl Fn(At) -> Option<i64>,
        state: impl FnOnce(At) -> Option<PrevState>,
    ) -> Option<Effect> {
        let lwp = |at| number(at).and_then(lwp);
        let cpu = |at| number(at).and_then(|cpu| u32::try_from(cpu).ok()).map(Cpu);
        Some(match self {
            EffectPlan::None => Effect::None,
            EffectPlan::Switch { prev, state: at, next } => Effect::KernelSwitch {
                prev: prev.and_then(lwp),
                prev_state: at.and_then(state),
                next: lwp(next)?,
            },
            EffectPlan::Waking(at) => Effect::LwpWaking(lwp(at)?),
            EffectPlan::Wakeup { lwp: at, target } => {
                Effect::LwpWakeup { lwp: lwp(at)?, cpu: target.and_then(cpu) }
            }
            EffectPlan::Migrate { lwp: at, to } => Effect::LwpMigrate { lwp: lwp(at)?, cpu: cpu(to)? },
            EffectPlan::New(at) => Effect::LwpNew(lwp(at)?),
            EffectPlan::Exit(_) => Effect::LwpExit,
            EffectPlan::InterruptEnter(kind, at) => {
                Effect::InterruptEnter(interrupt_number(kind, number(at)?)?)
            }
            EffectPlan::InterruptExit(kind, at) => {
                Effect::InterruptExit(interrupt_number(kind, number(at)?)?)
            }
        })
    }

    /// The kind of interrupt that begins or ends.
    pub(crate) fn interrupt(self) -> Option<InterruptKind> {
        match self {
            EffectPlan::InterruptEnter(kind, _) | EffectPlan::InterruptExit(kind, _) => Some(kind),
            _ => None,
        }
    }
}

pub(crate) fn lwp(number: i64) -> Option<Lwp> {
    u32::try_from(number).ok().map(Lwp)
}

/// The context of a CPU between the entry to this kind of interrupt and its exit.
pub(crate) fn interrupt_context(kind: InterruptKind) -> Context {
    if kind == InterruptKind::Softirq { Context::Softirq } else { Context::Irq }
}

/// A number that is unique among interrupts of all kinds, because the numbers of devices' interrupts, of softirqs and
/// of vectors overlap: −1 − vec is a softirq, 0x1000 + vector a vector.
pub(crate) fn interrupt_number(kind: InterruptKind, number: i64) -> Option<i64> {
    match kind {
        InterruptKind::Irq => Some(number),
        InterruptKind::Softirq => (-1i64).checked_sub(number),
        InterruptKind::Timer | InterruptKind::Ipi | InterruptKind::Vector | InterruptKind::Nmi => {
            number.checked_add(0x1000)
        }
    }
}

#[cfg(test)]
mod tests {
    use sigmund_model::{Field, FieldType, Level, TaskState};

    use super::*;

    fn effect(name: &str, fields: &[&str], numbers: &[i64]) -> Effect {
        let field = |name: &&str| Field { name: name.to_string(), ty: FieldType::I64 };
        let event_type = EventType {
            level: Level::Kern,
            code: None,
            name: name.to_owned(),
            key: 0,
            fields: fields.iter().map(field).collect(),
            format: String::new(),
        };
        let number = |at: usize| numbers.get(at).copied();
        let plan = EffectPlan::of(&event_type, Some);
        plan.effect(number, |at| number(at).map(|bits| TaskState::from_number(bits).into()))
    }

    #[test]
    fn an_event_has_the_effect_of_its_meaning_whatever_its_fields_are_called() {
        let switch = |bits| Effect::KernelSwitch {
            prev: Some(Lwp(7)),
            prev_state: Some(TaskState::from_number(bits).into()),
            next: Lwp(8),
        };
        assert_eq!(
            effect("sched_switch", &["prev_pid", "prev_state", "next_pid"], &[7, 0x80, 8]),
            switch(0x80)
        );
        assert_eq!(effect("sched_switch", &["next_tid", "prev_tid", "prev_state"], &[8, 7, 1]), switch(1));
        assert_eq!(effect("sched_switch", &["prev_comm"], &[7]), Effect::None);
        // LTTng's context `pid` precedes the fields, and is the process of the waker.
        assert_eq!(effect("sched_waking", &["pid", "comm", "tid"], &[3, 0, 9]), Effect::LwpWaking(Lwp(9)));
        assert_eq!(effect("sched_waking", &["pid"], &[-1]), Effect::None);
    }

    #[test]
    fn interrupts_of_different_kinds_have_different_numbers() {
        let enter = |name, field| effect(name, &[field], &[1]);
        assert_eq!(enter("irq_handler_entry", "irq"), Effect::InterruptEnter(1));
        assert_eq!(enter("softirq_entry", "vec"), Effect::InterruptEnter(-2));
        assert_eq!(enter("irq_softirq_exit", "vec"), Effect::InterruptExit(-2));
        assert_eq!(enter("local_timer_entry", "vector"), Effect::InterruptEnter(0x1001));
        assert_eq!(effect("local_timer_exit", &["vector"], &[i64::MAX]), Effect::None);
    }
}
