//! The checker of Pajé files reports every fault, and only faults.

use sigmund_export::sinks::paje::{FaultKind, Report, check, is_paje};

use crate::{known_timelines, paje::written};

fn small() -> String {
    String::from_utf8(written(&known_timelines::actors(11_000), known_timelines::small)).unwrap()
}

fn checked(file: &str) -> Report {
    check(file.as_bytes()).unwrap()
}

#[test]
fn a_valid_file_has_no_faults_and_is_counted() {
    let report = checked(&small());
    assert_eq!((report.faults.as_slice(), report.more_faults), (&[][..], 0));
    assert_eq!(report.lines, small().lines().count() as u64);
    let counts = ["PajeStartLink", "PajeEndLink", "PajePushState", "PajeNewEvent", "PajeSetVariable"];
    assert_eq!(counts.map(|event| report.count(event)), [4, 4, 5, 1, 4]);
    assert_eq!(report.count("PajeCreateContainer"), report.count("PajeDestroyContainer"));
}

/// A fault planted in the small timeline.
#[derive(Debug)]
pub(crate) struct Planted {
    kind: FaultKind,
    /// A text that occurs once, and its replacement.
    from: &'static str,
    to: &'static str,
    /// A part of the description.
    what: &'static str,
    /// Whether pj_dump 1.3.6 also rejects it.
    pub(crate) refused_by_pj_dump: bool,
}

impl Planted {
    pub(crate) fn file(&self) -> String {
        let small = small();
        assert_eq!(small.matches(self.from).count(), 1, "{:?}", self.from);
        small.replace(self.from, self.to)
    }
}

/// Files with one fault each, and the expected report.
pub(crate) fn planted() -> Vec<Planted> {
    use FaultKind::*;
    let leave_span = "10 0.000004000 S40 ts0\n";
    let ready = "8 0.000001000 ST t1 vt1\n";
    let value = "5 vn1 S40 \"outer\"";
    let passed = [
        (
            TimeGoesBack,
            ready,
            "8 0.000000900 ST t1 vt1\n",
            "expected a time from 0.000001 on, found 0.0000009",
        ),
        (NotPopped, leave_span, "", "1 states of \"ts0\" were pushed"),
        (UndeclaredValue, ready, "8 0.000001000 ST t1 wrong\n", "no value \"wrong\""),
        (UndeclaredValue, ready, "8 0.000001000 ST t1 vl1\n", "no value \"vl1\""),
        (NotDestroyed, "7 0.000004000 L l2\n", "", "\"l2\" is not destroyed"),
        (NameUsedTwice, "\"thread 3\"", "\"1 main\"", "\"1 main\" is already a name"),
        (NameUsedTwice, "5 vt1 ST \"ready\"", "5 vt1 ST \"new\"", "value \"new\" already"),
        (Fields, "\"thread 3\"", "thread 3", "expected 5 fields, found 6"),
        (Header, "%\tParameters string\n%EndEventDef\n", "%\tParameters string\n", "has no EndEventDef"),
        (
            UndefinedContainer,
            "7 0.000004000 M m0\n",
            "7 0.000004000 M m0\n7 0.000004000 M m0\n",
            "is destroyed",
        ),
        (Fields, ready, "8 soon ST t1 vt1\n", "\"soon\" does not have the type of its field"),
        (
            Fields,
            "12 0.000001000 VP p0 1\n",
            "12 0.000001000 VP p0 one\n",
            "\"one\" does not have the type of its field",
        ),
        (Fields, "\"thread 3\"\n", "\"thread 3\n", "expected a quote after \"thread 3\""),
        (
            Fields,
            "\"active\" \"0.000 0.700 0.000\"",
            "\"active\" \"0.000 7.000 0.000\"",
            "does not have the type of its field",
        ),
    ];
    let refused = [
        (NothingToPop, leave_span, "10 0.000004000 S40 ts0\n10 0.000004000 S40 ts0\n", "has no state"),
        (Header, "%EventDef PajePopState", "%\n%EventDef PajePopState", "expected EventDef"),
        (UndefinedType, ready, "8 0.000001000 XX t1 vt1\n", "type \"XX\" is not defined"),
        (WrongType, ready, "8 0.000001000 SL t1 vl1\n", "does not belong to the container type of \"t1\""),
        (WrongType, ready, "8 0.000001000 VP t1 vt1\n", "is a type of Variable"),
        (WrongType, "7 0.000004000 T t2\n", "7 0.000004000 L t2\n", "\"t2\" is not a container of that type"),
        (WrongType, "6 0.000000000 t2 T p0", "6 0.000000000 t2 T m0", "cannot be created in this container"),
        (WrongType, "K88 m0 t1 vw88 2", "K88 m0 l1 vw88 2", "cannot be at \"l1\""),
        (UndefinedContainer, ready, "8 0.000001000 ST t9 vt1\n", "\"t9\" was not created"),
        (LinkNotPaired, "14 0.000001000 K88 m0 t1 vw88 2\n", "", "link \"2\" has no end"),
        (LinkNotPaired, "13 0.000001000 K88 m0 t0 vw88 2\n", "", "link \"2\" has not started"),
        (NameUsedTwice, value, "5 vn1 S40 \"outer\" \"0 0 0\"\n5 vn1 S40 \"other\"", "value \"vn1\" already"),
        (UnknownEvent, ready, "80 0.000001000 ST t1 vt1\n", "event 80 is not declared"),
        (Header, "%EventDef PajePopState 10", "%EventDef PajePopState 9", "event 9 is declared twice"),
        (Header, "%EventDef PajePopState", "%EventDef PajePop", "expected an event of Pajé, found PajePop"),
        (Header, "%\tStartContainerType string\n", "", "lacks the fields [\"StartContainerType\"]"),
        (Header, "%\tWaitsFor string", "%\tWaitsFor text", "expected the type of WaitsFor, found text"),
        (Fields, ready, "8 0.000001000 ST t1\n", "expected 4 fields, found 3"),
    ];
    let fault = |refused_by_pj_dump| {
        move |(kind, from, to, what)| Planted { kind, from, to, what, refused_by_pj_dump }
    };
    passed.into_iter().map(fault(false)).chain(refused.into_iter().map(fault(true))).collect()
}

#[test]
fn each_fault_is_reported_for_its_line() {
    let small = small();
    for planted in planted() {
        let report = checked(&planted.file());
        let Planted { kind, from, to, what, .. } = planted;
        let found = report.faults.first().unwrap_or_else(|| panic!("{kind:?} is not found: {to:?}"));
        assert!(found.kind == kind && found.what.contains(what), "{kind:?}, {to:?}: {found}");
        if !to.is_empty() && !matches!(kind, FaultKind::NotPopped | FaultKind::Header) {
            let lines = small[..small.find(from).unwrap()].lines().count() as u64;
            assert!(
                (lines..=lines + 2).contains(&found.line),
                "{kind:?}, {to:?}: {found}, not in line {lines}"
            );
        }
    }
}

#[test]
fn a_truncated_file_has_a_fault_and_never_panics() {
    let small = small();
    for end in (0..small.len()).step_by(7).filter(|end| small.is_char_boundary(*end)) {
        let report = checked(&small[..end]);
        let in_definitions = report.count("PajeCreateContainer") == 0;
        assert!(in_definitions || end + 1 >= small.len() || !report.faults.is_empty(), "cut at {end}");
    }
}

#[test]
fn a_file_with_changed_bytes_never_panics() {
    let small = small().into_bytes();
    let mut dice = 1_u64;
    let mut faulty = 0;
    for _ in 0..2000 {
        let mut file = small.clone();
        for _ in 0..3 {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            file[(dice >> 33) as usize % small.len()] = (dice >> 20) as u8;
        }
        faulty += usize::from(!check(file.as_slice()).unwrap().faults.is_empty());
    }
    assert!(faulty > 1000, "{faulty}");
}

#[test]
fn random_bytes_cost_no_memory_and_many_faults_are_counted() {
    let report = checked(&"x\n".repeat(10_000));
    assert_eq!((report.faults.len(), report.more_faults), (100, 9900));
    let mut long = vec![b'x'; 40 << 20];
    long.extend_from_slice(b"\n\xff\xfe\0\n\"\n");
    let report = check(long.as_slice()).unwrap();
    assert_eq!((report.lines, report.faults.len()), (3, 3));
    assert!(report.faults[0].what.contains("expected at most"), "{}", report.faults[0]);
}

/// Fields in another order, names instead of aliases, comments, blanks: as in files of other programs.
#[test]
fn the_format_is_read_in_all_its_forms() {
    let file = "\
# A comment
% EventDef PajeDefineContainerType 1
%    Name string   # Comment
%    Type string
% EndEventDef
%EventDef PajeDefineStateType 2
% Type string
% Name string
%EndEventDef
%EventDef PajeDefineEntityValue 3
% Name string
% Type string
%EndEventDef
%EventDef PajeCreateContainer 4
% Name string
% Container string
% Type string
% Time date
%EndEventDef
%EventDef PajeDestroyContainer 5
% Time date
% Name string
% Type string
%EndEventDef
%EventDef PajeSetState 6
% Value string
% Type string
% Container string
% Time date
% Line int
%EndEventDef
%EventDef PajeResetState 7
% Time date
% Type string
% Container string
%EndEventDef

1 thread 0
2 thread \"what it does\"
3 works \"what it does\"
4 \"a thread\" 0 thread 0
6 works \"what it does\" \"a thread\" 1.5e-3 17
7 2 \"what it does\" \"a thread\"
5 2 \"a thread\" thread
";
    assert_eq!(checked(file).faults, []);
}

#[test]
fn a_file_is_recognised_by_its_first_declaration() {
    let is = |head: &str| is_paje(head.as_bytes());
    assert!(is(&small()));
    assert!(is("%EventDef PajeSetState 1\n") && is("# made by x\n\n  % EventDef PajeSetState 1\n"));
    assert!(
        !is("") && !is("# only a comment\n") && !is("%PDF-1.7\n") && !is("x\n%EventDef PajeSetState 1\n")
    );
}
