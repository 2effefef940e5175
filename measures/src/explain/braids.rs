//! The walks of the median instance and of the slowest one, for a picture of both.

use super::{EXPLAIN, Explain, Pass, bands::Bands, category, walked::Walked};
use crate::{
    Actor, Answer, Column, History, Instance, Measure, Needs, Piece, Request, Slice, Walking, sliced::Sliced,
};

/// The walks of two instances, piece by piece in the order of time: the longest instance of the band 0-50 (the median),
/// and the slowest instance of all. No rows if no instance is complete.
pub const BRAIDS: Measure = Measure { computed: start, ..EXPLAIN };

fn start(request: &Request) -> Box<dyn Sliced> {
    Box::new(Braids { explain: Explain::new(request), drawn: None })
}

/// First the instances are found and walked as in `explain`. Then the two instances are walked again.
struct Braids {
    explain: Explain,
    drawn: Option<Drawn>,
}

/// The two instances, and the pieces of their walks, the last piece first.
struct Drawn {
    braids: Vec<(&'static str, Instance, Vec<Piece>)>,
    walking: Walking<usize>,
}

impl Drawn {
    fn new(walked: Walked) -> Drawn {
        let whole = walked.by_length();
        let median = Bands::of(whole.len(), 1).each().next().map_or(0, |(_, band)| band.end);
        let both = [("median", median.checked_sub(1)), ("slowest", whole.len().checked_sub(1))];
        let braid = |(name, place): (_, Option<usize>)| Some((name, whole[place?], Vec::new()));
        Drawn { braids: both.into_iter().filter_map(braid).collect(), walking: Walking::default() }
    }

    fn add(&mut self, history: &History, slice: Slice) {
        let ends_here = |place: &usize| {
            let end = self.braids[*place].1.interval.to;
            (slice.is_earliest() || slice.interval.from < end)
                && (slice.is_latest() || end <= slice.interval.to)
        };
        let places: Vec<usize> = (0..self.braids.len()).filter(ends_here).collect();
        let start = |place: &usize| {
            let Instance { actor, interval, .. } = self.braids[*place].1;
            (*place, actor, interval)
        };
        let add = |pieces: &mut Vec<(usize, Piece, bool)>, place: usize, piece: &Piece, goes_on: bool| {
            pieces.push((place, *piece, goes_on));
        };
        let parts = self.walking.add_slice(history, slice, &places, start, Vec::new, add);
        for (place, piece, goes_on) in parts.into_iter().flatten() {
            let pieces = &mut self.braids[place].2;
            match pieces.last_mut().filter(|_| goes_on) {
                Some(last) => last.interval.from = piece.interval.from,
                None => pieces.push(piece),
            }
        }
    }
}

impl Sliced for Braids {
    fn needs(&self) -> Option<Needs> {
        if self.drawn.is_some() { Some(Needs::WALK) } else { self.explain.needs() }
    }

    fn add(&mut self, history: &History, slice: Slice) -> Result<(), String> {
        match &mut self.drawn {
            Some(drawn) => {
                drawn.add(history, slice);
                Ok(())
            }
            None => self.explain.add(history, slice),
        }
    }

    fn is_done(&mut self, history: &History) -> Result<bool, String> {
        if self.drawn.is_some() {
            return Ok(true);
        }
        if !self.explain.is_done(history)? {
            return Ok(false);
        }
        if let Pass::Walking(walked) = std::mem::replace(&mut self.explain.pass, Pass::Finding(None)) {
            self.drawn = Some(Drawn::new(*walked));
        }
        Ok(self.drawn.is_none())
    }

    fn finish(self: Box<Self>, _: &History) -> Result<Answer, String> {
        let mut answer = Answer::new(vec![
            Column::text("instance", "Which instance: `median` or `slowest`."),
            Column::instant("ts_tick", "When it begins."),
            Column::length("dur_tick", "How long it lasts."),
            Column::text("category", "What took the time, as in explain."),
            Column::count(
                "thread",
                "The user thread that the time was spent by; NULL for an LWP without one.",
            ),
            Column::count("lwp", "The LWP itself, or the LWP that the user thread was on."),
            Column::count("cpu", "The CPU that it was on, or waited for."),
        ]);
        for (name, _, pieces) in self.drawn.map(|drawn| drawn.braids).unwrap_or_default() {
            for piece in pieces.into_iter().rev() {
                let thread = if let Actor::Thread(thread) = piece.actor { Some(thread) } else { None };
                answer.push(vec![
                    name.into(),
                    piece.interval.from.into(),
                    piece.interval.ticks().into(),
                    category(&piece).into(),
                    thread.into(),
                    piece.lwp.into(),
                    piece.cpu.into(),
                ]);
            }
        }
        Ok(answer)
    }
}
