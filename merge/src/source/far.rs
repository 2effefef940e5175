//! Events whose time does not fit into any column, because their counter is damaged. Each of them is left out and
//! counted; all other events are kept.
//!
//! In all tables, a tick is a signed number of 64 bits. So is its time in nanoseconds, if the length of a tick is
//! known; that is 292 years. If two times fit, the length between them fits, too.

use std::{io, path::PathBuf};

use fkt_ingest::TraceStream;
use sigmund_model::{Cpu, Event, EventStream, Hertz, Level, Loss, LossKind, Lwp, Ticks};

use super::{OpenedInput, clock::Nothing};

/// While it is converted to nanoseconds, a time is a floating-point number. Numbers of this size are 1024 apart.
const LAST_NS: u64 = i64::MAX as u64 - (1 << 11);

/// The last tick that fits into all tables and formats.
fn last_tick(tick_hz: Option<Hertz>) -> Ticks {
    let hz = tick_hz.map_or(f64::INFINITY, Hertz::per_second);
    // This saturates: from 1 GHz on, the ticks are the limit.
    let by_time = (LAST_NS as f64 / 1e9 * hz) as u64;
    Ticks(by_time.min(i64::MAX as u64))
}

/// Leaves out later events, from all streams.
pub(crate) fn leave_out_far_events(sources: &mut [OpenedInput], tick_hz: Option<Hertz>) {
    let last = last_tick(tick_hz);
    for source in sources {
        let levels: Vec<Level> = source.types.iter().map(|event_type| event_type.level).collect();
        let level = if levels.contains(&Level::Kern) { Level::Kern } else { Level::User };
        for stream in &mut source.streams {
            let TraceStream { cpu, buffer, events, .. } = stream;
            let events = std::mem::replace(events, Box::new(Nothing));
            let place = match (*cpu, buffer.is_empty()) {
                (Some(cpu), true) => format!("CPU {cpu}: "),
                (Some(cpu), false) => format!("{buffer}: CPU {cpu}: "),
                (None, _) => String::new(),
            };
            stream.events = Box::new(Near {
                events,
                path: source.path.clone(),
                place,
                level,
                cpu: *cpu,
                last,
                read: 0,
                kept: None,
                found: Vec::new(),
            });
        }
    }
}

/// A stream without events that are too far away.
struct Near {
    events: Box<dyn EventStream + Send>,
    path: PathBuf,
    /// Position of the stream in the file, if known.
    place: String,
    level: Level,
    cpu: Option<Cpu>,
    last: Ticks,
    /// Number of events read so far.
    read: u64,
    /// Tick of the last event that was kept.
    kept: Option<Ticks>,
    found: Vec<Loss>,
}

impl EventStream for Near {
    #[inline]
    fn next_into(&mut self, event: &mut Event) -> io::Result<bool> {
        let more = self.events.next_into(event)?;
        self.read += 1;
        if more && event.tick > self.last {
            return self.skip(event);
        }
        if more {
            self.kept = Some(event.tick);
        }
        Ok(more)
    }

    fn take_losses(&mut self) -> Vec<Loss> {
        let mut losses = self.events.take_losses();
        losses.append(&mut self.found);
        losses
    }

    #[inline]
    fn may_have_losses(&self) -> bool {
        !self.found.is_empty() || self.events.may_have_losses()
    }
}

impl Near {
    /// Goes to the next event that is near. The events that are skipped are one loss.
    #[cold]
    fn skip(&mut self, event: &mut Event) -> io::Result<bool> {
        let (first, tick, lwp) = (self.read, event.tick, event.lwp);
        let mut more = true;
        while more && event.tick > self.last {
            more = self.events.next_into(event)?;
            self.read += 1;
        }
        let loss = self.loss(first, tick, lwp);
        self.found.push(loss);
        if more {
            self.kept = Some(event.tick);
        }
        Ok(more)
    }

    fn loss(&self, first: u64, tick: Ticks, lwp: Option<Lwp>) -> Loss {
        let detail = format!(
            "{}: {}event {first}: expected a tick of at most {}, found {}",
            self.path.display(),
            self.place,
            self.last.0,
            tick.0
        );
        let loss = Loss::new(LossKind::Damaged, self.level, detail);
        let lwp = lwp.filter(|_| self.level == Level::User);
        Loss { cpu: self.cpu, lwp, from: self.kept, count: Some(self.read - first), ..loss }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_tick_is_that_of_the_last_nanosecond_or_the_last_number() {
        let of = |hz| last_tick(Hertz::new(hz));
        assert_eq!(last_tick(None), Ticks(i64::MAX as u64));
        assert_eq!(of(2.8e9), Ticks(i64::MAX as u64));
        // 292 years of seconds.
        assert_eq!(of(1.0), Ticks(9_223_372_036));
        for hz in [1.0, 3.0, 1e3, 999_999_937.0, 1e9] {
            let ns = of(hz).0 as f64 * (1e9 / hz);
            assert!(ns < i64::MAX as f64, "{hz}: {ns}");
        }
    }
}
