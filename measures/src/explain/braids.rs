//! The walks of the median instance and of the slowest one, for a picture of both.

use super::{bands::Bands, category, walked::Walked};
use crate::{Actor, Answer, Column, History, Instance, Instances, Request, Slice, walk_back};

/// The walks of two instances, piece by piece in the order of time: of the longest one of the band 0-50 (the median), and of the
/// slowest of all. No rows if no instance is complete.
///
/// # Errors
/// As the measure `explain`.
pub fn explain_braids(history: &History, request: &Request) -> Result<Answer, String> {
    let mut answer = Answer::new(vec![
        Column::text("instance", "Which instance: `median` or `slowest`."),
        Column::instant("ts_tick", "When it begins."),
        Column::length("dur_tick", "How long it lasts."),
        Column::text("category", "What took the time, as in explain."),
        Column::count("thread", "The user thread that the time was spent by; NULL for an LWP without one."),
        Column::count("lwp", "The LWP that it was on, or is."),
        Column::count("cpu", "The CPU that it was on, or waited for."),
    ]);
    let whole = complete(history, request)?;
    let median = Bands::of(whole.len(), 1).each().next().map_or(0, |(_, band)| band.end);
    for (name, place) in [("median", median.checked_sub(1)), ("slowest", whole.len().checked_sub(1))] {
        let Some(Instance { actor, interval, .. }) = place.map(|place| whole[place]) else { continue };
        for piece in walk_back(history, actor, interval) {
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

/// The instances of which no part is unknown, the shortest first.
fn complete(history: &History, request: &Request) -> Result<Vec<Instance>, String> {
    let Some(mut instances) = Instances::asked(request) else { return Err(super::NONE_ASKED.to_string()) };
    let slice = Slice::whole(request.window);
    loop {
        instances.add(history, slice, request);
        if instances.is_done(history, request) {
            break;
        }
    }
    let mut walked = Walked::new(instances.finish(history, request)?, request, history);
    loop {
        walked.add(history, slice, request.by(history));
        if walked.is_done() {
            return Ok(walked.by_length());
        }
    }
}
