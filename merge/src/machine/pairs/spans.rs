//! Spans and functions: begins and ends, and how long their owners were active.

use sigmund_model::{
    Event, ThreadState, Ticks,
    vocabulary::{FunctionKey, Meaning, Role},
};

use super::{owner_of, time_on_cpu};
use crate::{
    error::Error,
    input_event_types::InputEventType,
    machine::{Machine, Placed, lwp::Stretch},
    pairing::{Activity, Owner, SpanEvent, SpanKind},
};

impl Machine {
    pub(super) fn pair_span(
        &mut self,
        kind: &InputEventType,
        event: &Event,
        placed: &Placed,
    ) -> Result<(), Error> {
        let (Some(known), Some(owner)) = (kind.known, owner_of(placed)) else { return Ok(()) };
        let code = known.field(Role::Code).and_then(|field| event.params.get(field));
        let (address, text) = code.map_or((None, None), |code| (code.number, code.text));
        let (kind, begins, by_name) = match known.meaning() {
            Meaning::SpanBegin => (SpanKind::Span, true, false),
            Meaning::SpanEnd => (SpanKind::Span, false, false),
            Meaning::FunctionEnter(key) => (SpanKind::Function, true, key == FunctionKey::Name),
            Meaning::FunctionExit(key) => (SpanKind::Function, false, key == FunctionKey::Name),
            _ => return Ok(()),
        };
        let activity = self.activity(owner, event.tick);
        let span = SpanEvent { kind, address, text, by_name };
        let spans = &mut self.intervals.pairing.spans;
        if begins {
            spans.begin(owner, placed.lwp, span, activity, event.tick);
            return Ok(());
        }
        spans.end(owner, span, activity, event.tick)
    }

    /// How long an owner of spans was active until now.
    pub(super) fn activity(&self, owner: Owner, tick: Ticks) -> Option<Activity> {
        match owner {
            Owner::Lwp(lwp) => {
                let entry = self.lwps.get(lwp)?;
                Some(Activity { active: time_on_cpu(entry, tick)?, doubts: entry.doubts })
            }
            Owner::Thread(thread) => {
                let entry = self.threads.get(thread)?;
                if matches!(entry.state, ThreadState::Unknown | ThreadState::Mounted) {
                    return None;
                }
                let stretch = entry.lwp.and_then(|lwp| self.lwps.get(lwp)).map(|lwp| lwp.stretch);
                let now = match stretch {
                    Some(Stretch::Active { thread: active, since, .. }) if active == thread => {
                        tick.0 - since.0
                    }
                    _ => 0,
                };
                Some(Activity { active: entry.active + now, doubts: entry.doubts })
            }
        }
    }
}
