//! The table `locks`: each row is a request of the history, or a part of one, and none is missing except at gaps.

use std::{collections::BTreeMap, path::Path};

use super::{
    Oracle, merged_number,
    rows::{at, during},
};
use crate::{
    supertrace::Table,
    truth::recording::{
        Told,
        losses::Gap,
        world::{FIRST_LOCK, FUTEX, Interval, LwpIs, Request},
    },
};

#[derive(Debug)]
struct Row {
    since: u64,
    wait: Option<u64>,
    hold: Option<u64>,
    /// thread, lwp, object, kind
    who: String,
    cpu: Option<i64>,
    holder: Option<i64>,
    contended: bool,
    end_reason: String,
}

/// Rows of the table by their owner and request: of user threads, and of system calls of LWPs.
type Rows = BTreeMap<(i64, u64), Row>;

fn read(out: &Path) -> Result<(Rows, Rows), String> {
    let table = Table::read(out, "locks");
    let columns = ["ts_tick", "wait_tick", "hold_tick", "thread", "lwp", "cpu", "holder"];
    let [starts, waits, holds, threads, lwps, cpus, holders] = columns.map(|name| table.numbers(name));
    let who = table.lines(&["thread", "lwp", "object", "kind"]);
    let words = table.lines(&["contended", "end_reason", "holder_lwp", "call_site"]);
    let (mut requests, mut futexes) = (Rows::new(), Rows::new());
    for row in 0..who.len() {
        let since = starts[row].unwrap_or(-1) as u64;
        let [contended, end_reason, "?", "?"] = words[row].split(' ').collect::<Vec<_>>()[..] else {
            return Err(format!("locks: no LWP holds any, and no span has a name: {}", words[row]));
        };
        let found = Row {
            since,
            wait: waits[row].map(|wait| wait as u64),
            hold: holds[row].map(|hold| hold as u64),
            who: who[row].clone(),
            cpu: cpus[row],
            holder: holders[row],
            contended: contended == "true",
            end_reason: end_reason.to_string(),
        };
        let is_futex = found.who.ends_with("futex");
        let owner = if is_futex { lwps[row] } else { threads[row] };
        let rows = if is_futex { &mut futexes } else { &mut requests };
        if let Some(other) = rows.insert((owner.unwrap_or(-1), since), found) {
            return Err(format!("locks: two rows of one owner and start: {other:?}"));
        }
    }
    Ok((requests, futexes))
}

/// The values that the row of a request may have, in ticks.
struct Truth {
    since: u64,
    /// When the wait ended: it took the lock, or was woken the last time before it gave up. `None` if that has not come.
    waited_until: Option<u64>,
    taken: Option<u64>,
    released: Option<u64>,
}

impl Oracle<'_> {
    pub(super) fn check_locks(&self, out: &Path, told: &mut Told) -> Result<(), String> {
        let (mut requests, mut futexes) = read(out)?;
        told.locks += requests.len();
        told.futexes += futexes.len();
        for request in self.history.requests.iter().filter(|_| !self.recording.packets.is_empty()) {
            let thread = merged_number(request.thread) as i64;
            let row = requests.remove(&(thread, request.since));
            let wrong = |row: &Option<Row>, why: String| {
                Err(format!("locks: {request:?}: {row:?}: {why}\n{}", self.neighbourhood(request.since)))
            };
            let checked = match &row {
                Some(row) => self.check_request(row, request, told),
                None if self.may_lack(request) => Ok(()),
                None => Err("no row".into()),
            };
            if let Err(why) = checked {
                return wrong(&row, why);
            }
            // What a thread did after a gap may look like a request of its own.
            let again = request.stretches.iter().skip(1).map(|(since, _)| *since);
            for since in again.chain(request.taken).filter(|since| *since != request.since) {
                let Some(row) = requests.remove(&(thread, since)) else { continue };
                if let Err(why) = self.check_part(&row, request) {
                    return wrong(&Some(row), format!("part of the request: {why}"));
                }
            }
        }
        for call in self.history.syscalls.iter().filter(|call| call.number == FUTEX && call.args[1] == 128) {
            let row = futexes.remove(&(call.lwp.into(), call.start));
            if let Err(why) = self.check_futex(row.as_ref(), call) {
                return Err(format!("locks: {call:?}: {row:?}: {why}\n{}", self.neighbourhood(call.start)));
            }
        }
        match requests.into_values().chain(futexes.into_values()).next() {
            None => Ok(()),
            Some(row) => Err(format!("locks: never was: {row:?}\n{}", self.neighbourhood(row.since))),
        }
    }

    fn truth(&self, request: &Request) -> Truth {
        let within = |tick: &u64| *tick <= self.end;
        let woken = request.stretches.last().and_then(|(_, woken)| *woken);
        let gave_up = woken.filter(|_| request.is_given_up);
        Truth {
            since: request.since,
            waited_until: request.taken.or(gave_up).filter(within),
            taken: request.taken.filter(within),
            released: request.released.filter(within),
        }
    }

    /// Whether a request may be in no row: a gap touches the time from when its thread was mounted before it to its end.
    fn may_lack(&self, request: &Request) -> bool {
        let log = &self.history.threads[&request.thread];
        let from = self.last_mounted(log, request.since.saturating_sub(1));
        self.is_touched(request.thread.0, from, request.since) || request.since > self.end
    }

    fn check_request(&self, row: &Row, request: &Request, told: &mut Told) -> Result<(), String> {
        let truth = self.truth(request);
        self.fits_who(row, request)?;
        self.fits_cpu(row, request.lwp)?;
        let is_contended = !request.stretches.is_empty();
        let is_clean = !self.is_touched(request.thread.0, 0, truth.released.unwrap_or(self.end));
        if row.contended != is_contended && (row.contended || row.wait.is_some()) {
            return Err(format!("contended: {is_contended}"));
        }
        self.fits_holder(row, request, is_clean)?;
        let is_recorded = request.lock >= FIRST_LOCK;
        let stretch = |row: &Row| {
            let first = request.stretches.first();
            first
                .is_some_and(|(since, woken)| woken.is_some() && row.wait == woken.map(|woken| woken - since))
        };
        if is_clean {
            let reason = match (truth.taken, truth.released) {
                (Some(_), Some(_)) => "released",
                (Some(_), None) => "trace-end",
                _ if request.is_given_up => "woken",
                _ => "trace-end",
            };
            // Its unpark may come behind the end of the trace.
            if row.end_reason != reason {
                return Err(format!("it ends by {reason}"));
            }
            told.exact_locks += 1;
        }
        match row.end_reason.as_str() {
            "woken" if is_recorded && is_clean => {
                self.exactly(row, truth.waited_until.map(|t| t - truth.since), None)
            }
            // One stretch of it, if it was not known that holds are recorded.
            "woken" if stretch(row) && row.hold.is_none() => Ok(()),
            // Its owner may have requested it in the gap already.
            "woken" if !is_clean && row.wait.is_none() && row.hold.is_none() => Ok(()),
            "woken" => self.exactly(
                row,
                truth.waited_until.filter(|_| truth.taken.is_none()).map(|t| t - truth.since),
                None,
            ),
            _ => self.check_held(row, &truth, is_clean),
        }
    }

    /// Of a row that begins with its request, how long it waited and held.
    fn check_held(&self, row: &Row, truth: &Truth, is_clean: bool) -> Result<(), String> {
        let wait = truth.taken.map(|taken| taken - truth.since);
        let hold = truth.taken.map(|taken| truth.released.unwrap_or(self.end) - taken);
        match row.end_reason.as_str() {
            "released" | "trace-end" if row.hold.is_some() => {
                let is_released = truth.released.is_some() == (row.end_reason == "released");
                let fits_wait = row.wait == wait || (row.wait.is_none() && !is_clean);
                if is_released && fits_wait && row.hold == hold {
                    Ok(())
                } else {
                    Err(format!("{wait:?} {hold:?}"))
                }
            }
            "unseen" if !is_clean && row.hold.is_none() => {
                let fits = row.wait == wait || row.wait.is_none();
                if fits { Ok(()) } else { Err(format!("{wait:?}")) }
            }
            "lost" if !is_clean && row.hold.is_some() => {
                let fits = (row.wait == wait || row.wait.is_none()) && row.hold <= hold;
                if fits { Ok(()) } else { Err(format!("{wait:?} {hold:?}")) }
            }
            // It was waiting then.
            "lost" | "trace-end" if row.hold.is_none() => {
                let until = truth.waited_until.unwrap_or(self.end);
                let is_at_most = row.wait.is_none_or(|wait| truth.since + wait <= until);
                let lasts = row.end_reason == "lost" || truth.taken.is_none();
                if is_at_most && lasts { Ok(()) } else { Err(format!("it waited until {until}")) }
            }
            _ => Err("another end".into()),
        }
    }

    fn exactly(&self, row: &Row, wait: Option<u64>, hold: Option<u64>) -> Result<(), String> {
        if (row.wait, row.hold) == (wait, hold) { Ok(()) } else { Err(format!("{wait:?} {hold:?}")) }
    }

    /// A row that begins in the middle of a request.
    fn check_part(&self, row: &Row, request: &Request) -> Result<(), String> {
        if self.is_whole() {
            return Err("nothing is missing".into());
        }
        let truth = self.truth(request);
        let hold = truth.taken.map(|taken| truth.released.unwrap_or(self.end) - taken);
        let stretch = request.stretches.iter().find(|(since, _)| *since == row.since);
        let wait_fits = match (row.wait, stretch, row.end_reason.as_str()) {
            (None, ..) => true,
            (Some(wait), Some((since, woken)), "woken") => *woken == Some(since + wait),
            (Some(wait), Some((since, woken)), "lost" | "trace-end") => {
                row.hold.is_none() && since + wait <= woken.unwrap_or(self.end)
            }
            _ => false,
        };
        let contended_fits = row.contended == (stretch.is_some()) || !request.stretches.is_empty();
        let hold_fits = match (row.hold, row.end_reason.as_str()) {
            (None, _) => true,
            (_, "released") => row.hold == hold && truth.released.is_some(),
            (_, "trace-end") => row.hold == hold && truth.released.is_none(),
            (_, "lost") => row.hold <= hold,
            _ => false,
        };
        match wait_fits && contended_fits && hold_fits && row.holder.is_none_or(|_| stretch.is_some()) {
            true => Ok(()),
            false => Err(format!("{hold:?}")),
        }
    }

    fn fits_who(&self, row: &Row, request: &Request) -> Result<(), String> {
        let thread = merged_number(request.thread);
        let who = |kind: u64| {
            let kind = ["mutex", "rwlock-read", "rwlock-write"][kind as usize - 1];
            format!("{thread} {} {} {kind}", request.lwp, request.lock)
        };
        // Where the acquisition is missing, the wait alone says what kind it is.
        let is_wait = row.hold.is_none() && row.who == who(request.requested_kind);
        if is_wait || row.who == who(request.kind) {
            Ok(())
        } else {
            Err(format!("it is of {}", who(request.kind)))
        }
    }

    /// The CPU of the LWP at the request. It is not known only if the place of the LWP is not.
    fn fits_cpu(&self, row: &Row, lwp: u32) -> Result<(), String> {
        let cpu = match at(&self.history.lwps[&lwp], row.since) {
            Some(LwpIs::On(cpu)) => Some(i64::from(cpu)),
            _ => None,
        };
        let fits = row.cpu == cpu || row.cpu.is_none() && !self.knows_place(lwp, row.since);
        if fits { Ok(()) } else { Err(format!("on CPU {cpu:?}")) }
    }

    fn fits_holder(&self, row: &Row, request: &Request, is_clean: bool) -> Result<(), String> {
        let holders: Vec<i64> = request.holders.iter().map(|holder| merged_number(*holder) as i64).collect();
        match row.holder {
            Some(holder) if !holders.contains(&holder) => Err(format!("held by {holders:?}")),
            None if is_clean && !holders.is_empty() => Err(format!("held by {holders:?}")),
            _ => Ok(()),
        }
    }

    /// A futex that a system call waits for: as long as the call, if that slept.
    fn check_futex(&self, row: Option<&Row>, call: &Interval) -> Result<(), String> {
        let until = call.end.or(call.died).filter(|until| *until <= self.end).unwrap_or(self.end);
        let sleeps = |is: Option<LwpIs>| matches!(is, Some(LwpIs::Sleeping | LwpIs::DiskSleep));
        let slept = |until: u64| {
            // It is in the call up to its last switch, at least.
            during(&self.history.lwps[&call.lwp], call.start, until + 1).any(|(_, _, is)| sleeps(is))
        };
        let touches = |gap: &Gap| gap.from <= until && gap.to.is_none_or(|to| to >= call.start);
        let is_touched = self.recording.cpu_gaps.iter().any(touches);
        let Some(row) = row else {
            // One that carries user threads and has none waits for work.
            let is_seen = self.is_seen(call, true) && self.knows_place(call.lwp, call.start);
            let may_be_idle = call.thread.is_none();
            let may_lack = !is_seen || is_touched || may_be_idle && self.may_carry(call.lwp);
            return if slept(until.max(1) - 1) && !may_lack { Err("no row".into()) } else { Ok(()) };
        };
        let end = call.start + row.wait.unwrap_or(u64::MAX - call.start);
        let fits_end = match row.end_reason.as_str() {
            "woken" => call.end == Some(end),
            "exit" => call.end.is_none() && call.died == Some(end),
            "trace-end" => end == self.end && call.end.or(call.died).is_none_or(|until| until >= end),
            "lost" | "unseen" => !self.is_whole() && end <= until,
            _ => false,
        };
        let thread = call.thread.map_or("?".into(), |thread| merged_number(thread).to_string());
        let fits = |thread: &str| row.who == format!("{thread} {} {} futex", call.lwp, call.args[0]);
        let fits_who = fits(&thread) || (fits("?") && !self.knows_mounted(call.lwp, call.start));
        let is_wait = row.contended && row.hold.is_none() && row.holder.is_none();
        self.fits_cpu(row, call.lwp)?;
        match fits_end && fits_who && is_wait && slept(end) {
            true => Ok(()),
            false => Err(format!("thread {thread}, until {until}")),
        }
    }

    /// Whether an LWP may have recorded user events.
    fn may_carry(&self, lwp: u32) -> bool {
        self.history.events.iter().any(|event| event.is_user() && event.lwp == lwp)
    }
}
