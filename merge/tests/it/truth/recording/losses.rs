//! Records a history, and loses parts of the recording: ranges of a CPU's pages, and of an LWP's packets.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Sides,
    kernel_file::Page,
    untraced::Untraced,
    user_file::Packet,
    world::{Event, History},
};
use crate::truth::chance::Chance;

/// A recording with lost parts.
#[derive(Debug, Default)]
pub(super) struct Recording {
    pub(super) has_kernel: bool,
    pub(super) pages: Vec<Page>,
    pub(super) packets: Vec<Packet>,
    /// Whether each event of the history was recorded and kept.
    pub(super) is_there: Vec<bool>,
    /// User events whose probe saw no CPU, by their place in the history.
    pub(super) cpu_unseen: BTreeSet<usize>,
    pub(super) cpu_gaps: Vec<Gap>,
    pub(super) lwp_gaps: Vec<Gap>,
    /// Switches that the kernel did not trace, by their place in the history.
    pub(super) untraced: BTreeSet<usize>,
}

/// Events that are missing from one stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    /// The CPU, or the LWP.
    pub(super) of: u32,
    pub(super) process: Option<usize>,
    /// The last event before; 0 if there is none.
    pub(super) from: u64,
    /// The first event after it; and whether another CPU has an event of that tick, which may precede it.
    pub(super) to: Option<u64>,
    pub(super) to_is_shared: bool,
}

impl Gap {
    /// Whether it is open just after `tick`.
    pub(super) fn is_open(&self, tick: u64) -> bool {
        self.from <= tick && self.to.is_none_or(|to| tick < to || (tick == to && self.to_is_shared))
    }
}

/// A part of a stream, before it is written.
struct Part {
    /// Places of its events in the history.
    events: Vec<usize>,
    lost: Option<How>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// Never written; counted as lost.
    NoRoom,
    /// Written, but missing; so is its sequence number.
    Missing,
    /// Present, but not readable.
    Damaged,
}

/// Records a history.
pub(super) fn record(chance: &mut Chance, history: &History, sides: Sides, losing: bool) -> Recording {
    record_without(chance, history, sides, losing, Untraced::default())
}

/// Records a history without some switches.
pub(super) fn record_without(
    chance: &mut Chance,
    history: &History,
    sides: Sides,
    losing: bool,
    Untraced { switches, shown_by }: Untraced,
) -> Recording {
    let mut recording = Recording {
        has_kernel: sides != Sides::User,
        is_there: vec![false; history.events.len()],
        untraced: switches,
        ..Recording::default()
    };
    let mut by_cpu: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    let mut by_life: BTreeMap<(usize, u32, usize), Vec<usize>> = BTreeMap::new();
    for (place, event) in history.events.iter().enumerate() {
        match event.process {
            _ if recording.untraced.contains(&place) => {}
            Some(process) if sides != Sides::Kernel => {
                by_life.entry((process, event.lwp, event.life)).or_default().push(place);
            }
            None if sides != Sides::User => by_cpu.entry(event.cpu).or_default().push(place),
            _ => {}
        }
    }
    let rate = if losing { 4 + chance.below(40) } else { 0 };
    for events in by_cpu.into_values() {
        let mut parts = cut(chance, &events, 40);
        lose(chance, &mut parts, rate);
        recording.add_pages(chance, history, &parts);
    }
    for events in by_life.into_values() {
        let mut parts = cut(chance, &events, 14);
        lose(chance, &mut parts, rate);
        recording.add_packets(chance, history, parts, &shown_by);
    }
    // As they were drained: by the time at which they ended.
    recording
        .packets
        .sort_by_key(|packet| (packet.last, packet.lwp, packet.life, packet.is_end, packet.sequence));
    recording
}

fn cut(chance: &mut Chance, mut events: &[usize], largest: u64) -> Vec<Part> {
    let mut parts = Vec::new();
    while !events.is_empty() {
        let (part, rest) = events.split_at(events.len().min(1 + chance.below(largest) as usize));
        parts.push(Part { events: part.to_vec(), lost: None });
        events = rest;
    }
    parts
}

/// Loses ranges of parts, each once in `rate`.
fn lose(chance: &mut Chance, parts: &mut [Part], rate: u64) {
    let mut left = 0;
    let mut how = How::Missing;
    for part in parts {
        if left == 0 && rate > 0 && chance.one_in(rate) {
            left = 1 + chance.below(3);
            how = [How::NoRoom, How::Missing, How::Damaged][chance.below(3) as usize];
        }
        if left > 0 {
            left -= 1;
            part.lost = Some(how);
        }
    }
}

impl Recording {
    fn add_pages(&mut self, chance: &mut Chance, history: &History, parts: &[Part]) {
        let last_there = parts.iter().rposition(|part| part.lost.is_none());
        let mut lost_before: Option<u64> = None;
        for (place, part) in parts.iter().enumerate() {
            let events: Vec<&Event> = part.events.iter().map(|place| &history.events[*place]).collect();
            let mut page = Page::of(&events);
            // Behind the last page that is there, no other could tell.
            let tells = last_there.is_some_and(|last| place < last);
            match part.lost {
                None => {
                    page.lost_before = lost_before.take().map(|count| (!chance.one_in(2)).then_some(count));
                    self.pages.push(page);
                    part.events.iter().for_each(|place| self.is_there[*place] = true);
                }
                Some(How::NoRoom | How::Missing) if tells => {
                    *lost_before.get_or_insert(0) += events.len() as u64;
                }
                Some(_) => {
                    page.damaged = true;
                    self.pages.push(page);
                }
            }
        }
        self.cpu_gaps.extend(gaps(history, parts, |first| (first.cpu, None)));
    }

    /// `see_cpu`: events whose probes see their CPU in any case.
    fn add_packets(
        &mut self,
        chance: &mut Chance,
        history: &History,
        mut parts: Vec<Part>,
        see_cpu: &BTreeSet<usize>,
    ) {
        let last_there = parts.iter().rposition(|part| part.lost.is_none());
        for (place, part) in parts.iter_mut().enumerate() {
            // Only a later packet tells that one is missing.
            if part.lost == Some(How::Missing) && last_there.is_none_or(|last| place > last) {
                part.lost = Some(How::Damaged);
            }
        }
        let (mut sequence, mut lost) = (0, 0);
        let mut template = None;
        for part in &parts {
            let events: Vec<&Event> = part.events.iter().map(|place| &history.events[*place]).collect();
            let cpu_unseen = &mut self.cpu_unseen;
            let mut places = part.events.iter();
            let mut packet = Packet::of(&events, sequence, |_| {
                let place = places.next();
                let unseen = chance.one_in(8) && !place.is_some_and(|place| see_cpu.contains(place));
                cpu_unseen.extend(place.filter(|_| unseen));
                !unseen
            });
            packet.lost = lost;
            template = Some(packet.clone());
            if part.lost == Some(How::NoRoom) {
                lost += events.len() as u64;
                continue;
            }
            sequence += 1;
            match part.lost {
                None => {
                    self.packets.push(packet);
                    part.events.iter().for_each(|place| self.is_there[*place] = true);
                }
                Some(How::Damaged) => {
                    packet.damaged = true;
                    self.packets.push(packet);
                }
                _ => {}
            }
        }
        self.packets.extend(template.map(|last| last.end(lost)));
        self.lwp_gaps.extend(gaps(history, &parts, |first| (first.lwp, first.process)));
    }
}

/// The ranges of lost parts; `of` says of the first event that is missing whose it is.
fn gaps(history: &History, parts: &[Part], of: impl Fn(&Event) -> (u32, Option<usize>)) -> Vec<Gap> {
    let tick = |place: usize| history.events.get(place).map(|event| event.tick);
    let mut gaps: Vec<Gap> = Vec::new();
    let (mut from, mut is_open) = (0, false);
    for part in parts {
        let (first, last) = (part.events[0], part.events[part.events.len() - 1]);
        if part.lost.is_some() && !is_open {
            let (of, process) = of(&history.events[first]);
            gaps.push(Gap { of, process, from, to: None, to_is_shared: false });
        } else if part.lost.is_none()
            && is_open
            && let Some(gap) = gaps.last_mut()
        {
            gap.to = tick(first);
            gap.to_is_shared =
                tick(first) == tick(first + 1) || (first > 0 && tick(first) == tick(first - 1));
        }
        is_open = part.lost.is_some();
        from = if is_open { from } else { history.events[last].tick };
    }
    gaps
}
