//! Which sources record the kernel's switches at a given time, and of which CPUs. The machine decides what follows from
//! this.
//!
//! A source records from its first switch on; one that misses no switch records from its first event on. It records up
//! to the tick that it states, or else up to the last event of all its streams. A source without switches does not
//! count: for example, a source with only system calls does not show the places of LWPs.

use sigmund_model::{Cpu, Effect, Event, Ticks};

use crate::machine::{Begin, End};

/// What a source states about itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Span {
    /// The name of the source.
    pub(crate) name: String,
    /// Whether the source misses no switch after its first event.
    pub(crate) misses_no_switch: bool,
    /// The last instant at which the source recorded everything, if known.
    pub(crate) stopped: Option<Ticks>,
}

/// A source, according to its events so far.
#[derive(Debug, Default)]
struct Recording {
    span: Span,
    /// The CPUs of its streams; `None` if it has a stream that is not of one CPU.
    cpus: Option<Vec<Cpu>>,
    /// Number of streams that have more events.
    streams: usize,
    /// When the recording began.
    begun: Option<Ticks>,
    has_ended: bool,
}

/// All sources.
#[derive(Debug, Default)]
pub(crate) struct Recordings {
    all: Vec<Recording>,
    /// Ends that are known but not reported yet. If other sources continue, an end is reported before the first event
    /// that is later.
    ends: Vec<(Ticks, usize)>,
    /// The first of these ends; the end of time if there is none.
    pub(crate) next_end: Ticks,
}

impl Recordings {
    /// `streams` contains the source and the CPU of each stream.
    pub(crate) fn new(spans: Vec<Span>, streams: impl Iterator<Item = (usize, Option<Cpu>)>) -> Recordings {
        let recording = |span| Recording { span, cpus: Some(Vec::new()), ..Recording::default() };
        let mut all: Vec<Recording> = spans.into_iter().map(recording).collect();
        for (source, cpu) in streams {
            let Some(recording) = all.get_mut(source) else { continue };
            recording.streams += 1;
            match (cpu, &mut recording.cpus) {
                (Some(cpu), Some(cpus)) if !cpus.contains(&cpu) => cpus.push(cpu),
                (None, _) => recording.cpus = None,
                _ => {}
            }
        }
        Recordings { all, ends: Vec::new(), next_end: Ticks(u64::MAX) }
    }

    /// Whether an event shows that its source records the kernel's switches.
    #[inline]
    pub(crate) fn counts(&self, source: usize, event: &Event) -> bool {
        matches!(event.effect, Effect::KernelSwitch { .. } | Effect::LwpLeave { .. } | Effect::LwpArrive)
            || self.all[source].span.misses_no_switch
    }

    /// A source has an event that counts. If it is the first one, returns the recording that begins.
    #[cold]
    pub(crate) fn begin(&mut self, source: usize, tick: Ticks) -> Option<Begin> {
        let is_alone = !self.all.iter().any(Recording::is_running);
        let recording = &mut self.all[source];
        if recording.begun.is_some() || recording.has_ended {
            return None;
        }
        recording.begun = Some(tick);
        let Span { misses_no_switch, stopped, .. } = recording.span;
        // As in the first recording of all, no LWP is assumed to be on a CPU that this source does not record.
        let cpus = recording.cpus.clone().filter(|_| !is_alone);
        if let Some(stopped) = stopped {
            self.ends_at(stopped.max(tick), source);
        }
        Some(Begin { tick, cpus, misses_no_switch })
    }

    /// A stream has no more events; the last was at `tick`.
    #[cold]
    pub(crate) fn exhausted(&mut self, source: usize, tick: Ticks) {
        let Some(recording) = self.all.get_mut(source) else { return };
        recording.streams = recording.streams.saturating_sub(1);
        if recording.streams == 0 && recording.is_running() && recording.span.stopped.is_none() {
            self.ends_at(tick, source);
        }
    }

    fn ends_at(&mut self, tick: Ticks, source: usize) {
        self.ends.push((tick, source));
        self.ends.sort_unstable();
        self.next_end = self.ends.first().map_or(Ticks(u64::MAX), |(tick, _)| *tick);
    }

    /// The sources that have ended before an event of `source` at this tick. The source that ends last has no such end,
    /// because the trace has nothing after it.
    #[cold]
    pub(crate) fn ends_before(&mut self, source: usize, tick: Ticks) -> Vec<End> {
        let mut ended = Vec::new();
        while let Some((at, of)) = self.ends.first().copied().filter(|(at, _)| *at < tick) {
            self.ends.remove(0);
            let others_go_on = (0..)
                .zip(&self.all)
                .any(|(other, recording)| other != of && (other == source || recording.streams > 0));
            if others_go_on {
                self.all[of].has_ended = true;
                ended.push(self.end(at, of));
            }
        }
        self.next_end = self.ends.first().map_or(Ticks(u64::MAX), |(tick, _)| *tick);
        ended
    }

    fn end(&self, tick: Ticks, source: usize) -> End {
        let Recording { span, cpus, .. } = &self.all[source];
        let running = || self.all.iter().filter(|recording| recording.is_running());
        let covered = running().flat_map(|recording| recording.cpus.iter().flatten().copied()).collect();
        // A source whose streams are not of single CPUs covers all CPUs.
        let is_all_covered = running().any(|recording| recording.cpus.is_none());
        End {
            tick,
            source: span.name.clone(),
            cpus: if is_all_covered { Some(Vec::new()) } else { cpus.clone() },
            covered,
            misses_no_switch: running().any(|recording| recording.span.misses_no_switch),
        }
    }

    /// Whether another source records the switches of a CPU now.
    pub(crate) fn is_covered(&self, cpu: Cpu, but: usize) -> bool {
        let has = |recording: &Recording| recording.cpus.as_ref().is_none_or(|cpus| cpus.contains(&cpu));
        let mut others = (0..).zip(&self.all).filter(|(source, _)| *source != but);
        others.any(|(_, recording)| recording.is_running() && has(recording))
    }
}

impl Recording {
    fn is_running(&self) -> bool {
        self.begun.is_some() && !self.has_ended
    }
}
