"""Reads a Perfetto trace with Perfetto's own message definitions, checks its structure, and prints its sums as JSON.

It depends on the messages only, not on the writer: it checks the requirements that the definitions state for writers.
"""

import json
import sys
import zlib
from collections import Counter, defaultdict

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

EVENT, PACKET, DESCRIPTOR = schema.TrackEvent, schema.TracePacket, schema.TrackDescriptor


def packets(data):
    trace = schema.Trace.FromString(data)
    size = trace.ByteSize()
    trace.DiscardUnknownFields()
    assert trace.ByteSize() == size, "fields that are not in the definitions"
    for packet in trace.packet:
        if packet.HasField("compressed_packets"):
            yield from packets(zlib.decompress(packet.compressed_packets))
        else:
            yield packet


class Sequence:
    """The state of a packet sequence."""

    def __init__(self):
        self.names = None
        self.last = 0

    def take(self, packet):
        if packet.HasField("timestamp"):
            assert packet.timestamp >= self.last, f"time goes back from {self.last} to {packet.timestamp}"
            self.last = packet.timestamp
        if packet.sequence_flags & PACKET.SEQ_INCREMENTAL_STATE_CLEARED:
            self.names = {"event_names": {}, "event_categories": {}, "debug_annotation_names": {}}
        if packet.sequence_flags & PACKET.SEQ_NEEDS_INCREMENTAL_STATE:
            assert self.names is not None, "the state of the sequence has never been cleared"
        for table, entries in packet.interned_data.ListFields():
            for entry in entries:
                assert entry.iid != 0 and entry.iid not in self.names[table.name], "an id that was defined before"
                self.names[table.name][entry.iid] = entry.name


class Reader:
    def __init__(self):
        self.sequences = defaultdict(Sequence)
        self.tracks = {}
        self.open = defaultdict(list)
        self.states = defaultdict(lambda: [0, 0])
        self.slices = Counter()
        self.instants = Counter()
        self.counts = defaultdict(list)
        self.notes = defaultdict(list)
        self.sources, self.sinks = {}, {}
        self.kernel = Counter()
        self.switches = defaultdict(list)
        self.clears = 0

    def read(self, data):
        for packet in packets(data):
            assert packet.trusted_packet_sequence_id != 0
            sequence = self.sequences[packet.trusted_packet_sequence_id]
            sequence.take(packet)
            self.clears += packet.sequence_flags & 1
            what = packet.WhichOneof("data")
            if what == "track_descriptor":
                self.describe(packet.track_descriptor)
            elif what == "track_event":
                self.event(packet, sequence.names)
            elif what == "ftrace_events":
                self.bundle(packet.ftrace_events)
            else:
                assert what in ("clock_snapshot", "process_tree", "generic_kernel_task_state_event"), what
                self.kernel[what] += 1
        assert not any(self.open.values()), "slices are open at the end"
        assert self.sources.keys() == self.sinks.keys(), "flows without an end or a beginning"
        for flow, at in self.sources.items():
            assert at <= self.sinks[flow], "a flow goes back in time"

    def describe(self, track):
        assert track.uuid != 0 and track.uuid not in self.tracks, "a track is described twice"
        path = ()
        if track.HasField("parent_uuid"):
            path = self.tracks[track.parent_uuid]
        if track.HasField("thread"):
            path += (f"LWP {track.thread.tid} of {track.thread.pid}: {track.thread.thread_name}",)
        elif track.HasField("process"):
            path += (f"process {track.process.pid}: {track.process.process_name}",)
        else:
            assert track.HasField("name")
            path += (track.name,)
        self.tracks[track.uuid] = path

    def event(self, packet, names):
        event, at = packet.track_event, packet.timestamp
        assert packet.HasField("timestamp")
        path = " / ".join(self.tracks[event.track_uuid])
        open_slices = self.open[event.track_uuid]
        if event.type == EVENT.TYPE_COUNTER:
            return self.counts[path].append((at, event.counter_value))
        if event.type == EVENT.TYPE_SLICE_END:
            category, name, since = open_slices.pop()
            if category == "state":
                sums = self.states[(path, name)]
                sums[0] += 1
                sums[1] += at - since
            return
        name = names["event_names"][event.name_iid]
        (category,) = (names["event_categories"][iid] for iid in event.category_iids)
        for note in event.debug_annotations:
            self.note(path, name, names["debug_annotation_names"][note.name_iid], note)
        for flow in event.flow_ids:
            assert flow not in self.sources
            self.sources[flow] = at
        for flow in event.terminating_flow_ids:
            assert flow not in self.sinks
            self.sinks[flow] = at
        if event.type == EVENT.TYPE_INSTANT:
            self.instants[category] += 1
            return
        assert event.type == EVENT.TYPE_SLICE_BEGIN
        if category == "state":
            assert not open_slices, "two states at once"
        else:
            self.slices[(path, category, name)] += 1
        open_slices.append((category, name, at))

    def note(self, path, name, key, note):
        value = getattr(note, note.WhichOneof("value"))
        kept = self.notes[(path, name)]
        if len(kept) < 20:
            kept.append([key, value])

    def bundle(self, bundle):
        sched = bundle.compact_sched
        last = 0
        columns = [
            sched.switch_timestamp, sched.switch_prev_state, sched.switch_next_pid,
            sched.switch_next_prio, sched.switch_next_comm_index,
        ]
        assert len({len(column) for column in columns}) == 1
        at = 0
        for event in bundle.event:
            kind = event.WhichOneof("event")
            self.kernel[kind] += 1
            if kind == "sched_switch":
                self.switch(bundle.cpu, event.timestamp, event.sched_switch.prev_state, event.sched_switch.next_pid)
        for delta, state, pid, _, comm in zip(*columns):
            at += delta
            assert sched.intern_table[comm] is not None
            self.switch(bundle.cpu, at, state, pid)
        columns = [
            sched.waking_timestamp, sched.waking_pid, sched.waking_target_cpu,
            sched.waking_prio, sched.waking_comm_index, sched.waking_common_flags,
        ]
        assert len({len(column) for column in columns}) == 1
        assert all(comm < len(sched.intern_table) for comm in sched.waking_comm_index)
        self.kernel["sched_waking"] += len(sched.waking_pid)

    def switch(self, cpu, at, state, pid):
        switches = self.switches[cpu]
        assert not switches or switches[-1][0] <= at, "the switches of a CPU go back in time"
        switches.append((at, state, pid))
        self.kernel["switches"] += 1

    def sums(self):
        return {
            "states": [[path, name, *sums] for (path, name), sums in self.states.items()],
            "slices": [[*key, count] for key, count in self.slices.items()],
            "instants": self.instants,
            "counts": self.counts,
            "notes": [[*key, notes] for key, notes in self.notes.items()],
            "flows": len(self.sources),
            "kernel": self.kernel,
            "switches": {str(cpu): switches[:100] for cpu, switches in self.switches.items()},
            "clears": self.clears,
            "tracks": [" / ".join(path) for path in self.tracks.values()],
        }


if __name__ == "__main__":
    reader = Reader()
    with open(sys.argv[1], "rb") as file:
        reader.read(file.read())
    json.dump(reader.sums(), sys.stdout)
