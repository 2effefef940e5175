//! The event types of a perf.data: tracepoints, perf's own records, and one for each other perf event.

use std::collections::HashMap;

use sigmund_model::{EventType, Field, FieldType, Level};

use super::attr::Attr;
use super::described::Described;
use super::layout::{
    PERF_SAMPLE_ADDR, PERF_SAMPLE_CALLCHAIN, PERF_SAMPLE_IP, PERF_SAMPLE_PERIOD, PERF_SAMPLE_RAW,
};

/// Names of `PERF_TYPE_HARDWARE` (0) and `PERF_TYPE_SOFTWARE` (1), by their number, as perf writes them.
const COUNTERS: [&[&str]; 2] = [
    &[
        "cycles",
        "instructions",
        "cache-references",
        "cache-misses",
        "branches",
        "branch-misses",
        "bus-cycles",
        "stalled-cycles-frontend",
        "stalled-cycles-backend",
        "ref-cycles",
    ],
    &[
        "cpu-clock",
        "task-clock",
        "page-faults",
        "context-switches",
        "cpu-migrations",
        "minor-faults",
        "major-faults",
        "alignment-faults",
        "emulation-faults",
        "dummy",
        "bpf-output",
        "cgroup-switches",
    ],
];

/// Indices of the event types of perf's own records.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordKinds {
    pub(super) comm: u32,
    pub(super) fork: u32,
    pub(super) exit: u32,
    pub(super) mmap: u32,
    /// Those of the switch records; `None` if no attribute requests them.
    pub(super) switch: Option<SwitchKinds>,
}

/// Indices of the event types of context switches.
#[derive(Clone, Copy, Debug)]
pub(super) struct SwitchKinds {
    pub(super) out: u32,
    pub(super) into: u32,
}

/// All event types, and their indices.
#[derive(Debug)]
pub(super) struct PerfTypes {
    pub(super) types: Vec<EventType>,
    /// Whether a tracepoint's type, by its index, ends with a call chain.
    pub(super) chains: Vec<bool>,
    pub(super) kinds: RecordKinds,
    /// By attribute; `None` for tracepoints.
    pub(super) samples: Vec<Option<u32>>,
}

impl PerfTypes {
    /// The types of the tracepoints come first, numbered as in the table of their declarations.
    pub(super) fn new(tracepoints: &[EventType], described: &Described) -> PerfTypes {
        let mut chained: HashMap<u64, bool> = HashMap::new();
        for attr in described.attrs.iter().filter(|attr| attr.is_tracepoint()) {
            *chained.entry(attr.config).or_default() |= attr.has(PERF_SAMPLE_CALLCHAIN);
        }
        let mut types = tracepoints.to_vec();
        let mut chains = Vec::with_capacity(types.len());
        for ty in &mut types {
            let chain = ty.code.is_some_and(|code| chained.get(&u64::from(code)) == Some(&true));
            if chain {
                ty.fields.push(field("callchain", FieldType::Text));
            }
            chains.push(chain);
        }
        let mut push = |ty: EventType| {
            types.push(ty);
            types.len() as u32 - 1
        };
        let mut samples = Vec::with_capacity(described.attrs.len());
        for attr in &described.attrs {
            samples.push((!attr.is_tracepoint()).then(|| push(sample_type(attr))));
        }
        let [comm, fork, exit, mmap] = record_types().map(&mut push);
        let switches = described.attrs.iter().any(Attr::reports_switches);
        let switch = switches.then(|| {
            let [out, into] = switch_types().map(&mut push);
            SwitchKinds { out, into }
        });
        let kinds = RecordKinds { comm, fork, exit, mmap, switch };
        PerfTypes { types, chains, kinds, samples }
    }
}

fn event(name: &str, fields: &[(&str, FieldType)], format: &str) -> EventType {
    EventType {
        level: Level::Kern,
        code: None,
        name: name.to_owned(),
        key: 0,
        fields: fields.iter().map(|(name, ty)| field(name, *ty)).collect(),
        format: format.to_owned(),
    }
}

fn field(name: &str, ty: FieldType) -> Field {
    Field { name: name.to_owned(), ty }
}

fn switch_types() -> [EventType; 2] {
    [
        event(
            "perf_switch_out",
            &[("preempted", FieldType::Bool), ("next_tid", FieldType::U32)],
            "preempted={preempted} next_tid={next_tid}",
        ),
        event("perf_switch_in", &[("prev_tid", FieldType::U32)], "prev_tid={prev_tid}"),
    ]
}

fn record_types() -> [EventType; 4] {
    let family = [
        ("tid", FieldType::U32),
        ("parent_tid", FieldType::U32),
        ("pid", FieldType::U32),
        ("parent_pid", FieldType::U32),
    ];
    let in_words = "tid={tid} parent_tid={parent_tid} pid={pid} parent_pid={parent_pid}";
    [
        event(
            "perf_comm",
            &[
                ("tid", FieldType::U32),
                ("comm", FieldType::Text),
                ("pid", FieldType::U32),
                ("exec", FieldType::Bool),
            ],
            "tid={tid} comm={comm} pid={pid} exec={exec}",
        ),
        event("perf_fork", &family, in_words),
        event("perf_exit", &family, in_words),
        event(
            "perf_mmap",
            &[
                ("tid", FieldType::U32),
                ("pid", FieldType::U32),
                ("addr", FieldType::Pointer),
                ("len", FieldType::U64),
                ("pgoff", FieldType::U64),
                ("prot", FieldType::U32),
                ("flags", FieldType::U32),
                ("filename", FieldType::Text),
            ],
            "",
        ),
    ]
}

/// The fields of a sample, in the order in which they are filled.
fn sample_type(attr: &Attr) -> EventType {
    let mut ty = event(&sample_name(attr), &[("mode", FieldType::Text)], "");
    let optional = [
        (PERF_SAMPLE_IP, "ip", FieldType::Pointer),
        (PERF_SAMPLE_PERIOD, "period", FieldType::U64),
        (PERF_SAMPLE_ADDR, "addr", FieldType::Pointer),
        (PERF_SAMPLE_CALLCHAIN, "callchain", FieldType::Text),
        (PERF_SAMPLE_RAW, "raw", FieldType::Text),
    ];
    let has = optional.iter().filter(|(bit, ..)| attr.has(*bit));
    ty.fields.extend(has.map(|(_, name, ty)| field(name, *ty)));
    ty
}

fn sample_name(attr: &Attr) -> String {
    if !attr.name.is_empty() {
        return attr.name.clone();
    }
    let names = COUNTERS.get(attr.ty as usize).copied().unwrap_or_default();
    match usize::try_from(attr.config).ok().and_then(|config| names.get(config)) {
        Some(name) => (*name).to_owned(),
        None => format!("perf_event_{}_{:x}", attr.ty, attr.config),
    }
}
