//! Reads facts about user threads from the packets of a trace.

use std::{
    collections::{BTreeMap, HashMap},
    io,
};

use sigmund_model::{
    Effect, EventType, LeaveReason, Lwp, Thread, Ticks, Wait,
    vocabulary::{FunctionKey, KnownEvent, Meaning},
};

use super::{Carried, CarriedLwps, CarriedOwner, CarriedSpan, CarriedState, LastPacket};
use crate::trace::{
    LwpPackets, Packet, PacketFlags, PacketHead, Record, UserTrace, user_stream::EventMeaning,
};

/// Maximum number of open spans of an owner. The merge has the same limit.
const DEEPEST: usize = 1 << 16;
/// Codes up to this one are looked up without a hash.
const SMALL_CODES: usize = 1 << 12;

/// The meaning of a record for this module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Nothing,
    Scheduling(EventMeaning),
    Begins(SpanClass),
    Ends(SpanClass),
}

/// The class of a span. An end of one class does not end spans of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SpanClass {
    Span,
    /// Begin and end have the same address.
    Function,
    /// Begin and end have the same name.
    NamedFunction,
}

/// The facts in some packets, by the owner that they are about.
#[derive(Debug, Default)]
pub struct Digest {
    places: HashMap<CarriedOwner, u32>,
    entries: Vec<(CarriedOwner, Changes)>,
    pub(super) lwps: CarriedLwps,
    /// LWPs that have ended, each with the latest time at which it may have ended.
    ended: BTreeMap<Lwp, Ticks>,
    roles: Roles,
}

/// How some packets change the facts about an owner.
#[derive(Debug, Default)]
pub struct Changes {
    facts: Carried,
    spans: Vec<SpanChanges>,
}

impl Changes {
    /// Whether the packets contain the creation of the owner.
    pub fn are_of_new(&self) -> bool {
        self.facts.created.is_some()
    }
}

/// How the packets of one LWP change the open spans of an owner: first the spans `ended` end, then the spans `open` are
/// open.
#[derive(Debug)]
struct SpanChanges {
    first: Ticks,
    lwp: Lwp,
    ended: Vec<(SpanClass, u64)>,
    open: Vec<CarriedSpan>,
}

/// The roles of events by their code, and the names of places by their address.
#[derive(Debug, Default)]
struct Roles {
    small: Vec<Role>,
    others: HashMap<u32, Role>,
    /// The number of the name of each address.
    names: HashMap<u64, u32>,
}

impl Roles {
    fn of(trace: &UserTrace) -> Roles {
        let mut roles = Roles::default();
        for (code, event) in trace.declarations().iter().filter_map(|d| Some((d.event.code?, &d.event))) {
            roles.others.insert(code, Role::of(event));
        }
        let (declared, len) = (crate::trace::DECLARED_BIT, SMALL_CODES as u32);
        roles.small = (0..len)
            .map(|code| roles.others.get(&(declared | code)).copied().unwrap_or(Role::Nothing))
            .collect();
        let mut numbers = HashMap::new();
        for place in trace.places() {
            let next = numbers.len() as u32;
            roles.names.insert(place.address, *numbers.entry(place.name.as_str()).or_insert(next));
        }
        roles
    }

    #[inline]
    fn role(&self, code: u32) -> Role {
        match self.small.get((code ^ crate::trace::DECLARED_BIT) as usize) {
            Some(role) => *role,
            None => self.others.get(&code).copied().unwrap_or(Role::Nothing),
        }
    }

    fn ends(&self, (class, address): (SpanClass, u64), span: &CarriedSpan) -> bool {
        let is_same_name = || {
            let name = |address: u64| self.names.get(&address);
            name(address).is_some() && name(address) == name(span.address)
        };
        self.role(span.code) == Role::Begins(class)
            && (span.address == address || class == SpanClass::NamedFunction && is_same_name())
    }

    /// Ends a span, and those nested in it. Returns whether there was such a span.
    fn end(&self, end: (SpanClass, u64), open: &mut Vec<CarriedSpan>) -> bool {
        let place = open.iter().rposition(|span| self.ends(end, span));
        open.truncate(place.unwrap_or(open.len()));
        place.is_some()
    }
}

impl Role {
    fn of(event: &EventType) -> Role {
        let class = |key| match key {
            FunctionKey::Address => SpanClass::Function,
            FunctionKey::Name => SpanClass::NamedFunction,
        };
        match KnownEvent::of(event).map(|known| known.meaning()) {
            Some(Meaning::SpanBegin) => Role::Begins(SpanClass::Span),
            Some(Meaning::SpanEnd) => Role::Ends(SpanClass::Span),
            Some(Meaning::FunctionEnter(key)) => Role::Begins(class(key)),
            Some(Meaning::FunctionExit(key)) => Role::Ends(class(key)),
            _ => match EventMeaning::of(&event.name) {
                EventMeaning::UserSwitch => Role::Scheduling(EventMeaning::UserSwitch),
                EventMeaning::ThreadNew => Role::Scheduling(EventMeaning::ThreadNew),
                EventMeaning::ThreadReady => Role::Scheduling(EventMeaning::ThreadReady),
                _ => Role::Nothing,
            },
        }
    }
}

impl Digest {
    /// A digest that continues after earlier packets, of which `lwps` is known.
    pub fn after(lwps: CarriedLwps) -> Digest {
        Digest { lwps, ..Digest::default() }
    }

    /// Reads the records before `until` in the packets of the trace.
    ///
    /// # Errors
    /// If the file can no longer be read.
    pub fn take(&mut self, trace: &UserTrace, until: Ticks) -> io::Result<()> {
        self.roles = Roles::of(trace);
        for lwp in trace.lwps() {
            self.take_lwp(lwp, until)?;
        }
        Ok(())
    }

    fn take_lwp(&mut self, packets: &LwpPackets, until: Ticks) -> io::Result<()> {
        let lwp = packets.lwp;
        let begins = |head: &PacketHead| head.sequence == 0 && !head.flags.contains(PacketFlags::CONTINUED);
        let mut lived = u32::from(packets.heads().next().is_none_or(|head| !begins(head)));
        let mut last = None;
        for (index, head) in packets.heads().enumerate() {
            if head.first_tick >= until {
                return Ok(());
            }
            if begins(head) {
                lived += 1;
                if let Some(last) = last {
                    self.ended.insert(lwp, last);
                }
                self.lwps
                    .lwps
                    .insert(lwp, LastPacket { gap: self.lwps.gap_of(lwp), ..LastPacket::default() });
            }
            last = last.max(Some(head.last_tick));
            match packets.packet(index) {
                Some(packet) => match packet? {
                    Ok(packet) => self.take_packet(&packet, begins(head), until),
                    Err(_) => _ = self.note_gap(head, true, begins(head)),
                },
                None => break,
            }
        }
        // The ends have no time, so it is unknown here whether they are before `until`.
        if lived <= packets.ends && until == Ticks(u64::MAX) {
            self.ended.insert(lwp, last.unwrap_or(Ticks(u64::MAX)));
            self.lwps.gap = self.lwps.gap.max(self.lwps.gap_of(lwp));
            self.lwps.lwps.remove(&lwp);
        }
        Ok(())
    }

    /// If records are missing before this packet, or in it because it is damaged, notes the gap. Returns whether
    /// records are missing before it.
    fn note_gap(&mut self, head: &PacketHead, is_damaged: bool, begins: bool) -> bool {
        let is_known = self.lwps.lwps.contains_key(&head.lwp);
        let last = self.lwps.lwps.entry(head.lwp).or_default();
        // The sequence number in the file is not trusted.
        let expected =
            last.sequence.wrapping_add(u64::from(!head.flags.contains(PacketFlags::CONTINUED) && !begins));
        let is_missing = is_known && head.sequence != expected;
        let is_lost = is_known && head.lost > last.lost;
        (last.sequence, last.lost) = (head.sequence, head.lost);
        if is_damaged {
            last.gap = last.gap.max(head.last_tick);
        } else if is_missing || is_lost {
            last.gap = last.gap.max(head.first_tick);
        }
        is_missing || is_lost
    }

    fn take_packet(&mut self, packet: &Packet, begins: bool, until: Ticks) {
        let head = &packet.head;
        let is_after_gap = self.note_gap(head, false, begins);
        let lwp = head.lwp;
        let mut mounted = head.thread;
        if let Some(thread) = mounted {
            // Where switches are not recorded, or were lost, only the packet header shows the mounted thread.
            let facts = &mut self.changes(CarriedOwner::Thread(thread)).facts;
            if is_after_gap || facts.mounted.is_none() && facts.left.is_none() {
                facts.mount(Some((head.first_tick, lwp)));
            }
        }
        for record in packet.records().filter(|record| record.tick < until) {
            match self.roles.role(record.head.code) {
                Role::Nothing => {}
                Role::Scheduling(meaning) => self.schedule(meaning, &record, head, &mut mounted),
                Role::Begins(_) => {
                    let Some(address) = record.word(0) else { continue };
                    let changes = self.span_changes(mounted, lwp, record.tick);
                    if changes.open.len() < DEEPEST {
                        let code = record.head.code;
                        changes.open.push(CarriedSpan { code, address, since: record.tick, lwp });
                    }
                }
                Role::Ends(class) => {
                    let Some(address) = record.word(0) else { continue };
                    let roles = std::mem::take(&mut self.roles);
                    let changes = self.span_changes(mounted, lwp, record.tick);
                    if !roles.end((class, address), &mut changes.open) && changes.ended.len() < DEEPEST {
                        // This span began in an earlier packet. So the spans that are open here are nested in it, and
                        // end, too.
                        changes.open.clear();
                        changes.ended.push((class, address));
                    }
                    self.roles = roles;
                }
            }
        }
    }

    fn schedule(
        &mut self,
        meaning: EventMeaning,
        record: &Record<'_>,
        head: &PacketHead,
        mounted: &mut Option<Thread>,
    ) {
        let tick = record.tick;
        match meaning.effect(head.pid, record) {
            Effect::UserSwitch { next, reason, wait } => {
                let before = std::mem::replace(mounted, next);
                if before == next {
                    return;
                }
                if let Some(before) = before {
                    self.changes(CarriedOwner::Thread(before)).facts.leave(Some((tick, reason, wait)));
                }
                if let Some(next) = next {
                    self.changes(CarriedOwner::Thread(next)).facts.mount(Some((tick, head.lwp)));
                }
            }
            Effect::ThreadNew(thread) => {
                let name = record.text(1).unwrap_or_default();
                let created_by = *mounted;
                let changes = self.changes(CarriedOwner::Thread(thread));
                let name = name.into_owned().into_boxed_str();
                let had_ended = changes.facts.state(&CarriedLwps::default()).is_none();
                changes.facts.join(Carried { name, created: Some(tick), created_by, ..Carried::default() });
                if had_ended {
                    changes.spans.clear();
                }
            }
            Effect::ThreadReady(thread) => {
                let facts = &mut self.changes(CarriedOwner::Thread(thread)).facts;
                facts.ready = facts.ready.max(Some(tick));
            }
            _ => {}
        }
    }

    fn changes(&mut self, owner: CarriedOwner) -> &mut Changes {
        let place = *self.places.entry(owner).or_insert_with(|| {
            self.entries.push((owner, Changes::default()));
            self.entries.len() as u32 - 1
        });
        &mut self.entries[place as usize].1
    }

    fn span_changes(&mut self, mounted: Option<Thread>, lwp: Lwp, tick: Ticks) -> &mut SpanChanges {
        let owner = mounted.map_or(CarriedOwner::Lwp(lwp), CarriedOwner::Thread);
        let spans = &mut self.changes(owner).spans;
        // The changes of a thread that moves between LWPs are put in order later.
        if spans.last().is_none_or(|last| last.lwp != lwp) {
            spans.push(SpanChanges { first: tick, lwp, ended: Vec::new(), open: Vec::new() });
        }
        let last = spans.len() - 1;
        &mut spans[last]
    }

    /// The changes, in the order of their owners.
    pub fn take_changes(&mut self) -> Vec<(CarriedOwner, Changes)> {
        self.places = HashMap::new();
        let mut entries = std::mem::take(&mut self.entries);
        entries.sort_unstable_by_key(|(owner, _)| *owner);
        entries
    }

    /// Whether the packets may have changed an owner that none of their records names. That is so if the LWP of the
    /// owner has ended, or if the owner has open spans, which lost events may have ended.
    pub(super) fn may_change(&self, owner: CarriedOwner, mounted_on: Lwp, has_spans: bool) -> bool {
        let is_of_ended = match owner {
            CarriedOwner::Thread(_) => self.ended.contains_key(&mounted_on),
            CarriedOwner::Lwp(lwp) => self.ended.contains_key(&lwp),
        };
        has_spans || is_of_ended
    }

    /// The state of a user thread that follows from these facts; `None` if it has ended.
    pub fn state(&self, facts: &Carried) -> Option<CarriedState> {
        facts.state(&self.lwps)
    }

    /// The facts about an owner after these changes. `None` if it has ended, or if it is an LWP without open spans.
    pub fn fold(
        &self,
        owner: CarriedOwner,
        before: Option<Carried>,
        changes: Option<Changes>,
    ) -> Option<Carried> {
        let mut after = before.unwrap_or_default();
        if let Some(Changes { facts, mut spans }) = changes {
            after.join(facts);
            spans.sort_by_key(|changes| changes.first);
            for SpanChanges { ended, open, .. } in spans {
                ended.into_iter().for_each(|end| _ = self.roles.end(end, &mut after.spans));
                after.spans.extend(open);
                after.spans.truncate(DEEPEST);
            }
        }
        match owner {
            CarriedOwner::Thread(_) => {
                if let Some((mounted, lwp)) = after.mounted
                    && let Some(ended) = self.ended.get(&lwp).filter(|ended| mounted <= **ended)
                    && after.left.is_none_or(|(left, ..)| left <= mounted)
                {
                    // The LWP ended while it carried this thread.
                    let at = if ended.0 == u64::MAX { mounted } else { *ended };
                    after.leave(Some((Ticks(at.0.saturating_add(1)), LeaveReason::Unknown, Wait::default())));
                }
                after.state(&self.lwps)?;
                let gap = self.lwps.last_gap();
                after.spans.retain(|span| span.since >= gap);
            }
            CarriedOwner::Lwp(lwp) => {
                let gone = self.ended.get(&lwp).copied().unwrap_or_default().max(self.lwps.gap_of(lwp));
                after.spans.retain(|span| span.since >= gone);
                if after.spans.is_empty() {
                    return None;
                }
            }
        }
        Some(after)
    }
}
