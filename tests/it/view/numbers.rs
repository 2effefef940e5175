//! Pixels and selections are those of the tables, and of the command.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Reply, Server, TRACE, instant::compare_culprits, server::Dice};
use crate::{
    kernel,
    sigmund::{Sigmund, program},
    views::listing,
};

/// Shares of states by pixel, from the binary answer.
fn shares(reply: &Reply, states: usize) -> (Value, Vec<Vec<Vec<f64>>>) {
    assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
    let length = u32::from_le_bytes(reply.body[..4].try_into().unwrap()) as usize;
    assert_eq!((4 + length) % 8, 0);
    let header: Value = serde_json::from_slice(&reply.body[4..4 + length]).unwrap();
    let body = &reply.body[4 + length..];
    let pixels = header["pixels"].as_u64().unwrap() as usize;
    let (from, to) = (header["from"].as_f64().unwrap(), header["to"].as_f64().unwrap());
    let edge = |pixel: usize| from + ((to - from) * pixel as f64 / pixels as f64).floor();
    let rows = header["rows"].as_array().unwrap().iter().map(|row| {
        let track = row["tracks"].as_array().unwrap().iter().find(|track| track["track"] == "state").unwrap();
        let (at, n) = (track["at"].as_u64().unwrap() as usize, track["n"].as_u64().unwrap() as usize);
        let mut shares = vec![vec![0.0; states]; pixels];
        if track["form"] == "intervals" {
            let number = |place: usize| {
                f64::from_le_bytes(body[at + 8 * place..at + 8 * place + 8].try_into().unwrap())
            };
            for stay in 0..n {
                let (begin, end, state) =
                    (number(3 * stay), number(3 * stay + 1), number(3 * stay + 2) as usize);
                for (pixel, shares) in shares.iter_mut().enumerate().filter(|_| state < states) {
                    let (a, b) = (edge(pixel), edge(pixel + 1));
                    if b > a {
                        shares[state] += (end.min(b) - begin.max(a)).max(0.0) / (b - a);
                    }
                }
            }
        } else {
            let number = |place: usize| {
                u16::from_le_bytes(body[at + 2 * place..at + 2 * place + 2].try_into().unwrap())
            };
            let mut place = 0;
            while place < n {
                let (first, count, k) = (number(place), number(place + 1), number(place + 2));
                for pair in 0..usize::from(k) {
                    let (state, share) = (number(place + 3 + 2 * pair), number(place + 4 + 2 * pair));
                    for pixel in &mut shares[usize::from(first)..usize::from(first + count)] {
                        pixel[usize::from(state)] = f64::from(share) / 65535.0;
                    }
                }
                place += 3 + 2 * usize::from(k);
            }
        }
        shares
    });
    let rows = rows.collect();
    (header, rows)
}

/// Asks about a trace in every way, and compares with its tables and with the command.
fn compare_with_tables(sigmund: &Sigmund, trace: &str) {
    let server = Server::start(sigmund, trace, &[]);
    let about = server.json("trace");
    let states: Vec<&str> =
        about["thread_states"].as_array().unwrap().iter().map(|s| s.as_str().unwrap()).collect();
    let first = sigmund.fact(trace, "first_tick").parse::<i64>().unwrap();
    let ticks = about["ticks"].as_u64().unwrap();
    let threads = server.json("rows?kind=thread&sort=busy&limit=12");
    let keys: Vec<&str> =
        threads["rows"].as_array().unwrap().iter().map(|row| row["key"].as_str().unwrap()).collect();
    let numbers: Vec<&str> = keys.iter().map(|key| key.strip_prefix("thread:").unwrap()).collect();
    let query = format!(
        "SELECT thread, ts_tick - {first}, dur_tick, state FROM raw_thread_states WHERE dur_tick IS NOT NULL AND thread IN ({})",
        numbers.join(", ")
    );
    let mut stays: BTreeMap<String, Vec<(i64, i64, usize)>> = BTreeMap::new();
    for row in sigmund.sql(trace, &query) {
        let state = states.iter().position(|state| *state == row[3]).unwrap();
        let stay = (row[1].parse().unwrap(), row[2].parse().unwrap(), state);
        stays.entry(format!("thread:{}", row[0])).or_default().push(stay);
    }
    let mut dice = Dice(7);
    for round in 0..30 {
        let from = if round == 0 { 0 } else { dice.roll(ticks) as i64 };
        let length = if round == 0 { ticks } else { (ticks >> dice.roll(24)).max(3) };
        let (to, pixels) = (from + length as i64, 1 + dice.roll(700) as i64);
        let body = json!({ "from": from, "to": to, "pixels": pixels, "keys": keys });
        let (header, rows) = shares(&server.post("tiles", &body), states.len());
        assert_eq!((&header["from"], &header["to"]), (&json!(from), &json!(to)));
        for (key, shares) in keys.iter().zip(rows) {
            for (pixel, shares) in shares.iter().enumerate() {
                let edge = |pixel: i64| {
                    from + (i128::from(to - from) * i128::from(pixel) / i128::from(pixels)) as i64
                };
                let (a, b) = (edge(pixel as i64), edge(pixel as i64 + 1));
                let mut expected = vec![0; states.len()];
                for (begin, length, state) in &stays[*key] {
                    expected[*state] += ((begin + length).min(b) - begin.max(&a)).max(0);
                }
                for (state, (share, time)) in shares.iter().zip(expected).enumerate() {
                    if b > a {
                        // A share is a number of 16 bits, and never 0 for a state that has any time.
                        let is_close = (share - time as f64 / (b - a) as f64).abs() <= 1.0 / 65535.0;
                        assert!(
                            is_close && (time == 0) == (*share == 0.0),
                            "{key} {pixel} {}: {share} {time}",
                            states[state]
                        );
                    }
                }
            }
        }
    }
    // The numbers of a selection are the command's own.
    for round in 0..4 {
        let from = dice.roll(ticks) as i64;
        let to = from + (ticks / (1 + dice.roll(5))) as i64;
        let whose = match round {
            0 => String::new(),
            _ => format!("&keys={}", keys[..(round * 2).min(keys.len())].join(",")),
        };
        let selection = server.json(&format!("selection?from={from}&to={to}{whose}"));
        let mut shown: BTreeMap<String, i64> = BTreeMap::new();
        for state in selection["states"].as_array().unwrap() {
            shown.insert(state["state"].as_str().unwrap().to_string(), state["ticks"].as_i64().unwrap());
        }
        let command = selection["command"].as_str().unwrap();
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        let answer = sigmund.run([&words[..], &["--format", "tsv"]].concat());
        let mut counted: BTreeMap<String, i64> = BTreeMap::new();
        let mut lines = answer.stdout.lines();
        let columns: Vec<&str> = lines.next().unwrap_or_default().split('\t').collect();
        let place = |name: &str| columns.iter().position(|column| *column == name).unwrap();
        for line in lines {
            let cells: Vec<&str> = line.split('\t').collect();
            *counted.entry(cells[place("state")].to_string()).or_default() +=
                cells[place("total_tick")].parse::<i64>().unwrap();
        }
        counted.retain(|_, ticks| *ticks > 0);
        assert_eq!(shown, counted, "{command}: {answer:?}");
        let sql = selection["sql"].as_str().unwrap();
        let by_sql = sigmund.counts(
            trace,
            &format!("SELECT state, sum(total_tick) FROM ({sql}) WHERE total_tick > 0 GROUP BY state"),
        );
        let by_sql: BTreeMap<String, i64> =
            by_sql.into_iter().map(|(state, ticks)| (state, ticks as i64)).collect();
        assert_eq!(by_sql, counted, "{sql}");
    }
}

#[test]
fn pixels_and_selections_are_those_of_the_tables() {
    let sigmund = Sigmund::with_listing("t", &listing());
    compare_with_tables(&sigmund, TRACE);
}

#[test]
fn pixels_and_selections_of_a_recording_are_those_of_its_tables() {
    let Some(alone) = kernel::as_root() else { return };
    let sigmund = Sigmund::new();
    sigmund.run(["record", "-o", "RUN", "--", program(), "sumtime", "8", "4", "20000"]).found();
    drop(alone);
    compare_with_tables(&sigmund, "RUN.supertrace");
    compare_culprits(&sigmund, "RUN.supertrace");
}
