//! The plans of a trace: for its packets' headers, and for each stream's events.

use std::collections::{HashMap, HashSet};

use sigmund_model::{Event, EventType, Level, Lwp, Reported};

use super::bits::Bits;
use super::effects::KernelEffect;
use super::metadata::{EventDeclaration, LWP_NAMES, Metadata, Order, Stream};
use super::plan::{
    Budget, Compiler, DiscardValues, EVENT_ID, FieldScope, Op, QuickHeader, Register, State, Stop, run,
};

/// `packet.header` of every stream.
#[derive(Debug, Default)]
pub(super) struct HeaderPlan {
    pub(super) ops: Vec<Op>,
    pub(super) magic: Option<Register>,
    pub(super) stream_id: Option<Register>,
    pub(super) stream_instance_id: Option<Register>,
    pub(super) has_uuid: bool,
}

/// One stream class.
#[derive(Debug)]
pub(super) struct StreamPlan {
    pub(super) id: u64,
    /// `packet.context`, and the registers of its well-known fields.
    pub(super) context: Vec<Op>,
    pub(super) well_known: WellKnown,
    /// Index among the clocks.
    pub(super) clock: Option<usize>,
    header: Vec<Op>,
    quick_header: Option<QuickHeader>,
    events: Vec<EventPlan>,
    ids: Ids,
}

#[derive(Debug, Default)]
pub(super) struct WellKnown {
    pub(super) timestamp_begin: Option<Register>,
    pub(super) timestamp_end: Option<Register>,
    /// Size of the two fields in bits.
    pub(super) timestamp_size: u8,
    pub(super) content_size: Option<Register>,
    pub(super) packet_size: Option<Register>,
    pub(super) packet_seq_num: Option<Register>,
    pub(super) events_discarded: Option<Register>,
    /// Size of the field in bits.
    pub(super) events_discarded_size: u8,
    pub(super) cpu_id: Option<Register>,
}

#[derive(Debug)]
struct EventPlan {
    kind: u32,
    /// Contexts and fields.
    ops: Vec<Op>,
    effect: KernelEffect,
    /// The field with the LWP.
    lwp: Option<Register>,
}

/// The plans of all streams, and the declarations of their events.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) header: HeaderPlan,
    pub(super) streams: Vec<StreamPlan>,
    by_id: HashMap<u64, usize>,
    pub(super) types: Vec<EventType>,
    /// The largest number of registers that a stream needs.
    pub(super) registers: usize,
}

/// The result of reading an event.
pub(super) enum NextEvent {
    Event,
    End,
    Unknown(u64),
    /// It takes no bits, so reading it would never end.
    NoBits(u64),
    Stopped(Stop),
}

impl Table {
    /// # Errors
    /// A description of the faulty declaration, with its name.
    pub(super) fn new(metadata: &Metadata, level: Level) -> Result<Table, String> {
        let mut table = Table::default();
        let Some(trace) = &metadata.trace else { return Ok(table) };
        let mut budget = Budget::default();
        let mut compiler = Compiler::new(trace.order, &metadata.wanted);
        let (header, ty) = (&mut table.header, trace.packet_header.as_ref());
        compiler.scope(FieldScope::PacketHeader, ty, &mut budget, &mut header.ops, &mut Vec::new())?;
        header.magic = compiler.register(FieldScope::PacketHeader, "magic");
        header.stream_id = compiler.register(FieldScope::PacketHeader, "stream_id");
        header.stream_instance_id = compiler.register(FieldScope::PacketHeader, "stream_instance_id");
        header.has_uuid = header.ops.iter().any(|op| matches!(op, Op::Uuid));
        table.registers = compiler.registers();

        // Events without a stream id, or of a trace without streams, belong to stream 0.
        let implicit = [Stream::default()];
        let streams = if metadata.streams.is_empty() { &implicit[..] } else { &metadata.streams };
        let mut events: Vec<&EventDeclaration> = metadata.events.iter().collect();
        events.sort_by_key(|event| event.stream_id.unwrap_or(0));
        let mut seen = HashSet::new();
        for stream in streams.iter().filter(|stream| seen.insert(stream.id)) {
            let from = events.partition_point(|event| event.stream_id.unwrap_or(0) < stream.id);
            let to = events.partition_point(|event| event.stream_id.unwrap_or(0) <= stream.id);
            let stream_compiler = compiler.clone();
            table.add(metadata, level, stream, &events[from..to], stream_compiler, &mut budget)?;
        }
        Ok(table)
    }

    fn add(
        &mut self,
        metadata: &Metadata,
        level: Level,
        stream: &Stream,
        declared: &[&EventDeclaration],
        mut compiler: Compiler<'_>,
        budget: &mut Budget,
    ) -> Result<(), String> {
        let (mut context, mut header) = (Vec::new(), Vec::new());
        let unused = &mut Vec::new();
        let (packet, event) = (stream.packet_context.as_ref(), stream.event_header.as_ref());
        compiler.scope(FieldScope::PacketContext, packet, budget, &mut context, unused)?;
        compiler.scope(FieldScope::EventHeader, event, budget, &mut header, unused)?;
        let mut plan = StreamPlan {
            id: stream.id,
            well_known: WellKnown::of(stream, &compiler),
            clock: super::clock::of_stream(metadata, stream),
            context,
            quick_header: QuickHeader::of(&header),
            header,
            events: Vec::with_capacity(declared.len()),
            ids: Ids::default(),
        };
        let mut ids = Vec::with_capacity(declared.len());
        for event in declared {
            let mut own = compiler.clone();
            let kind = self.types.len() as u32;
            let (ty, event_plan) = event_plan(stream, event, kind, level, &mut own, budget)
                .map_err(|why| format!("event {:?}: {why}", event.name))?;
            ids.push((event.id, plan.events.len() as u32));
            self.types.push(ty);
            plan.events.push(event_plan);
            self.registers = self.registers.max(own.registers());
        }
        self.registers = self.registers.max(compiler.registers());
        plan.ids = Ids::new(ids);
        self.by_id.insert(plan.id, self.streams.len());
        self.streams.push(plan);
        Ok(())
    }

    /// The stream with this id. A packet without an id belongs to the only stream, or to stream 0.
    pub(super) fn stream(&self, id: Option<u64>) -> Option<(usize, &StreamPlan)> {
        match (id, self.streams.as_slice()) {
            (None, [only]) => Some((0, only)),
            (id, streams) => {
                let index = *self.by_id.get(&id.unwrap_or_default())?;
                Some((index, streams.get(index)?))
            }
        }
    }
}

impl WellKnown {
    fn of(stream: &Stream, compiler: &Compiler<'_>) -> WellKnown {
        let register = |name: &str| compiler.register(FieldScope::PacketContext, name);
        let size =
            |name: &str| super::clock::integer(stream.packet_context.as_ref(), name).map_or(64, |i| i.size);
        WellKnown {
            timestamp_begin: register("timestamp_begin"),
            timestamp_end: register("timestamp_end"),
            timestamp_size: size("timestamp_begin"),
            content_size: register("content_size"),
            packet_size: register("packet_size"),
            packet_seq_num: register("packet_seq_num"),
            events_discarded: register("events_discarded"),
            events_discarded_size: size("events_discarded"),
            cpu_id: register("cpu_id"),
        }
    }
}

fn event_plan(
    stream: &Stream,
    event: &EventDeclaration,
    kind: u32,
    level: Level,
    compiler: &mut Compiler<'_>,
    budget: &mut Budget,
) -> Result<(EventType, EventPlan), String> {
    let (mut ops, mut fields) = (Vec::new(), Vec::new());
    let parts = [
        (FieldScope::StreamContext, stream.event_context.as_ref()),
        (FieldScope::EventContext, event.context.as_ref()),
        (FieldScope::Fields, event.fields.as_ref()),
    ];
    let mut context = 0;
    for (scope, ty) in parts {
        if scope == FieldScope::Fields {
            context = fields.len();
        }
        compiler.scope(scope, ty, budget, &mut ops, &mut fields)?;
    }
    let of_lwp = LWP_NAMES.iter().filter(|name| name.contains('v') == (level == Level::User));
    let in_context = |name: &&str| {
        let scopes = [FieldScope::StreamContext, FieldScope::EventContext];
        scopes.into_iter().find_map(|scope| compiler.register(scope, name))
    };
    let lwp = of_lwp.filter_map(in_context).next();
    let own: HashSet<String> = fields[context..].iter().map(|field| field.name.clone()).collect();
    for field in fields[..context].iter_mut().filter(|field| own.contains(&field.name)) {
        field.name.insert_str(0, "context.");
    }
    let name = if event.name.is_empty() { format!("event {}", event.id) } else { event.name.clone() };
    let code = u32::try_from(event.id).ok();
    let ty = EventType { level, code, name, key: 0, fields, format: String::new() };
    let effect = if level == Level::Kern { KernelEffect::of(&ty) } else { KernelEffect::NONE };
    Ok((ty, EventPlan { kind, ops, effect, lwp }))
}

impl StreamPlan {
    /// Reads the next event. Its tick is the time of `state`, its CPU that of the packet.
    #[inline]
    pub(super) fn next(&self, bits: &mut Bits<'_>, state: &mut State, event: &mut Event) -> NextEvent {
        if bits.is_at_end() {
            return NextEvent::End;
        }
        let before = bits.pos();
        let quick = self.quick_header.is_some_and(|header| header.read(bits, state));
        if !quick && let Err(stop) = run(&self.header, bits, state, &mut DiscardValues) {
            return NextEvent::Stopped(stop);
        }
        // 0 if no header has an id.
        let id = state.get(EVENT_ID);
        let Some(plan) = self.ids.find(id).and_then(|index| self.events.get(index as usize)) else {
            return NextEvent::Unknown(id);
        };
        event.params.clear();
        if let Err(stop) = run(&plan.ops, bits, state, &mut event.params) {
            return NextEvent::Stopped(stop);
        }
        if bits.pos() == before {
            return NextEvent::NoBits(id);
        }
        event.kind = plan.kind;
        event.thread = Reported::Nothing;
        event.lwp = plan.lwp.and_then(|tid| u32::try_from(state.get(tid)).ok()).map(Lwp);
        plan.effect.apply(event);
        if event.lwp == Some(Lwp::IDLE) && event.context.is_task() {
            event.context = sigmund_model::Context::Idle;
        }
        NextEvent::Event
    }
}

/// Finds the plan of an event by its id.
#[derive(Debug, Default)]
struct Ids {
    /// Index by id, `u32::MAX` for none; if the ids are dense.
    dense: Vec<u32>,
    /// Sorted by id; if they are not.
    sparse: Vec<(u64, u32)>,
}

impl Ids {
    fn new(mut ids: Vec<(u64, u32)>) -> Ids {
        ids.sort_by_key(|(id, _)| *id);
        let len = ids.last().map_or(0, |(id, _)| id.saturating_add(1));
        if len > ids.len() as u64 * 4 + 64 {
            return Ids { dense: Vec::new(), sparse: ids };
        }
        let mut dense = vec![u32::MAX; len as usize];
        for (id, index) in ids {
            dense[id as usize] = index;
        }
        Ids { dense, sparse: Vec::new() }
    }

    #[inline]
    fn find(&self, id: u64) -> Option<u32> {
        if let Some(index) = usize::try_from(id).ok().and_then(|id| self.dense.get(id)) {
            return Some(*index).filter(|index| *index != u32::MAX);
        }
        let at = self.sparse.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        Some(self.sparse[at].1)
    }
}

/// The name of the byte order, for messages.
pub(super) fn order_name(order: Order) -> &'static str {
    match order {
        Order::Little => "little endian",
        Order::Big => "big endian",
    }
}
