"""Reads a trace in Chrome's JSON, checks the rules of the "Trace Event Format", and prints its sums as JSON."""

import json
import sys
from collections import Counter, defaultdict
from decimal import Decimal

COMMON = {"ph", "ts", "pid", "cat", "name", "args"}
# The fields of each phase, in addition to the common ones.
PHASES = {
    "M": set(), "B": {"tid"}, "E": {"tid"}, "X": {"tid", "dur"}, "i": {"tid", "s"}, "C": set(),
    "s": {"tid", "id", "bp"}, "f": {"tid", "id", "bp"},
}


def nanos(micros):
    value = Decimal(micros) * 1000
    assert value == int(value) >= 0
    return int(value)


class Reader:
    def __init__(self):
        self.processes, self.rows = {}, {}
        self.open = defaultdict(list)
        self.intervals = defaultdict(list)
        self.states = defaultdict(lambda: [0, 0])
        self.slices, self.phases, self.instants = Counter(), Counter(), Counter()
        self.counts, self.notes = defaultdict(list), []
        self.sources, self.sinks = {}, {}
        self.last = 0

    def read(self, trace):
        assert trace["displayTimeUnit"] == "ns"
        for event in trace["traceEvents"]:
            phase = event["ph"]
            self.phases[phase] += 1
            assert set(event) - COMMON - {"tid"} <= PHASES[phase], event
            assert isinstance(event["pid"], int) and isinstance(event.get("tid", 0), int)
            if phase == "M":
                self.metadata(event)
            else:
                self.event(phase, event, nanos(event["ts"]))
        assert not any(self.open.values()), "slices are open at the end"
        assert self.sources.keys() == self.sinks.keys(), "flows without an end or a beginning"
        assert all(at <= self.sinks[flow] for flow, at in self.sources.items())
        for row, intervals in self.intervals.items():
            for (_, end), (begin, _) in zip(intervals, intervals[1:]):
                assert end <= begin, f"intervals overlap on {row}"

    def metadata(self, event):
        names = {"process_name": self.processes, "thread_name": self.rows}.get(event["name"])
        if names is None:
            assert event["name"] in ("process_sort_index", "thread_sort_index")
            assert isinstance(event["args"]["sort_index"], int)
            return
        key = event["pid"] if names is self.processes else (event["pid"], event["tid"])
        assert key not in names, "named twice"
        names[key] = event["args"]["name"]

    def event(self, phase, event, at):
        # What lasts is written at its end, everything else when it happens.
        written = at + nanos(event["dur"]) if phase == "X" else at
        assert written >= self.last, f"time goes back from {self.last} to {written}"
        self.last = written
        process = self.processes[event["pid"]]
        if phase == "C":
            (value,) = event["args"].values()
            return self.counts[f"{process} / {event['name']}"].append([at, value])
        row = f"{process} / {self.rows[event['pid'], event['tid']]}"
        if phase == "B":
            self.open[row].append(at)
            self.slices[row, event["cat"], event["name"]] += 1
        elif phase == "E":
            self.open[row].pop()
        elif phase == "X":
            assert not self.open[row]
            self.intervals[row].append((at, written))
            if event["cat"] == "state":
                sums = self.states[row, event["name"]]
                sums[0] += 1
                sums[1] += written - at
        elif phase == "i":
            assert event["s"] == "t"
            self.instants[event["cat"]] += 1
            if len(self.notes) < 20:
                self.notes.append([row, event["name"], event["args"]])
        else:
            ends = self.sources if phase == "s" else self.sinks
            assert event["id"] not in ends
            ends[event["id"]] = at

    def sums(self):
        return {
            "states": [[*key, *sums] for key, sums in self.states.items()],
            "slices": [[*key, count] for key, count in self.slices.items()],
            "phases": self.phases,
            "instants": self.instants,
            "counts": self.counts,
            "notes": self.notes,
            "rows": [[pid, tid, name] for (pid, tid), name in self.rows.items()],
        }


if __name__ == "__main__":
    reader = Reader()
    with open(sys.argv[1], encoding="utf-8") as file:
        reader.read(json.load(file, parse_float=Decimal))
    json.dump(reader.sums(), sys.stdout, default=str)
