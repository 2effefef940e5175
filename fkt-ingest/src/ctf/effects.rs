//! What the events of LTTng's kernel tracer do to the state: by their names and their fields' names.
//!
//! LTTng calls a thread `tid` where the kernel's own format says `pid`, and has no flags that say whether an event was
//! recorded in an interrupt: entries and exits of handlers say it.

use sigmund_model::{Context, Cpu, Effect, Event, EventType, Lwp, Params, TaskState};

/// The place of a parameter.
type At = usize;

/// What an event does, with the places of the numbers it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EffectPlan {
    None,
    Switch { prev: At, state: At, next: At },
    Waking(At),
    Wakeup { tid: At, target: Option<At> },
    Migrate { tid: At, to: At },
    New(At),
    Exit(Option<At>),
    InterruptEnter(At),
    InterruptExit(At),
    SoftirqEnter(At),
    SoftirqExit(At),
}

impl EffectPlan {
    /// Of an event of the kernel; [`EffectPlan::None`] if it does nothing, or lacks a field that says what.
    pub(super) fn of(ty: &EventType) -> EffectPlan {
        EffectPlan::find(ty).unwrap_or(EffectPlan::None)
    }

    fn find(ty: &EventType) -> Option<EffectPlan> {
        let field = |name: &str| ty.field(name);
        Some(match ty.name.as_str() {
            "sched_switch" => EffectPlan::Switch {
                prev: field("prev_tid")?,
                state: field("prev_state")?,
                next: field("next_tid")?,
            },
            "sched_waking" => EffectPlan::Waking(field("tid")?),
            "sched_wakeup" | "sched_wakeup_new" => {
                EffectPlan::Wakeup { tid: field("tid")?, target: field("target_cpu") }
            }
            "sched_migrate_task" => EffectPlan::Migrate { tid: field("tid")?, to: field("dest_cpu")? },
            "sched_process_fork" => EffectPlan::New(field("child_tid")?),
            "sched_process_exit" => EffectPlan::Exit(field("tid")),
            "irq_handler_entry" => EffectPlan::InterruptEnter(field("irq")?),
            "irq_handler_exit" => EffectPlan::InterruptExit(field("irq")?),
            "irq_softirq_entry" | "softirq_entry" => EffectPlan::SoftirqEnter(field("vec")?),
            "irq_softirq_exit" | "softirq_exit" => EffectPlan::SoftirqExit(field("vec")?),
            _ => return None,
        })
    }

    /// Fills effect, context and, where the event itself says it, the LWP.
    #[inline]
    pub(super) fn apply(self, event: &mut Event) {
        event.effect = Effect::None;
        event.context = Context::Task;
        if self != EffectPlan::None {
            self.apply_known(event);
        }
    }

    fn apply_known(self, event: &mut Event) {
        let params = &event.params;
        let effect = match self {
            EffectPlan::None => None,
            EffectPlan::Switch { prev, state, next } => {
                let prev = lwp(params, prev);
                event.lwp = prev.or(event.lwp);
                event.context = if prev == Some(Lwp::IDLE) { Context::Idle } else { Context::Task };
                let prev_state = number(params, state).map(|bits| TaskState::from_number(bits).into());
                lwp(params, next).map(|next| Effect::KernelSwitch { prev, prev_state, next })
            }
            EffectPlan::Waking(tid) => lwp(params, tid).map(Effect::LwpWaking),
            EffectPlan::Wakeup { tid, target } => {
                let cpu = target.and_then(|target| cpu(params, target));
                lwp(params, tid).map(|lwp| Effect::LwpWakeup { lwp, cpu })
            }
            EffectPlan::Migrate { tid, to } => match (lwp(params, tid), cpu(params, to)) {
                (Some(lwp), Some(cpu)) => Some(Effect::LwpMigrate { lwp, cpu }),
                _ => None,
            },
            EffectPlan::New(tid) => lwp(params, tid).map(Effect::LwpNew),
            EffectPlan::Exit(tid) => {
                event.lwp = tid.and_then(|tid| lwp(params, tid)).or(event.lwp);
                Some(Effect::LwpExit)
            }
            EffectPlan::InterruptEnter(irq) => {
                event.context = Context::Irq;
                number(params, irq).map(Effect::InterruptEnter)
            }
            EffectPlan::InterruptExit(irq) => {
                event.context = Context::Irq;
                number(params, irq).map(Effect::InterruptExit)
            }
            EffectPlan::SoftirqEnter(vec) => {
                event.context = Context::Softirq;
                softirq(params, vec).map(Effect::InterruptEnter)
            }
            EffectPlan::SoftirqExit(vec) => {
                event.context = Context::Softirq;
                softirq(params, vec).map(Effect::InterruptExit)
            }
        };
        event.effect = effect.unwrap_or(Effect::None);
    }
}

fn number(params: &Params, at: At) -> Option<i64> {
    params.get(at)?.number
}

fn lwp(params: &Params, at: At) -> Option<Lwp> {
    number(params, at).and_then(|tid| u32::try_from(tid).ok()).map(Lwp)
}

fn cpu(params: &Params, at: At) -> Option<Cpu> {
    number(params, at).and_then(|cpu| u32::try_from(cpu).ok()).map(Cpu)
}

/// Softirqs have numbers below those of interrupts, which are not negative: −1 − vec.
fn softirq(params: &Params, at: At) -> Option<i64> {
    number(params, at).and_then(|vec| (-1i64).checked_sub(vec))
}
