//! `states` on random machines, against counting tick by tick.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::damage::{label, some_damaged};
use crate::support::{LWPS, Now, THREADS, number, tid};
use sigmund_measures::{Answer, By, Interval, Request, Value, named};
use sigmund_model::{LwpState, ThreadState, WaitKind};

type Key = (i64, String, Option<String>, Option<i64>, Option<String>);

fn text(value: &Value) -> Option<String> {
    if let Value::Text(text) = value { Some(text.to_string()) } else { None }
}

fn number_of(value: &Value) -> Option<i64> {
    if let Value::Number(number) = value { Some(*number) } else { None }
}

/// The ticks of each row.
fn sums(answer: &Answer) -> BTreeMap<Key, i64> {
    let row = |row: &Vec<Value>| {
        let key = (
            number_of(&row[0]).unwrap(),
            text(&row[2]).unwrap(),
            text(&row[3]),
            number_of(&row[4]),
            text(&row[5]),
        );
        (key, number_of(&row[7]).unwrap())
    };
    answer.rows.to_vec().iter().map(row).filter(|(_, ticks)| *ticks > 0).collect()
}

fn interrupted(now: &Now, cpu: usize, names: &[String]) -> Option<String> {
    now.interrupts[cpu].last().map(|place| names[*place].clone())
}

#[test]
fn the_time_in_each_state_is_that_of_counting_every_tick() {
    for seed in 0..300 {
        let machine = some_damaged(seed);
        let names: (Vec<_>, Vec<_>) = (
            machine.interrupts.iter().map(|i| i.name.unwrap()).collect(),
            machine.syscalls.iter().map(|call| call.name).collect(),
        );
        let (ticks, history) = machine.history();
        let irqs: Vec<String> = names.0.iter().map(|name| history.words.text(*name).into()).collect();
        let calls: Vec<String> = names.1.iter().map(|name| history.words.text(*name).into()).collect();
        let window = if seed % 2 == 0 { Interval::ALL } else { Interval::new(37, 311) };
        let seen = (0..crate::support::TICKS).filter(|tick| window.contains(*tick));

        let mut threads: BTreeMap<Key, i64> = BTreeMap::new();
        let mut lwps: BTreeMap<Key, i64> = BTreeMap::new();
        // LWPs while they carry one of these.
        let selected: BTreeSet<u64> = [number(0), number(3)].into();
        let mut carriers: BTreeMap<Key, i64> = BTreeMap::new();
        for tick in seen {
            let now = &ticks[tick as usize];
            for thread in 0..THREADS {
                let stay = now.threads[thread];
                let on = stay.lwp.map(|lwp| now.lwps[lwp]);
                let (mut state, mut reason, mut object, mut culprit) = (stay.state.name(), None, None, None);
                match (stay.state, on) {
                    (ThreadState::Active, Some(lwp)) => {
                        if let Some(name) = interrupted(now, lwp.cpu, &irqs) {
                            (state, reason) = ("interrupted", Some(name));
                        }
                    }
                    (ThreadState::Stalled, Some(lwp)) => culprit = Some(label(&ticks, lwp.cpu, tick, false)),
                    (ThreadState::InKernel, Some(lwp)) => reason = lwp.call.map(|call| calls[call].clone()),
                    (ThreadState::Blocked, _) => {
                        reason = stay.waits_for.map(|kind| kind.name().into());
                        object = Some(stay.object).filter(|_| stay.waits_for != Some(WaitKind::Sleep));
                    }
                    _ => {}
                }
                *threads
                    .entry((number(thread) as i64, state.into(), reason, object, culprit))
                    .or_default() += 1;
            }
            for place in 0..LWPS {
                let lwp = now.lwps[place];
                let (mut state, mut reason, mut culprit) = (lwp.state.name(), None, None);
                match lwp.state {
                    LwpState::Running => {
                        if let Some(name) = interrupted(now, lwp.cpu, &irqs) {
                            (state, reason) = ("interrupted", Some(name));
                        }
                    }
                    LwpState::Runnable => culprit = Some(label(&ticks, lwp.cpu, tick, true)),
                    LwpState::Unknown => {}
                    _ => reason = lwp.call.map(|call| calls[call].clone()),
                }
                let key = (i64::from(tid(place)), state.into(), reason, None, culprit);
                *lwps.entry(key.clone()).or_default() += 1;
                if lwp.carries.is_some_and(|thread| selected.contains(&number(thread))) {
                    *carriers.entry(key).or_default() += 1;
                }
            }
        }
        let ask = |by, threads: Option<&BTreeSet<u64>>| {
            let request = Request { window, by: Some(by), threads: threads.cloned(), ..Request::default() };
            sums(&named("states").unwrap().answer(&history, &request).unwrap())
        };
        assert_eq!(ask(By::Thread, None), threads, "seed {seed}");
        assert_eq!(ask(By::Lwp, None), lwps, "seed {seed}");
        assert_eq!(ask(By::Lwp, Some(&selected)), carriers, "seed {seed}");

        // `active-time` is the time of being active or running, with what interrupts took of it.
        let active = |by, threads: Option<&BTreeSet<u64>>| {
            let request = Request { window, by: Some(by), threads: threads.cloned(), ..Request::default() };
            let answer = named("active-time").unwrap().answer(&history, &request).unwrap();
            let row = |row: &Vec<Value>| [0, 2, 3].map(|column| number_of(&row[column]));
            answer.rows.to_vec().iter().map(row).collect::<BTreeSet<_>>()
        };
        let counted = |rows: &BTreeMap<Key, i64>| {
            let mut sums: BTreeMap<i64, [i64; 3]> = BTreeMap::new();
            for ((owner, state, ..), ticks) in rows {
                let [active, life, unknown] = sums.entry(*owner).or_default();
                let of = |states: &[&str]| if states.contains(&state.as_str()) { *ticks } else { 0 };
                *active += of(&["active", "running", "interrupted"]);
                *unknown += of(&["unknown", "mounted"]);
                *life += *ticks - of(&["exited"]);
            }
            // NULL if it was never seen on a CPU, but may have been on one.
            let known = |[active, _, unknown]: [i64; 3]| (active > 0 || unknown == 0).then_some(active);
            sums.into_iter()
                .filter(|(_, [_, life, _])| *life > 0)
                .map(|(owner, sums)| [Some(owner), known(sums), Some(sums[1])])
                .collect::<BTreeSet<_>>()
        };
        assert_eq!(active(By::Thread, None), counted(&threads), "seed {seed}");
        assert_eq!(active(By::Lwp, None), counted(&lwps), "seed {seed}");
        assert_eq!(active(By::Lwp, Some(&selected)), counted(&carriers), "seed {seed}");
    }
}
