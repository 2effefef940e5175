//! Decodes a record into an [`Event`].
//!
//! * A sample of a tracepoint contains the same bytes as ftrace's ring buffer. It becomes the same event with the same
//!   effect as in a trace.dat.
//! * A sample of another perf event is an event of that name: `cpu-clock(mode, ip, period, addr, callchain, raw)`, with
//!   those fields that were requested. A call chain is one text, the innermost address first:
//!   `ffffffff815dd53a;ffffffff81612561;7f12d4ad7`.
//! * A switch record of a whole CPU names the next LWP, so it is a [`KernelSwitch`](Effect::KernelSwitch); one of an
//!   LWP is that LWP's [`LwpLeave`](Effect::LwpLeave). The only recorded state of the LWP that left is preemption;
//!   otherwise it counts as sleeping. If the tracepoint `sched_switch` is recorded as well, it has more information,
//!   and only it has the effect.

use std::fmt::Write;

use sigmund_model::vocabulary::{KnownEvent, Meaning};
use sigmund_model::{Context, Effect, Event, EventType, Lwp, LwpState, Params, Reported, Ticks};

use super::attr::Attr;
use super::described::Described;
use super::fields::{self, Fields};
use super::kinds::{PerfTypes, RecordKinds};
use super::layout::{
    PERF_CONTEXT_MAX, PERF_RECORD_COMM, PERF_RECORD_EXIT, PERF_RECORD_FORK, PERF_RECORD_MISC_CPUMODE_MASK,
    PERF_RECORD_MISC_SWITCH_OUT, PERF_RECORD_MISC_SWITCH_OUT_PREEMPT, PERF_RECORD_MMAP, PERF_RECORD_MMAP2,
    PERF_RECORD_SAMPLE, PERF_RECORD_SWITCH, PERF_RECORD_SWITCH_CPU_WIDE, PERF_SAMPLE_CALLCHAIN,
    PERF_SAMPLE_RAW,
};
use super::record::{Attrs, Record, Stamp};
use crate::cut::ByteOrder;
use crate::format::{EventTable, Machine};

/// `PERF_RECORD_MISC_COMM_EXEC`.
const MISC_COMM_EXEC: u16 = 1 << 13;
/// By the mode in a record's `misc` (`PERF_RECORD_MISC_CPUMODE_MASK`).
const MODES: [&str; 6] = ["unknown", "kernel", "user", "hypervisor", "guest_kernel", "guest_user"];

/// Decodes the records of a file.
#[derive(Debug)]
pub(super) struct RecordDecoder {
    pub(super) attrs: Attrs,
    table: EventTable,
    types: PerfTypes,
    /// Tracepoints that were recorded and have more information than perf's own records of the same events.
    by_tracepoint: ByTracepoint,
    /// Whether switches of whole CPUs are recorded, which include an LWP's last switch.
    pub(super) whole_cpus: bool,
}

#[derive(Clone, Copy, Debug)]
struct ByTracepoint {
    switches: bool,
    forks: bool,
    exits: bool,
}

impl RecordDecoder {
    pub(super) fn new(described: &Described, attrs: Attrs, whole_cpus: bool) -> RecordDecoder {
        let is_x86_64 = described.arch.as_deref().is_none_or(|arch| arch == "x86_64");
        let table = match &described.tracing {
            Some(data) => data.table(is_x86_64),
            None => EventTable::new(&[], Machine { order: ByteOrder::Little, long_size: 8, is_x86_64 }),
        };
        let types = PerfTypes::new(table.types(), described);
        let recorded = |meaning| {
            let known = |ty: &EventType| KnownEvent::of(ty).is_some_and(|known| known.meaning() == meaning);
            table
                .types()
                .iter()
                .any(|ty| known(ty) && ty.code.is_some_and(|id| described.records_tracepoint(id)))
        };
        let switches = recorded(Meaning::Switch);
        let by_tracepoint =
            ByTracepoint { switches, forks: recorded(Meaning::LwpNew), exits: recorded(Meaning::LwpExit) };
        RecordDecoder { attrs, table, types, by_tracepoint, whole_cpus: whole_cpus || switches }
    }

    pub(super) fn event_types(&self) -> &[EventType] {
        &self.types.types
    }

    fn kinds(&self) -> &RecordKinds {
        &self.types.kinds
    }

    /// Whether records of this kind become events.
    #[inline]
    pub(super) fn is_event(&self, ty: u32) -> bool {
        match ty {
            PERF_RECORD_SAMPLE | PERF_RECORD_COMM | PERF_RECORD_FORK | PERF_RECORD_EXIT
            | PERF_RECORD_MMAP | PERF_RECORD_MMAP2 => true,
            PERF_RECORD_SWITCH | PERF_RECORD_SWITCH_CPU_WIDE => self.kinds().switch.is_some(),
            _ => false,
        }
    }

    /// Fills all of `event`.
    #[inline]
    pub(super) fn fill(&self, record: &Record<'_>, stamp: &Stamp, event: &mut Event) {
        event.tick = Ticks(stamp.time);
        event.cpu = stamp.cpu;
        event.thread = Reported::Nothing;
        if record.ty == PERF_RECORD_SAMPLE {
            return self.sample(record, stamp, event);
        }
        event.lwp = stamp.lwp;
        event.context = context(stamp.lwp);
        event.effect = Effect::None;
        event.params.clear();
        match record.ty {
            PERF_RECORD_COMM => self.comm(record, event),
            PERF_RECORD_FORK | PERF_RECORD_EXIT => self.family(record, stamp, event),
            PERF_RECORD_MMAP | PERF_RECORD_MMAP2 => self.mmap(record, event),
            _ => self.switch(record, stamp, event),
        }
    }

    #[inline]
    fn sample(&self, record: &Record<'_>, stamp: &Stamp, event: &mut Event) {
        let Some(attr) = self.attrs.get(stamp) else { return };
        let variable = attr.variable(record.body, record.order);
        if let Some(kind) = self.types.samples.get(usize::from(stamp.attr)).copied().flatten() {
            event.kind = kind;
            event.lwp = stamp.lwp;
            event.context = context(stamp.lwp);
            event.effect = Effect::None;
            event.params.clear();
            self.push_sample(attr, record, event);
            if attr.has(PERF_SAMPLE_CALLCHAIN) {
                push_chain(variable.callchain, record, &mut event.params);
            }
            if attr.has(PERF_SAMPLE_RAW) {
                push_hex(variable.raw, &mut event.params);
            }
            return;
        }
        self.table.fill(variable.raw.unwrap_or_default(), event);
        if self.types.chains.get(event.kind as usize) == Some(&true) {
            push_chain(variable.callchain, record, &mut event.params);
        }
    }

    /// `mode, ip, period, addr`.
    fn push_sample(&self, attr: &Attr, record: &Record<'_>, event: &mut Event) {
        let mode = usize::from(record.misc & PERF_RECORD_MISC_CPUMODE_MASK);
        event.params.push_text(MODES.get(mode).unwrap_or(&MODES[0]));
        let places = &attr.sample;
        for place in [places.ip, places.period, places.addr].into_iter().flatten() {
            push(record.u64_at(usize::from(place)), &mut event.params);
        }
    }

    /// `u32 pid | u32 tid | comm\0`
    fn comm(&self, record: &Record<'_>, event: &mut Event) {
        event.kind = self.kinds().comm;
        push(record.u32_at(4), &mut event.params);
        match record.comm() {
            Some((_, comm)) => event.params.push_text(&comm),
            None => event.params.push_unknown(),
        }
        push(record.u32_at(0), &mut event.params);
        event.params.push_number(i64::from(record.misc & MISC_COMM_EXEC != 0));
    }

    /// FORK and EXIT: `u32 pid | u32 parent's pid | u32 tid | u32 parent's tid | u64 time`
    fn family(&self, record: &Record<'_>, stamp: &Stamp, event: &mut Event) {
        for at in [8, 12, 0, 4] {
            push(record.u32_at(at), &mut event.params);
        }
        let lwp = record.u32_at(8).map(Lwp);
        if record.ty == PERF_RECORD_FORK {
            event.kind = self.kinds().fork;
            event.effect = match lwp {
                Some(lwp) if !self.by_tracepoint.forks => Effect::LwpNew(lwp),
                _ => Effect::None,
            };
            return;
        }
        event.kind = self.kinds().exit;
        event.effect = match lwp {
            Some(lwp) if Some(lwp) != stamp.lwp || self.by_tracepoint.exits => Effect::None,
            Some(_) if self.whole_cpus => Effect::LwpExit,
            // The events of an LWP are removed before it leaves its CPU for the last time, so there is no record of
            // that switch: this record counts as its leave, some microseconds early.
            Some(_) => Effect::LwpLeave { state: LwpState::Exited },
            None => Effect::None,
        };
    }

    /// ```text
    ///   MMAP    u32 pid | u32 tid | u64 addr | u64 len | u64 pgoff | filename\0
    ///   MMAP2   u32 pid | u32 tid | u64 addr | u64 len | u64 pgoff | 24 bytes | u32 prot | u32 flags | filename\0
    /// ```
    fn mmap(&self, record: &Record<'_>, event: &mut Event) {
        event.kind = self.kinds().mmap;
        let mut fields = Fields::new(record.body, record.order);
        let (pid, tid) = (fields.u32(), fields.u32());
        push(tid, &mut event.params);
        push(pid, &mut event.params);
        for _ in ["addr", "len", "pgoff"] {
            push(fields.u64(), &mut event.params);
        }
        let has_protection = record.ty == PERF_RECORD_MMAP2 && fields.bytes(24).is_some();
        for _ in ["prot", "flags"] {
            push(if has_protection { fields.u32() } else { None }, &mut event.params);
        }
        event.params.push_text(&fields::text(fields.rest()));
    }

    /// For a whole CPU: `u32 pid | u32 tid` of the next LWP, or of the previous one.
    fn switch(&self, record: &Record<'_>, stamp: &Stamp, event: &mut Event) {
        let Some(kinds) = self.kinds().switch else { return };
        let whole_cpu = record.ty == PERF_RECORD_SWITCH_CPU_WIDE;
        // An LWP that is being released has no number any more: -1.
        let other = record.u32_at(4).filter(|tid| whole_cpu && *tid <= i32::MAX as u32);
        let elsewhere = self.by_tracepoint.switches;
        if record.misc & PERF_RECORD_MISC_SWITCH_OUT == 0 {
            event.kind = kinds.into;
            event.effect = if elsewhere && whole_cpu { Effect::None } else { Effect::LwpArrive };
            return push(other, &mut event.params);
        }
        let preempted = record.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT != 0;
        let state = if preempted { LwpState::Runnable } else { LwpState::Sleeping };
        event.kind = kinds.out;
        event.effect = match other.map(Lwp) {
            _ if elsewhere => Effect::None,
            Some(next) => Effect::KernelSwitch { prev: stamp.lwp, prev_state: Some(state.into()), next },
            None => Effect::LwpLeave { state },
        };
        event.params.push_number(i64::from(preempted));
        push(other, &mut event.params);
    }
}

fn context(lwp: Option<Lwp>) -> Context {
    if lwp == Some(Lwp::IDLE) { Context::Idle } else { Context::Task }
}

fn push(number: Option<impl Into<u64>>, params: &mut Params) {
    match number {
        Some(number) => params.push_number(number.into() as i64),
        None => params.push_unknown(),
    }
}

/// Addresses in hexadecimal, separated by `;`; the marks between kernel and user parts are left out.
fn push_chain(chain: Option<&[u8]>, record: &Record<'_>, params: &mut Params) {
    let Some(chain) = chain else { return params.push_unknown() };
    let mut text = String::with_capacity(chain.len() / 8 * 17);
    let addresses = chain.as_chunks().0.iter().map(|bytes| record.order.u64(*bytes));
    for address in addresses.filter(|address| *address < PERF_CONTEXT_MAX) {
        let separator = if text.is_empty() { "" } else { ";" };
        // Writing to a String cannot fail.
        let _ = write!(text, "{separator}{address:x}");
    }
    params.push_text(&text);
}

fn push_hex(bytes: Option<&[u8]>, params: &mut Params) {
    let Some(bytes) = bytes else { return params.push_unknown() };
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    params.push_text(&text);
}
