"""Reads an archive with OTF2's strict reader, and prints its contents: one item per line, words separated by tabs.
Arguments: the anchor file, and `events` to print each event.

    event     location  time  kind  region or number or values  attributes…     (only with `events`; by location)
    region    number of the location  name  enters  leaves  ticks between them
    metric    number of the location  name  values  last value
    lock      number of the location  acquisitions  releases
    location  number  name  group  type  number of events
    group     name  type  number of members
    clock     ticks per second  offset  length  realtime
    count     events  strings  regions  lowest tick  highest tick
"""
import sys

import otf2
from otf2.definitions import Location
from otf2.events import (
    Enter, Leave, Metric, ThreadAcquireLock, ThreadFork, ThreadJoin, ThreadReleaseLock, ThreadTeamBegin, ThreadTeamEnd,
)


def word(value):
    """One word: no tabs, no newlines."""
    text = value.name if isinstance(value, Location) else str(value)
    return text.encode("unicode_escape").decode("ascii")


def print_line(*words):
    print(*map(word, words), sep="\t")


def details(event):
    if isinstance(event, (Enter, Leave)):
        yield event.region.name
    elif isinstance(event, Metric):
        yield from event.values
    elif isinstance(event, (ThreadAcquireLock, ThreadReleaseLock)):
        yield f"lock {event.lock_id} acquisition {event.acquisition_order}"
    elif isinstance(event, ThreadFork):
        yield event.number_of_requested_threads
    elif isinstance(event, (ThreadTeamBegin, ThreadTeamEnd)):
        yield event.thread_team.name
    elif not isinstance(event, ThreadJoin):
        yield event.sequence_count
    for attribute, value in (event.attributes or {}).items():
        yield f"{attribute.name}={value.name if isinstance(value, Location) else value}"


class Sums:
    def __init__(self):
        self.open, self.regions, self.metrics, self.counts, self.last = {}, {}, {}, {}, {}
        self.locks, self.held, self.acquisitions = {}, set(), {}
        self.forks, self.teams = {}, {}
        self.lowest = self.highest = None

    def add(self, location, event):
        number, time = location._ref, event.time
        assert time >= self.last.get(number, 0), "time goes back"
        self.last[number] = time
        self.counts[number] = self.counts.get(number, 0) + 1
        self.lowest = time if self.lowest is None else min(self.lowest, time)
        self.highest = time if self.highest is None else max(self.highest, time)
        if isinstance(event, Enter):
            self.open.setdefault(number, []).append((event.region, time))
            self.regions.setdefault((number, event.region.name), [0, 0, 0])[0] += 1
        elif isinstance(event, Leave):
            region, since = self.open[number].pop()
            assert region == event.region, "leaves another region than the innermost"
            entry = self.regions[number, region.name]
            entry[1] += 1
            entry[2] += time - since
        elif isinstance(event, ThreadAcquireLock):
            self.locks.setdefault(number, [0, 0])[0] += 1
            hold = (number, event.lock_id, event.acquisition_order)
            assert hold not in self.held, "is taken twice"
            self.held.add(hold)
            assert event.acquisition_order > self.acquisitions.get(event.lock_id, 0), "acquisitions go back"
            self.acquisitions[event.lock_id] = event.acquisition_order
        elif isinstance(event, ThreadReleaseLock):
            self.locks[number][1] += 1
            self.held.remove((number, event.lock_id, event.acquisition_order))
        elif isinstance(event, ThreadFork):
            self.forks.setdefault(number, []).append(len(self.teams.get(number, [])))
        elif isinstance(event, ThreadTeamBegin):
            group = event.thread_team.group
            assert location in group.members, "works in a team that it is not of"
            self.teams.setdefault(number, []).append(event.thread_team._ref)
        elif isinstance(event, ThreadTeamEnd):
            assert self.teams[number].pop() == event.thread_team._ref, "leaves another team than the innermost"
        elif isinstance(event, ThreadJoin):
            assert self.forks[number].pop() == len(self.teams[number]), "joins what it has not forked"
        elif isinstance(event, Metric):
            entry = self.metrics.setdefault((number, event.metric.metric_class.members[0].name), [0, 0])
            entry[0] += 1
            entry[1] = event.values[0]


def main(path, telling):
    sums, told = Sums(), {}
    with otf2.reader.open(path) as trace:
        for location, event in trace.events:
            sums.add(location, event)
            if telling:
                words = (location, event.time, type(event).__name__, *details(event))
                told.setdefault(location._ref, []).append(words)
        assert not any(sums.open.values()), "regions are open at the end"
        assert not sums.held, "locks are held at the end"
        assert not any(sums.forks.values()) and not any(sums.teams.values()), "teams are not joined"
        for number in sorted(told):
            for words in told[number]:
                print_line("event", *words)
        for key, entry in sums.regions.items():
            print_line("region", *key, *entry)
        for key, entry in sums.metrics.items():
            print_line("metric", *key, *entry)
        for number, entry in sums.locks.items():
            print_line("lock", number, *entry)
        definitions = trace.definitions
        for location in definitions.locations:
            number = location._ref
            assert location.number_of_events == sums.counts.get(number, 0), f"events of location {number}"
            kind = str(location.type).split(".")[-1]
            print_line("location", number, location, location.group.name, kind, location.number_of_events)
        for group in definitions.groups:
            print_line("group", group.name, str(group.group_type).split(".")[-1], len(group.members))
        clock = definitions.clock_properties
        print_line("clock", clock.timer_resolution, clock.global_offset, clock.trace_length, clock.realtime_timestamp)
        events, strings = sum(sums.counts.values()), len(definitions.strings)
        print_line("count", events, strings, len(definitions.regions), sums.lowest, sums.highest)


main(sys.argv[1], "events" in sys.argv[2:])
