//! Pajé files as text: names, and the rules of the format.

use std::{
    collections::HashMap,
    io::{self, Write},
    sync::Arc,
};

use sigmund_export::{
    sinks::paje::{Paje, check, read_name},
    timeline::{Actors, Change, Process, ProcessId, Sink, Slice, SliceKind, ThreadActor, ThreadId, Track},
};
use sigmund_model::{Pid, ThreadState, Ticks};

use crate::known_timelines::{self, HOSTILE_NAMES, RandomTimeline};

/// A timeline as a Pajé file.
pub(crate) fn written(actors: &Actors, emit: impl FnOnce(&mut dyn Sink) -> std::io::Result<()>) -> Vec<u8> {
    let mut file = Vec::new();
    let mut paje = Paje::new(&mut file, Arc::new(actors.clone())).unwrap();
    emit(&mut paje).unwrap();
    drop(paje);
    file
}

pub(crate) fn check_clean(file: &[u8]) {
    let report = check(file).unwrap();
    assert_eq!(report.faults, []);
}

/// Names of 10 kB that differ only at their ends, and various characters around the position where a name is divided.
pub(crate) fn long_names() -> Vec<String> {
    let long = "long ".repeat(2000);
    let mut names = vec![long.clone() + "a", long + "b", "\n".repeat(10_000), "ü".repeat(5000)];
    names.extend((2990..3010).map(|len| "x".repeat(len)));
    names
}

/// A timeline whose threads have these names, each with a span of the same name.
pub(crate) fn named(names: &[String]) -> (Actors, impl Fn(&mut dyn Sink) -> std::io::Result<()> + use<>) {
    let mut actors = known_timelines::actors(11_000);
    let like = actors.threads[0];
    let with_name = |name: &String| ThreadActor { name: Some(actors.thread_names.add(name)), ..like };
    actors.threads = names.iter().map(with_name).collect();
    let names = names.to_vec();
    let emit = move |sink: &mut dyn Sink| {
        let tracks = || (0..).map(|index| Track::Thread(ThreadId(index)));
        for (track, name) in tracks().zip(&names) {
            sink.change(Ticks(1000), &Change::Enter(track, Slice { kind: SliceKind::Span, name }))?;
        }
        for (track, _) in tracks().zip(&names) {
            sink.change(Ticks(11_000), &Change::Leave(track, SliceKind::Span))?;
        }
        sink.finish()
    };
    (actors, emit)
}

/// The names in a file by their aliases, joined and decoded.
fn names_in(file: &[u8]) -> HashMap<String, String> {
    let file = std::str::from_utf8(file).unwrap();
    let quoted = |line: &str| line.split('"').nth(1).unwrap().to_string();
    let (mut names, mut rests) = (HashMap::new(), HashMap::<String, String>::new());
    for line in file.lines() {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match words[..] {
            ["5", alias, "R", _] => {
                let text = quoted(line);
                let (number, rest) = text.split_once(' ').unwrap();
                assert_eq!(alias, format!("vr{number}"));
                rests.insert(number.into(), rest.into());
            }
            ["5", alias, ..] | ["6", _, alias, ..] => {
                names.insert(alias.to_string(), quoted(line));
            }
            _ => {}
        }
    }
    let whole = |written: String| {
        let mut written = written;
        while let Some((head, rest)) = written.split_once("%+") {
            written = format!("{head}{}", rests[rest]);
        }
        read_name(&written).unwrap()
    };
    names.into_iter().map(|(alias, written)| (alias, whole(written))).collect()
}

#[test]
fn any_name_is_read_back_and_no_line_is_too_long_for_vite() {
    let mut names = long_names();
    names.extend(HOSTILE_NAMES.map(String::from));
    let (actors, emit) = named(&names);
    let file = written(&actors, &emit);
    check_clean(&file);
    assert!(file.split(|byte| *byte == b'\n').all(|line| line.len() < 4096));

    let read = names_in(&file);
    for (index, name) in names.iter().enumerate() {
        assert_eq!(read[&format!("t{index}")], actors.thread_label(ThreadId(index as u32)));
        // The first values are the names of spans, in the order of their first use.
        assert_eq!(&read[&format!("vn{}", index + 1)], name);
    }
}

#[test]
fn names_of_containers_are_unique() {
    let mut actors = known_timelines::actors(11_000);
    let (process, main) = (actors.processes[0].clone(), actors.threads[0]);
    actors.processes.push(Process { pid: Some(Pid(90)), ..process });
    let elsewhere = ProcessId(actors.processes.len() as u32 - 1);
    actors.threads.splice(1..1, [ThreadActor { process: elsewhere, ..main }; 2]);
    actors.threads[4].name = Some(actors.thread_names.add("a, b"));
    actors.name = "spans of 2 work/6 \"x\"".into();
    let file = written(&actors, |sink| {
        let (track, slice) = (Track::Thread(ThreadId(3)), Slice { kind: SliceKind::Span, name: "s" });
        sink.change(Ticks(1000), &Change::Enter(track, slice))?;
        sink.change(Ticks(1000), &Change::Leave(track, SliceKind::Span))?;
        sink.finish()
    });
    check_clean(&file);
    let names = names_in(&file);
    let threads: Vec<&str> = ["t0", "t1", "t2", "t3", "t4", "ts3"].map(|alias| names[alias].as_str()).into();
    assert_eq!(
        threads,
        [
            "1 main @ sumtime (70)",
            "1 main @ sumtime (90)",
            "1 main @ sumtime (90) #2",
            "2 work/6 \"x\"",
            "3 a, b",
            "spans of 2 work/6 \"x\" #2",
        ]
    );
    assert!(std::str::from_utf8(&file).unwrap().contains(" t4 T p0 \"3 a%2C b\"\n"));
}

#[test]
fn the_object_that_a_thread_waits_for_is_a_field_of_its_state() {
    let blocked = |blocked_on| Change::Thread {
        thread: ThreadId(0),
        state: Some(ThreadState::Blocked),
        lwp: None,
        cpu: None,
        blocked_on,
        blocked_for: None,
    };
    let file = written(&known_timelines::actors(11_000), |sink| {
        sink.change(Ticks(1000), &blocked(Some(0x7ffe_1234)))?;
        sink.change(Ticks(3500), &blocked(None))?;
        sink.finish()
    });
    check_clean(&file);
    let file = String::from_utf8(file).unwrap();
    let sets: Vec<&str> = file.lines().filter(|line| line.contains(" ST t0 ")).collect();
    assert_eq!(sets, ["15 0.000000000 ST t0 vt8 0x7ffe1234", "8 0.000001000 ST t0 vt8"]);
}

#[test]
fn a_file_that_cannot_be_written_is_an_error() {
    /// An output that fails after this many bytes.
    struct Full(usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let fits = bytes.len().min(self.0);
            self.0 -= fits;
            if fits == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(fits) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let random = RandomTimeline::new(1, 20_000);
    let size = written(&random.actors, |sink| random.emit(sink)).len();
    for room in [0, 100, 70_000, size - 1] {
        let emitted =
            Paje::new(Full(room), Arc::new(random.actors.clone())).and_then(|mut p| random.emit(&mut p));
        assert_eq!(
            emitted.unwrap_err().kind(),
            io::ErrorKind::StorageFull,
            "room for {room} of {size} bytes"
        );
    }
}
