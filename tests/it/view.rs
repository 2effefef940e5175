//! `sigmund view`: who may ask, and that its numbers are those of the tables and of the command.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    os::unix::{fs::PermissionsExt, net::UnixStream},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    kernel,
    sigmund::{Sigmund, program},
    views::listing,
};

const TRACE: &str = "t.supertrace";

/// A server, ended when this is dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
    pub(crate) token: String,
}

/// An answer of HTTP.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Vec<u8>,
}

impl Server {
    pub(crate) fn start(sigmund: &Sigmund, trace: &str, more: &[&str]) -> Server {
        Server::of(sigmund, &[&[trace, "--cache", "cache"], more].concat())
    }

    pub(crate) fn of(sigmund: &Sigmund, words: &[&str]) -> Server {
        let mut child = Command::new(program())
            .args(["view", "--no-open"])
            .args(words)
            .current_dir(sigmund.folder())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (address, token) = line.trim_end().split_once("/#token=").unwrap_or_else(|| panic!("{line:?}"));
        let address = address.rsplit("://").next().unwrap().to_string();
        Server { child, address, token: token.to_string() }
    }

    /// A request with these headers, and an answer.
    pub(crate) fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut text =
            format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(format!("{text}\r\n{body}").as_bytes()).unwrap();
        Reply::read(stream)
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }

    pub(crate) fn get(&self, question: &str) -> Reply {
        let headers = [("Host", self.address.as_str()), ("Authorization", &self.bearer())];
        self.request("GET", &format!("/api/{question}"), &headers, "")
    }

    pub(crate) fn post(&self, question: &str, body: &Value) -> Reply {
        let headers = [("Host", self.address.as_str()), ("Authorization", &self.bearer())];
        self.request("POST", &format!("/api/{question}"), &headers, &body.to_string())
    }

    pub(crate) fn json(&self, question: &str) -> Value {
        self.get(question).json()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Reply {
    fn read(mut stream: impl Read) -> Reply {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Reply { status, head, body: bytes[end + 4..].to_vec() }
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.status, 200, "{}", String::from_utf8_lossy(&self.body));
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// Numbers that look random, the same in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        // Knuth's constants (MMIX); the high bits are the better ones.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

#[test]
fn only_the_page_with_the_token_is_answered() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let server = Server::start(&sigmund, TRACE, &[]);
    let (own, bearer) = (server.address.as_str(), server.bearer());
    let status = |headers: &[(&str, &str)]| server.request("GET", "/api/trace", headers, "").status;
    assert_eq!(status(&[("Host", own), ("Authorization", &bearer)]), 200);
    let wrong: &[&[(&str, &str)]] = &[
        &[("Host", own)],
        &[("Host", own), ("Authorization", "Bearer 0123456789abcdef")],
        &[("Host", "evil.example"), ("Authorization", &bearer)],
        &[("Host", "localhost:1"), ("Authorization", &bearer)],
        &[("Authorization", &bearer)],
        &[("Host", own), ("Authorization", &bearer), ("Origin", "http://evil.example")],
        &[("Host", own), ("Authorization", &bearer), ("Sec-Fetch-Site", "cross-site")],
    ];
    for headers in wrong {
        assert_eq!(status(headers), 403, "{headers:?}");
    }
    // The page itself has nothing secret; but it is not for other names.
    let page = server.request("GET", "/", &[("Host", own)], "");
    assert_eq!(page.status, 200);
    for header in [
        "content-security-policy: default-src 'none'; script-src 'self'",
        "frame-ancestors 'none'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cache-control: no-store",
    ] {
        assert!(page.head.contains(header), "{header}: {}", page.head);
    }
    assert_eq!(server.request("GET", "/", &[("Host", "evil.example")], "").status, 403);
    assert_eq!(server.request("GET", "/../Cargo.toml", &[("Host", own)], "").status, 404);
    assert_eq!(server.request("PUT", "/", &[("Host", own)], "").status, 405);
    assert_eq!(server.get("nothing").status, 404);
    assert_eq!(server.get("at?key=thread:99999&tick=0").status, 404);
    for question in [
        "at?key=fiber:1",
        "rows?kind=x",
        "selection?from=9&to=3",
        "selection?from=nan",
        "selection?keys=cpu:0",
    ] {
        assert_eq!(server.get(question).status, 400, "{question}");
    }
    // A body that is too long is refused before it is read.
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let head =
        format!("POST /api/sql HTTP/1.1\r\nHost: {own}\r\nConnection: close\r\nAuthorization: {bearer}\r\n");
    stream.write_all(format!("{head}Content-Length: 2000000\r\n\r\n").as_bytes()).unwrap();
    assert_eq!(Reply::read(stream).status, 413);
}

#[test]
fn sql_of_the_page_reads_only_and_ends_with_its_client() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let server = Server::start(&sigmund, TRACE, &["--queries", "1", "--time", "20s"]);
    assert_eq!(server.post("sql", &json!({ "query": "DROP TABLE events" })).status, 403);
    assert_eq!(server.post("sql", &json!({ "query": "SELECT nothing" })).status, 400);
    let answer = server.post("sql", &json!({ "query": "SELECT count(*) AS n FROM events" })).json();
    let events = sigmund.number(TRACE, "SELECT count(*) FROM events");
    assert_eq!((&answer["rows"], &answer["columns"][0]["name"]), (&json!([[events]]), &json!("n")));
    // A query without an end, whose client goes: the only place is free again.
    let endless = json!({ "query": "SELECT count(*) FROM events a, events b, events c, events d, events e, events f, events g" });
    let head = format!(
        "POST /api/sql HTTP/1.1\r\nHost: {}\r\nAuthorization: {}\r\nContent-Length: {}\r\n\r\n{endless}",
        server.address,
        server.bearer(),
        endless.to_string().len()
    );
    let mut client = TcpStream::connect(&server.address).unwrap();
    client.write_all(head.as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    drop(client);
    let begun = Instant::now();
    assert_eq!(server.get("rows?kind=cpu").status, 200);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[test]
fn connections_that_send_nothing_leave_room_for_others() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let server = Server::start(&sigmund, TRACE, &[]);
    let idle: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(&server.address).unwrap()).collect();
    assert_eq!(server.get("trace").status, 200);
    drop(idle);
}

#[test]
fn a_unix_socket_is_the_users_own_and_takes_no_place() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let mut server = Server::start(&sigmund, TRACE, &["--listen", "unix:view.sock"]);
    let path = sigmund.path("view.sock");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let mut stream = UnixStream::connect(&path).unwrap();
    let head = "GET /api/trace HTTP/1.1\r\nHost: localhost:8080\r\nConnection: close\r\n";
    stream.write_all(format!("{head}Authorization: {}\r\n\r\n", server.bearer()).as_bytes()).unwrap();
    assert_eq!(Reply::read(stream).status, 200);
    // A signal ends it, and the socket is gone; what had the name before is not replaced.
    let pid = server.child.id().to_string();
    Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert!(server.child.wait().unwrap().success());
    assert!(!path.exists());
    fs::write(&path, "mine").unwrap();
    sigmund
        .run(["view", TRACE, "--no-open", "--cache", "cache", "--listen", "unix:view.sock"])
        .complained(&["view.sock"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    assert!(
        fs::read_dir(sigmund.folder())
            .unwrap()
            .all(|entry| { !entry.unwrap().file_name().to_string_lossy().starts_with(".sigmund-view") })
    );
}

#[test]
fn the_index_is_kept_and_made_again_when_it_is_of_another_trace_or_damaged() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let total = |server: &Server| server.json("selection?keys=thread:5")["states"].clone();
    let kept = || {
        let entry = fs::read_dir(sigmund.path("cache")).unwrap().next().unwrap().unwrap();
        (entry.path(), entry.metadata().unwrap().modified().unwrap())
    };
    let first = total(&Server::start(&sigmund, TRACE, &[]));
    let (path, made) = kept();
    assert_eq!(total(&Server::start(&sigmund, TRACE, &[])), first);
    assert_eq!(kept().1, made, "it is not made again");
    let bytes = fs::read(&path).unwrap();
    let damages: [Vec<u8>; 4] = [
        Vec::new(),
        bytes[..bytes.len() / 2].to_vec(),
        bytes[8..].to_vec(),
        [&bytes[..24], &[0xff; 64], &bytes[88..]].concat(),
    ];
    for damaged in damages {
        fs::write(&path, &damaged).unwrap();
        assert_eq!(total(&Server::start(&sigmund, TRACE, &[])), first);
    }
    // An index that another user could have written is not read.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o622)).unwrap();
    assert_eq!(total(&Server::start(&sigmund, TRACE, &[])), first);
    assert_eq!(kept().0, path);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "it is made again");
    // Another trace under the same name.
    let (_, rest) =
        listing().split_once('\n').map(|(head, rest)| (head.to_string(), rest.to_string())).unwrap();
    let shorter: Vec<&str> = rest.lines().take(12).collect();
    fs::remove_dir_all(sigmund.path(TRACE)).unwrap();
    sigmund.merge_listing("t", &format!("# tick_hz=1000000000\n{}\n", shorter.join("\n")));
    assert_ne!(total(&Server::start(&sigmund, TRACE, &[])), first);
}

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
    let Some(_alone) = kernel::as_root() else { return };
    let sigmund = Sigmund::new();
    sigmund.run(["record", "-o", "RUN", "--", program(), "sumtime", "8", "4", "20000"]).found();
    compare_with_tables(&sigmund, "RUN.supertrace");
    compare_culprits(&sigmund, "RUN.supertrace");
}

/// Who had the CPU of a stalled thread: the culprits of `--states` in that interval, to the tick.
fn compare_culprits(sigmund: &Sigmund, trace: &str) {
    let server = Server::start(sigmund, trace, &[]);
    let first = sigmund.fact(trace, "first_tick").parse::<i64>().unwrap();
    let query = "SELECT thread, ts_tick, dur_tick FROM thread_states WHERE state = 'stalled' AND dur_tick > 10 ORDER BY dur_tick DESC LIMIT 5";
    let stalls = sigmund.sql(trace, query);
    assert!(!stalls.is_empty(), "four LWPs on fewer CPUs");
    for stall in stalls {
        let (from, length) = (stall[1].parse::<i64>().unwrap(), stall[2].parse::<i64>().unwrap());
        let at = server.json(&format!("at?key=thread:{}&tick={}", stall[0], from - first + length / 2));
        let mut shown: BTreeMap<String, i64> = BTreeMap::new();
        for who in at["intervals"][0]["had_cpu"].as_array().unwrap() {
            let (key, label) = (who["key"].as_str().unwrap(), who["label"].as_str().unwrap());
            let (number, name) = label.split_once(' ').unwrap_or((label, ""));
            let name = if name.is_empty() { number.to_string() } else { format!("{number}({name})") };
            let name = if key.starts_with("lwp") { format!("LWP {name}") } else { name };
            shown.insert(name, who["ticks"].as_i64().unwrap());
        }
        let (from, to) = (from.to_string(), (from + length - 1).to_string());
        let words = ["--states", "--thread", &stall[0], "--from", &from, "--to", &to, "--format", "tsv"];
        let answer = sigmund.run([&["-f", trace], &words[..]].concat());
        let mut counted: BTreeMap<String, i64> = BTreeMap::new();
        for line in answer.stdout.lines().skip(1) {
            let cells: Vec<&str> = line.split('\t').collect();
            if cells[2] == "stalled" && !["idle", "unknown"].contains(&cells[5]) {
                counted.insert(cells[5].to_string(), cells[7].parse().unwrap());
            }
        }
        if counted.len() <= 50 {
            assert_eq!(shown, counted, "{stall:?}: {answer:?}");
        }
    }
}

// The picture is in views.rs: thread 5 on LWP 70, which 90 preempts at 150; blocked at 200, unparked at 220 by 6.
#[test]
fn what_is_pointed_at_says_who_had_its_cpu_and_what_it_waited_for() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let server = Server::start(&sigmund, TRACE, &[]);
    // Ticks are from the first event, at 100.
    let at = |key: &str, tick: u64| {
        server.json(&format!("at?key={key}&tick={}", tick - 100))["intervals"][0].clone()
    };
    let stalled = at("thread:5", 155);
    assert_eq!(
        (&stalled["value"], &stalled["from"], &stalled["to"]),
        (&json!("stalled"), &json!(50), &json!(70))
    );
    assert_eq!(
        (&stalled["had_cpu"][0]["key"], &stalled["had_cpu"][0]["ticks"]),
        (&json!("lwp:90"), &json!(20))
    );
    let blocked = at("thread:5", 210);
    assert_eq!((&blocked["blocked_for"], &blocked["blocked_on"]), (&json!("mutex"), &json!("0x1000")));
    let on_cpu = at("cpu:0", 160);
    assert_eq!(on_cpu["value"], json!("lwp:90"));
    assert_eq!(at("lwp:70", 115)["value"], json!("sleeping"));

    let life = server.json("life?key=thread:5");
    let states: Vec<&str> =
        life["intervals"].as_array().unwrap().iter().map(|stay| stay["state"].as_str().unwrap()).collect();
    assert_eq!(
        states,
        ["active", "in-kernel", "stalled", "active", "stalled", "active", "blocked", "ready", "active"]
            [..states.len().min(9)]
    );
    let unpark = life["wakeups"].as_array().unwrap().iter().find(|wakeup| wakeup["level"] == "USER").unwrap();
    assert_eq!(
        (&unpark["at"], &unpark["by"], &unpark["latency"]),
        (&json!(120), &json!("thread:6"), &json!(10))
    );

    let interrupts = server.json("interrupts?cpu=0");
    assert_eq!(interrupts["interrupts"][0]["name"], json!("eth0"));
    let events = server.json("events?from=75&to=76");
    assert_eq!(events["rows"][0]["name"], json!("irq_handler_entry"));
    assert_eq!(events["rows"][0]["cpu"], json!("cpu:0"));
    let locks = server.json("locks?key=thread:5");
    assert_eq!((&locks["locks"][0]["wait"], &locks["locks"][0]["object"]), (&json!(20), &json!("0x1000")));
    let related = server.json("rows?kind=thread&with=thread:5");
    let related: Vec<&str> =
        related["rows"].as_array().unwrap().iter().map(|row| row["key"].as_str().unwrap()).collect();
    assert_eq!(related, ["thread:5", "thread:6"]);
    let measure = server.json("measure?name=states&keys=thread:5");
    assert_eq!(measure["columns"][0]["name"], json!("thread"));
    assert_eq!(measure["rows"].as_array().unwrap().len(), 7);
    assert!(measure["command"].as_str().unwrap().ends_with("--thread 5 --states"));
}

#[test]
fn events_are_listed_in_both_directions_a_page_at_a_time() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let server = Server::start(&sigmund, TRACE, &[]);
    let rows = |answer: &Value| answer["rows"].as_array().unwrap().clone();
    for filter in ["", "&key=lwp:70", "&from=20&to=130"] {
        let whole = rows(&server.json(&format!("events?limit=1000{filter}")));
        assert!(whole.len() > 3, "{whole:?}");
        for limit in [1, 2, 7] {
            // From the first to the last, and back from there; ticks are the same for several events.
            let (mut forward, mut cursor) = (Vec::new(), String::new());
            loop {
                let page = server.json(&format!("events?limit={limit}{filter}{cursor}"));
                forward.extend(rows(&page));
                if page["more"] == json!(false) {
                    break;
                }
                cursor = format!("&after={}", page["last"].as_str().unwrap());
            }
            assert_eq!(forward, whole, "{filter} {limit}");
            let (mut backward, mut cursor) = (Vec::new(), "&before=999999999:0".to_string());
            loop {
                let page = server.json(&format!("events?limit={limit}{filter}{cursor}"));
                backward.splice(0..0, rows(&page));
                if page["more"] == json!(false) {
                    break;
                }
                cursor = format!("&before={}", page["first"].as_str().unwrap());
            }
            assert_eq!(backward, whole, "{filter} {limit}");
        }
    }
    for wrong in ["after=1", "before=x:1", "after=1:0&before=2:0"] {
        assert_eq!(server.get(&format!("events?{wrong}")).status, 400, "{wrong}");
    }
}

#[test]
fn the_living_of_a_subtree_are_those_of_the_table_of_threads() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let server = Server::start(&sigmund, TRACE, &[]);
    let ticks = server.json("trace")["ticks"].as_u64().unwrap() + 1;
    let threads = sigmund.number(TRACE, "SELECT count(*) FROM threads");
    let lived = sigmund.number(
        TRACE,
        "SELECT sum(least(ts_tick + coalesce(dur_tick, 1000000), (SELECT max(ts_tick) + 1 FROM events)) - ts_tick) FROM threads",
    );
    for pixels in [1, 7, 500] {
        let all = server.json(&format!("living?pixels={pixels}"));
        assert_eq!(all["threads"], json!(threads));
        let edge = |pixel: u64| ticks * pixel / pixels;
        let sum: f64 = (0..pixels)
            .zip(all["mean"].as_array().unwrap())
            .map(|(pixel, mean)| mean.as_f64().unwrap() * (edge(pixel + 1) - edge(pixel)) as f64)
            .sum();
        assert!((sum - lived as f64).abs() < 1e-3, "{pixels}: {sum} {lived}");
    }
    assert_eq!(server.json("living?parent=thread:5")["threads"], json!(1));
    assert_eq!(server.get("living?parent=thread:99999").status, 404);
}

#[test]
fn events_whose_witnesses_disagree_are_those_of_the_table() {
    // The probe of user thread 5 read CPU 1; by the switches, LWP 70 was on CPU 0.
    let disagreeing = listing().replacen("USER\t200\t70\t0", "USER\t200\t70\t1", 1);
    for text in [listing(), disagreeing] {
        let sigmund = Sigmund::with_listing("t", &text);
        let server = Server::start(&sigmund, TRACE, &[]);
        let counted = sigmund.number(TRACE, "SELECT count(*) FROM events WHERE cpu <> cpu_seen");
        let found = server.json("disagreements");
        assert_eq!(found["disagreements"].as_array().unwrap().len() as u64, counted as u64, "{found}");
    }
}

#[test]
fn of_two_super_traces_each_is_asked_by_its_own_name_and_with_the_token() {
    let sigmund = Sigmund::with_listing("t", &listing());
    // The same without its last event.
    let all = listing();
    let shorter: Vec<&str> = all.lines().collect();
    sigmund.write("other.tsv", shorter[..shorter.len() - 1].join("\n").as_bytes());
    sigmund.run(["merge", "other.tsv", "-o", "other.supertrace"]).found();
    let server = Server::of(&sigmund, &[TRACE, "other.supertrace", "--cache", "cache"]);
    let (a, b) = (server.json("trace"), server.json("b/trace"));
    assert_eq!((&a["is_compared"], &b["is_compared"]), (&json!(true), &json!(false)));
    assert_eq!((&a["name"], &b["name"]), (&json!("t.supertrace"), &json!("other.supertrace")));
    assert_eq!((&a["ticks"], &b["ticks"]), (&json!(130), &json!(120)));
    for question in ["selection?keys=thread:5", "events?limit=3", "rows?kind=lwp"] {
        let alone = Server::start(&sigmund, "other.supertrace", &[]).json(question);
        let mut both = server.json(&format!("b/{question}"));
        assert_eq!(both.as_object_mut().unwrap(), alone.as_object().unwrap(), "{question}");
    }
    // Who may ask is the same for both.
    for path in ["/api/b/trace", "/api/b/sql", "/api/compare?name=states"] {
        let own = server.address.as_str();
        assert_eq!(server.request("GET", path, &[("Host", own)], "").status, 403, "{path}");
        let bearer = format!("Bearer {}", server.token);
        let rebound = [("Host", "evil.example"), ("Authorization", bearer.as_str())];
        assert_eq!(server.request("GET", path, &rebound, "").status, 403, "{path}");
        let foreign = [("Host", own), ("Authorization", &bearer), ("Origin", "http://evil.example")];
        assert_eq!(server.request("GET", path, &foreign, "").status, 403, "{path}");
    }
    let refused = server.post("b/sql", &json!({ "query": "DROP TABLE events" }));
    assert_eq!(refused.status, 403, "{refused:?}");
    for (question, status) in [
        ("b/nothing", 404),
        ("b/b/trace", 404),
        ("b/compare", 404),
        ("b/live", 404),
        ("compare?name=nothing", 404),
        ("compare?name=explain", 400),
        ("compare?name=states&from=5&to=5", 400),
        ("compare?name=states&by=color", 400),
        ("braids", 400),
        ("braids?subject=nothing", 400),
    ] {
        let reply = server.get(question);
        assert_eq!(reply.status, status, "{question}: {}", String::from_utf8_lossy(&reply.body));
    }
    let alone = Server::start(&sigmund, TRACE, &[]);
    assert_eq!((alone.get("b/trace").status, alone.get("compare").status), (404, 404));
    // A window before the begin of a trace is one without anything in it.
    let before = alone.json("selection?from=-50&to=-10&keys=thread:5");
    assert_eq!(before["states"], json!([]), "{before}");
    let refused = alone.get("measure?name=states&from=-300&to=-200");
    assert_eq!(refused.status, 400);
    assert!(
        String::from_utf8_lossy(&refused.body).contains("expected an instant of the trace"),
        "{refused:?}"
    );
    let partly = alone.json("measure?name=states&from=-300&to=40&keys=thread:5");
    assert_eq!(partly["rows"], alone.json("measure?name=states&from=0&to=40&keys=thread:5")["rows"]);
    sigmund.run(["view", TRACE, "missing.supertrace", "--no-open"]).complained(&["missing.supertrace"]);
}

#[test]
fn the_braids_are_the_longest_instances_of_the_first_band_and_of_all() {
    let Some(_alone) = kernel::as_root() else { return };
    let sigmund = Sigmund::new();
    crate::docs::my_server_in(&sigmund.path(""));
    sigmund.run(["record", "-o", "RUN", "--", "./myserver"]).found();
    let server = Server::start(&sigmund, "RUN.supertrace", &[]);
    let query = "SELECT dur_tick FROM spans WHERE name = 'request' AND end_reason IN ('returned', 'exit') ORDER BY dur_tick";
    let lengths: Vec<i64> =
        sigmund.sql("RUN.supertrace", query).iter().map(|row| row[0].parse().unwrap()).collect();
    assert!(lengths.len() > 100);
    let braids = server.json("braids?subject=request");
    let rows = braids["rows"].as_array().unwrap();
    let of = |name: &str| {
        let pieces: Vec<(i64, i64)> = rows
            .iter()
            .filter(|row| row[0] == json!(name))
            .map(|row| (row[1].as_i64().unwrap(), row[2].as_i64().unwrap()))
            .collect();
        assert!(pieces.windows(2).all(|two| two[0].0 + two[0].1 == two[1].0), "{name}: one after the other");
        pieces.iter().map(|(_, length)| length).sum::<i64>()
    };
    // Those that touch a gap are in no band.
    let bands = server.json("measure?name=explain&subject=request");
    let apart = bands["rows"].as_array().unwrap().iter();
    let apart = apart.filter(|row| ["touches a gap", "cut off"].contains(&row[0].as_str().unwrap()));
    if apart.filter_map(|row| row[4].as_i64()).sum::<i64>() == 0 {
        assert_eq!(of("median"), lengths[lengths.len().div_ceil(2) - 1]);
        assert_eq!(of("slowest"), lengths[lengths.len() - 1]);
    }
    assert!(of("median") > 0 && of("median") <= of("slowest"));
}
