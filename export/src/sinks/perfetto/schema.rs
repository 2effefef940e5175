//! Numbers of fields and values, from Perfetto's message definitions (`protos/perfetto/trace/perfetto_trace.proto` in
//! the Python package perfetto 0.59.1; v52 supports all of them).

/// `Trace`: the file, and the contents of `compressed_packets`.
pub(super) mod trace {
    pub(crate) const PACKET: u32 = 1;
}

/// `TracePacket` (trace_packet.proto).
pub(super) mod packet {
    pub(crate) const FTRACE_EVENTS: u32 = 1;
    pub(crate) const PROCESS_TREE: u32 = 2;
    pub(crate) const CLOCK_SNAPSHOT: u32 = 6;
    pub(crate) const TIMESTAMP: u32 = 8;
    pub(crate) const TRUSTED_PACKET_SEQUENCE_ID: u32 = 10;
    pub(crate) const TRACK_EVENT: u32 = 11;
    pub(crate) const INTERNED_DATA: u32 = 12;
    pub(crate) const SEQUENCE_FLAGS: u32 = 13;
    pub(crate) const COMPRESSED_PACKETS: u32 = 50;
    pub(crate) const TRACK_DESCRIPTOR: u32 = 60;
    pub(crate) const GENERIC_KERNEL_TASK_STATE_EVENT: u32 = 117;

    pub(crate) const SEQ_INCREMENTAL_STATE_CLEARED: u64 = 1;
    pub(crate) const SEQ_NEEDS_INCREMENTAL_STATE: u64 = 2;
}

/// `ClockSnapshot` and its `Clock` (clock_snapshot.proto).
pub(super) mod clock_snapshot {
    pub(crate) const CLOCKS: u32 = 1;
    pub(crate) const PRIMARY_TRACE_CLOCK: u32 = 2;
    pub(crate) const CLOCK_ID: u32 = 1;
    pub(crate) const TIMESTAMP: u32 = 2;

    pub(crate) const REALTIME: u64 = 1;
    pub(crate) const BOOTTIME: u64 = 6;
}

/// `ProcessTree`, its `Thread` and its `Process` (ps/process_tree.proto).
pub(super) mod process_tree {
    pub(crate) const PROCESSES: u32 = 1;
    pub(crate) const THREADS: u32 = 2;
    pub(crate) const THREAD_TID: u32 = 1;
    pub(crate) const THREAD_NAME: u32 = 2;
    pub(crate) const THREAD_TGID: u32 = 3;
    pub(crate) const PROCESS_PID: u32 = 1;
    pub(crate) const PROCESS_CMDLINE: u32 = 3;
}

/// `TrackDescriptor` (track_event/track_descriptor.proto).
pub(super) mod descriptor {
    pub(crate) const UUID: u32 = 1;
    pub(crate) const NAME: u32 = 2;
    pub(crate) const PROCESS: u32 = 3;
    pub(crate) const THREAD: u32 = 4;
    pub(crate) const PARENT_UUID: u32 = 5;
    pub(crate) const COUNTER: u32 = 8;
    pub(crate) const CHILD_ORDERING: u32 = 11;
    pub(crate) const SIBLING_ORDER_RANK: u32 = 12;
    pub(crate) const SIBLING_MERGE_BEHAVIOR: u32 = 15;

    pub(crate) const ORDERING_EXPLICIT: u64 = 3;
    pub(crate) const SIBLING_MERGE_BEHAVIOR_NONE: u64 = 2;

    /// `ProcessDescriptor` (track_event/process_descriptor.proto).
    pub(crate) const PROCESS_PID: u32 = 1;
    pub(crate) const PROCESS_NAME: u32 = 6;
    /// `ThreadDescriptor` (track_event/thread_descriptor.proto).
    pub(crate) const THREAD_PID: u32 = 1;
    pub(crate) const THREAD_TID: u32 = 2;
    pub(crate) const THREAD_NAME: u32 = 5;
    /// `CounterDescriptor` (track_event/counter_descriptor.proto).
    pub(crate) const COUNTER_UNIT: u32 = 3;
    pub(crate) const UNIT_COUNT: u64 = 2;
}

/// `TrackEvent` (track_event/track_event.proto).
pub(super) mod track_event {
    pub(crate) const CATEGORY_IIDS: u32 = 3;
    pub(crate) const DEBUG_ANNOTATIONS: u32 = 4;
    pub(crate) const TYPE: u32 = 9;
    pub(crate) const NAME_IID: u32 = 10;
    pub(crate) const TRACK_UUID: u32 = 11;
    pub(crate) const COUNTER_VALUE: u32 = 30;
    pub(crate) const FLOW_IDS: u32 = 47;
    pub(crate) const TERMINATING_FLOW_IDS: u32 = 48;

    pub(crate) const SLICE_BEGIN: u64 = 1;
    pub(crate) const SLICE_END: u64 = 2;
    pub(crate) const INSTANT: u64 = 3;
    pub(crate) const COUNTER: u64 = 4;
}

/// `DebugAnnotation` (track_event/debug_annotation.proto).
pub(super) mod annotation {
    pub(crate) const NAME_IID: u32 = 1;
    pub(crate) const BOOL_VALUE: u32 = 2;
    pub(crate) const UINT_VALUE: u32 = 3;
    pub(crate) const INT_VALUE: u32 = 4;
    pub(crate) const DOUBLE_VALUE: u32 = 5;
    pub(crate) const STRING_VALUE: u32 = 6;
    pub(crate) const POINTER_VALUE: u32 = 7;
}

/// `InternedData` (interned_data/interned_data.proto), and its entries, which have the same fields in all tables.
pub(super) mod interned {
    pub(crate) const EVENT_CATEGORIES: u32 = 1;
    pub(crate) const EVENT_NAMES: u32 = 2;
    pub(crate) const DEBUG_ANNOTATION_NAMES: u32 = 3;
    pub(crate) const ENTRY_IID: u32 = 1;
    pub(crate) const ENTRY_NAME: u32 = 2;
}

/// `FtraceEventBundle` and its `CompactSched` (ftrace/ftrace_event_bundle.proto).
pub(super) mod bundle {
    pub(crate) const CPU: u32 = 1;
    pub(crate) const EVENT: u32 = 2;
    pub(crate) const COMPACT_SCHED: u32 = 4;

    pub(crate) const INTERN_TABLE: u32 = 5;
    pub(crate) const SWITCH_TIMESTAMP: u32 = 1;
    pub(crate) const SWITCH_PREV_STATE: u32 = 2;
    pub(crate) const SWITCH_NEXT_PID: u32 = 3;
    pub(crate) const SWITCH_NEXT_PRIO: u32 = 4;
    pub(crate) const SWITCH_NEXT_COMM_INDEX: u32 = 6;
    pub(crate) const WAKING_TIMESTAMP: u32 = 7;
    pub(crate) const WAKING_PID: u32 = 8;
    pub(crate) const WAKING_TARGET_CPU: u32 = 9;
    pub(crate) const WAKING_PRIO: u32 = 10;
    pub(crate) const WAKING_COMM_INDEX: u32 = 11;
    pub(crate) const WAKING_COMMON_FLAGS: u32 = 12;
}

/// `FtraceEvent` (ftrace/ftrace_event.proto) and the events of it that are written here (ftrace/sched.proto).
pub(super) mod ftrace {
    pub(crate) const TIMESTAMP: u32 = 1;
    pub(crate) const PID: u32 = 2;
    pub(crate) const COMMON_FLAGS: u32 = 5;
    pub(crate) const SCHED_SWITCH: u32 = 4;
    pub(crate) const SCHED_WAKING: u32 = 20;
    pub(crate) const SCHED_PROCESS_FREE: u32 = 240;
    pub(crate) const SCHED_MIGRATE_TASK: u32 = 491;

    pub(crate) const SWITCH_PREV_COMM: u32 = 1;
    pub(crate) const SWITCH_PREV_PID: u32 = 2;
    pub(crate) const SWITCH_PREV_PRIO: u32 = 3;
    pub(crate) const SWITCH_PREV_STATE: u32 = 4;
    pub(crate) const SWITCH_NEXT_COMM: u32 = 5;
    pub(crate) const SWITCH_NEXT_PID: u32 = 6;
    pub(crate) const SWITCH_NEXT_PRIO: u32 = 7;

    /// Of `sched_waking`, `sched_migrate_task` and `sched_process_free`.
    pub(crate) const TASK_COMM: u32 = 1;
    pub(crate) const TASK_PID: u32 = 2;
    pub(crate) const TASK_PRIO: u32 = 3;
    pub(crate) const WAKING_TARGET_CPU: u32 = 5;
    pub(crate) const MIGRATE_ORIG_CPU: u32 = 4;
    pub(crate) const MIGRATE_DEST_CPU: u32 = 5;
}

/// `GenericKernelTaskStateEvent` (generic_kernel/generic_task.proto).
pub(super) mod task_state {
    pub(crate) const CPU: u32 = 1;
    pub(crate) const COMM: u32 = 2;
    pub(crate) const TID: u32 = 3;
    pub(crate) const STATE: u32 = 4;
    pub(crate) const PRIO: u32 = 5;

    pub(crate) const RUNNABLE: u64 = 2;
    pub(crate) const INTERRUPTIBLE_SLEEP: u64 = 4;
    pub(crate) const UNINTERRUPTIBLE_SLEEP: u64 = 5;
    pub(crate) const STOPPED: u64 = 6;
}
