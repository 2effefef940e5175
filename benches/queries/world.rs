//! A recording that is drawn by rule, so that what a super-trace of it says is known.
//!
//! Each of four CPUs has an LWP that carries user threads, and another that preempts it. Time goes in rounds of
//! [`ROUND`] ticks: in each, the LWP of each CPU carries one user thread, which works, and reads. In every second round the LWP
//! is preempted for [`STEP`] ticks. [`LIVING`] user threads of a CPU take turns until each has had its number of rounds; they
//! exit, and the next ones begin.

use std::io::{self, Write};

const CPUS: u64 = 4;
const LIVING: u64 = 16;
/// Ticks of 1 ns.
const ROUND: u64 = 4000;
const STEP: u64 = 500;
/// User switch, work, enter, exit; in every second round the LWP is preempted, and comes back.
const EVENTS_OF_TWO_ROUNDS: u64 = 10;

const CARRIER: u64 = 100;
const OTHER: u64 = 90;

/// The size of a recording.
#[derive(Clone, Copy, Debug)]
pub(crate) struct World {
    rounds: u64,
    /// Of each user thread.
    turns: u64,
}

/// What is known of a super-trace.
#[derive(Debug)]
pub(crate) struct Truth {
    pub(crate) events: u64,
    pub(crate) threads: u64,
    /// Events of a name, by name.
    pub(crate) names: [(&'static str, u64); 5],
}

impl World {
    /// At least that many events and user threads, as long as there are enough events for the threads.
    pub(crate) fn of(events: u64, threads: u64) -> World {
        let rounds = (2 * events).div_ceil(CPUS * EVENTS_OF_TWO_ROUNDS).max(LIVING);
        let generations = threads.div_ceil(CPUS * LIVING).clamp(1, rounds / LIVING);
        let turns = rounds / LIVING / generations;
        let of_all = LIVING * turns;
        World { rounds: rounds.div_ceil(of_all) * of_all, turns }
    }

    pub(crate) fn truth(self) -> Truth {
        let turns = CPUS * self.rounds;
        let names = [
            ("USER_CONTEXT_SWITCH", turns + CPUS),
            ("WORK", turns),
            ("sched_switch", turns + CPUS),
            ("sys_enter", turns),
            ("sys_exit", turns),
        ];
        let events = names.iter().map(|(_, times)| times).sum();
        Truth { events, threads: turns / self.turns, names }
    }

    /// For how many ticks a user thread was active.
    pub(crate) fn active(self, thread: u64) -> u64 {
        let place = (thread - 1) / CPUS % LIVING;
        let preempted = if place % 2 == 1 { STEP } else { 0 };
        self.turns * (ROUND - preempted)
    }

    /// The user thread of a CPU in a round, and whether it is its last.
    fn thread(self, round: u64, cpu: u64) -> (u64, bool) {
        let (generation, within) = (round / (LIVING * self.turns), round % (LIVING * self.turns));
        let thread = 1 + cpu + CPUS * (generation * LIVING + within % LIVING);
        (thread, within / LIVING + 1 == self.turns)
    }

    /// Writes the recording as a listing.
    pub(crate) fn write(self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "# tick_hz=1000000000\ntype\tdate_tick\tpid\tcpu\tname\tparams")?;
        for cpu in 0..CPUS {
            writeln!(out, "KERN\t{cpu}\t0\t{cpu}\tsched_switch\tprev_state=0 next_pid={}", CARRIER + cpu)?;
        }
        for round in 0..self.rounds {
            for step in 0..if round % 2 == 1 { 6 } else { 4 } {
                for cpu in 0..CPUS {
                    self.event(out, (round, step, cpu))?;
                }
            }
        }
        for cpu in 0..CPUS {
            self.switch(out, self.rounds, cpu, "0")?;
        }
        out.flush()
    }

    fn event(self, out: &mut impl Write, (round, step, cpu): (u64, u64, u64)) -> io::Result<()> {
        let (thread, _) = self.thread(round, cpu);
        let tick = tick(round, step, cpu);
        let (carrier, other) = (CARRIER + cpu, OTHER + cpu);
        match step {
            0 => self.switch(out, round, cpu, &format!("{thread}(work/{thread})")),
            1 => writeln!(out, "USER\t{tick}\t{carrier}\t{cpu}\tWORK\t{}", round % 1000),
            2 => writeln!(out, "KERN\t{tick}\t{carrier}\t{cpu}\tsys_enter\tid=0"),
            3 => writeln!(out, "KERN\t{tick}\t{carrier}\t{cpu}\tsys_exit\tid=0 ret=64"),
            4 => {
                writeln!(out, "KERN\t{tick}\t{carrier}\t{cpu}\tsched_switch\tprev_state=0 next_pid={other}")
            }
            _ => writeln!(out, "KERN\t{tick}\t{other}\t{cpu}\tsched_switch\tprev_state=1 next_pid={carrier}"),
        }
    }

    /// The user switch at the beginning of a round.
    fn switch(self, out: &mut impl Write, round: u64, cpu: u64, next: &str) -> io::Result<()> {
        // Yields, exits; before the first there was none.
        let reason = match round {
            0 => 0,
            _ if self.thread(round - 1, cpu).1 => 4,
            _ => 1,
        };
        let (tick, lwp) = (tick(round, 0, cpu), CARRIER + cpu);
        writeln!(
            out,
            "USER\t{tick}\t{lwp}\t{cpu}\tUSER_CONTEXT_SWITCH\tnext={next} reason={reason} on=0 blocked_for=0"
        )
    }
}

/// Two events never have one tick.
fn tick(round: u64, step: u64, cpu: u64) -> u64 {
    (1 + round) * ROUND + step * STEP + cpu
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_is_known() {
        for (events, threads) in [(0, 0), (1000, 64), (5000, 1), (3000, 100_000)] {
            let world = World::of(events, threads);
            let mut listing = Vec::new();
            world.write(&mut listing).unwrap();
            let lines: Vec<Vec<&str>> = std::str::from_utf8(&listing)
                .unwrap()
                .lines()
                .skip(2)
                .map(|l| l.split('\t').collect())
                .collect();
            let truth = world.truth();
            assert_eq!(lines.len() as u64, truth.events);
            assert!(truth.events >= events);
            for (name, times) in truth.names {
                assert_eq!(lines.iter().filter(|line| line[4] == name).count() as u64, times, "{name}");
            }
            let carried =
                |line: &&Vec<&str>| line[4] == "USER_CONTEXT_SWITCH" && !line[5].starts_with("next=0 ");
            let mut threads: Vec<&str> =
                lines.iter().filter(carried).map(|line| line[5].split(' ').next().unwrap()).collect();
            threads.sort_unstable();
            threads.dedup();
            assert_eq!(threads.len() as u64, truth.threads);
            let exits = lines.iter().filter(|line| line[5].contains("reason=4")).count() as u64;
            assert_eq!(exits, truth.threads);
            assert!(lines.is_sorted_by_key(|line| line[1].parse::<u64>().unwrap()));
        }
    }
}
