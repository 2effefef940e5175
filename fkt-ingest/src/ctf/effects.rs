//! The effect on the state of an event of LTTng's kernel tracer.
//!
//! LTTng does not mark events that were recorded in an interrupt; entries and exits of handlers show it.

use sigmund_model::{Context, Event, EventType, Lwp, TaskState};

use crate::effect_plan::{self, EffectPlan, interrupt_context};

/// The effect of an event; the event itself determines the LWP and the context.
#[derive(Clone, Copy, Debug)]
pub(super) struct KernelEffect(EffectPlan<usize>);

impl KernelEffect {
    pub(super) const NONE: KernelEffect = KernelEffect(EffectPlan::None);

    /// The effect of an event of the kernel.
    pub(super) fn of(event_type: &EventType) -> KernelEffect {
        KernelEffect(EffectPlan::of(event_type, Some))
    }

    /// Fills effect, context and, if the event has it, the LWP.
    #[inline]
    pub(super) fn apply(self, event: &mut Event) {
        event.effect = sigmund_model::Effect::None;
        event.context = Context::Task;
        if self.0 != EffectPlan::None {
            self.apply_known(event);
        }
    }

    fn apply_known(self, event: &mut Event) {
        let number = |at| event.params.number(at);
        let state = |at| number(at).map(|bits| TaskState::from_number(bits).into());
        event.effect = self.0.effect(number, state);
        let own_lwp = match self.0 {
            EffectPlan::Switch { prev: at, .. } | EffectPlan::Exit(at) => {
                at.and_then(number).and_then(effect_plan::lwp)
            }
            _ => None,
        };
        let leaves_idle = matches!(self.0, EffectPlan::Switch { .. }) && own_lwp == Some(Lwp::IDLE);
        event.context = match self.0.interrupt() {
            Some(kind) => interrupt_context(kind),
            None if leaves_idle => Context::Idle,
            None => Context::Task,
        };
        event.lwp = own_lwp.or(event.lwp);
    }
}
