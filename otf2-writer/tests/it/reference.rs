//! Writes the same archive with libotf2's writer and with this crate: the bytes are the same.

use std::{fs, io, path::Path, process::Command};

use otf2_writer::{
    Archive, AttributeId, AttributeValue, Base, ClockProperties, CommId, Event, GroupId, GroupType,
    LocationGroupId, LocationGroupType, LocationId, LocationType, Lock, MetricId, MetricMember,
    MetricMemberId, MetricMode, MetricOccurrence, MetricScope, MetricValue, Options, Paradigm, ParadigmClass,
    RecorderKind, Region, RegionId, RegionRole, StringId, SystemTreeDomain, SystemTreeNodeId, ThreadNumber,
    Type,
};

use crate::tools;

/// Writes the same archive as `reference.c`.
fn write(folder: &Path) -> io::Result<()> {
    let clock = ClockProperties {
        resolution: 2_500_000_000,
        offset: 0,
        length: 300_000,
        realtime: Some(1_700_000_000_000_000_000),
    };
    let options = Options {
        event_chunk: 256 << 10,
        machine: "box".into(),
        creator: "a program".into(),
        description: "a description".into(),
        ..Options::default()
    };
    let mut archive = Archive::create(folder, clock, options)?;
    define(&mut archive)?;
    events(&mut archive)?;
    archive.finish()
}

fn events(archive: &mut Archive) -> io::Result<()> {
    let (comm, lock) = (CommId(0), Lock { model: Paradigm::Pthread, lock: 9, acquisition: 1 });
    let mut add = |id, name, ty| archive.add_location(LocationId(id), StringId(name), ty, LocationGroupId(0));
    let nothing = add(8, 4, LocationType::Unknown)?;
    let all = add(0, 1, LocationType::CpuThread)?;
    let many = add(5, 2, LocationType::CpuThread)?;
    let longest = add(6, 3, LocationType::Metric)?;
    assert_ne!(nothing, all);

    let mut write = |time, event| archive.write(all, time, event, &[]);
    write(1000, Event::ThreadBegin(comm, ThreadNumber(7)))?;
    write(1000, Event::Enter(RegionId(0)))?;
    let attributes = [
        (AttributeId(0), AttributeValue::U64(70000)),
        (AttributeId(1), AttributeValue::I64(-5)),
        (AttributeId(2), AttributeValue::String(StringId(300))),
        (AttributeId(3), AttributeValue::Location(LocationId(5))),
        (AttributeId(4), AttributeValue::F64(1.5)),
    ];
    archive.write(all, 2000, Event::Enter(RegionId(300)), &attributes)?;
    let mut write = |time, event| archive.write(all, time, event, &[]);
    write(2000, Event::Leave(RegionId(300)))?;
    let values = [MetricValue::U64(3), MetricValue::I64(-1), MetricValue::F64(0.25)];
    write(2500, Event::Metric(MetricId(1), &values))?;
    write(2600, Event::ThreadAcquireLock(lock))?;
    write(2700, Event::ThreadReleaseLock(lock))?;
    write(2800, Event::ThreadCreate(comm, ThreadNumber(8)))?;
    write(2900, Event::ThreadWait(comm, ThreadNumber(8)))?;
    write(2900, Event::ThreadFork(Paradigm::OpenMp, 70_000))?;
    write(2900, Event::ThreadTeamBegin(comm))?;
    write(2950, Event::ThreadTeamEnd(comm))?;
    write(2950, Event::ThreadJoin(Paradigm::OpenMp))?;
    write(3000, Event::Leave(RegionId(0)))?;
    write(3000, Event::ThreadEnd(comm, None))?;

    for i in 0..200_000 {
        archive.write(many, 1000 + i * 3 / 4, Event::Enter(RegionId((i % 70001) as u32)), &[])?;
    }
    let attributes: Vec<_> = (0..30).map(|id| (AttributeId(id), AttributeValue::U64(1 << 60))).collect();
    archive.write(longest, 1, Event::Enter(RegionId(0)), &attributes)?;
    archive.write(longest, 1, Event::Leave(RegionId(0)), &[])
}

fn define(archive: &mut Archive) -> io::Result<()> {
    let (empty, one, two, three, four) =
        (StringId::EMPTY, StringId(1), StringId(2), StringId(3), StringId(4));
    let defs = archive.definitions();
    assert_eq!(defs.string("name")?, one);
    for i in 2..600 {
        let length = if i < 20 { 240 + i } else { 10_000 };
        assert_eq!(defs.string(&format!("{i:09}{}", "x".repeat(length - 9)))?, StringId(i as u32));
    }
    defs.paradigm(Paradigm::Pthread, one, ParadigmClass::ThreadCreateWait)?;
    assert_eq!(defs.attribute(one, two, Type::U64)?, AttributeId(0));
    let machine = defs.system_tree_node(one, two, None)?;
    assert_eq!(defs.system_tree_node(three, four, Some(machine))?, SystemTreeNodeId(1));
    defs.system_tree_node_domain(machine, SystemTreeDomain::Machine)?;
    defs.system_tree_node_domain(SystemTreeNodeId(1), SystemTreeDomain::SharedMemory)?;
    let process = defs.location_group(one, LocationGroupType::Process, machine)?;
    let (role, paradigm) = (RegionRole::Artificial, Paradigm::MeasurementSystem);
    assert_eq!(defs.region(Region { name: one, description: two, role, paradigm })?, RegionId(0));
    let (role, paradigm) = (RegionRole::Unknown, Paradigm::Hardware);
    defs.region(Region { name: StringId(300), description: empty, role, paradigm })?;
    let queue = MetricMember {
        name: one,
        description: two,
        mode: MetricMode::AbsoluteNext,
        ty: Type::U64,
        base: Base::Decimal,
        exponent: 0,
        unit: three,
    };
    assert_eq!(defs.metric_member(queue)?, MetricMemberId(0));
    let mode = MetricMode::AbsolutePoint;
    let (ty, base, exponent) = (Type::F64, Base::Binary, -3);
    defs.metric_member(MetricMember { name: one, description: empty, mode, ty, base, exponent, unit: one })?;
    let members = [MetricMemberId(0), MetricMemberId(1)];
    let class = defs.metric_class(&members, MetricOccurrence::Asynchronous, RecorderKind::Abstract)?;

    // These are written after the locations.
    defs.metric_instance(class, LocationId(6), MetricScope::LocationGroup(process))?;
    assert_eq!(
        defs.metric_instance(class, LocationId(6), MetricScope::Location(LocationId(5)))?,
        MetricId(2)
    );
    defs.group(one, GroupType::Regions, Paradigm::Unknown, &[0, 300])?;
    defs.group(empty, GroupType::CommLocations, Paradigm::Pthread, &[0, 5])?;
    assert_eq!(defs.group(one, GroupType::CommGroup, Paradigm::Pthread, &[0, 1])?, GroupId(2));
    let many: Vec<u64> = (0..100_000).collect();
    defs.group(one, GroupType::Locations, Paradigm::None, &many)?;
    defs.group(one, GroupType::Regions, Paradigm::Compiler, &[0])?;
    defs.group(one, GroupType::Locations, Paradigm::Unknown, &[0])?;
    assert_eq!(defs.comm(one, GroupId(2))?, CommId(0));
    Ok(())
}

fn assert_same(ours: &Path, theirs: &Path, file: &str) {
    let (ours, theirs) = (fs::read(ours.join(file)).unwrap(), fs::read(theirs.join(file)).unwrap());
    let difference = ours.iter().zip(&theirs).position(|(ours, theirs)| ours != theirs);
    if let Some(at) = difference {
        let (from, to) = (at.saturating_sub(8), at + 24);
        let [ours, theirs] = [&ours, &theirs].map(|bytes| &bytes[from..to.min(bytes.len())]);
        panic!("{file} at {at}:\nours   {ours:02x?}\ntheirs {theirs:02x?}");
    }
    assert_eq!(ours.len(), theirs.len(), "{file}");
}

#[test]
fn the_files_equal_those_of_libotf2() {
    if !tools::all_there(&["cc", "pkg-config"]) || !tools::header_exists("otf2/otf2.h") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (ours, theirs) = (folder.path().join("ours"), folder.path().join("theirs"));
    let program = folder.path().join("reference");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/reference.c");
    let link = "cc -o \"$1\" \"$2\" $(pkg-config --cflags --libs otf2)";
    let mut cc = Command::new("sh");
    assert!(cc.args(["-c", link, "sh"]).arg(&program).arg(source).status().unwrap().success());
    assert!(Command::new(program).arg(&theirs).status().unwrap().success());
    write(&ours).unwrap();

    for location in [0, 5, 6, 8] {
        assert_same(&ours, &theirs, &format!("traces/{location}.evt"));
        assert_same(&ours, &theirs, &format!("traces/{location}.def"));
    }
    assert_same(&ours, &theirs, "traces.def");

    // The anchor file, except for the version of the library and the random trace id.
    let anchors = [&ours, &theirs].map(|folder| fs::read(folder.join("traces.otf2")).unwrap());
    let [ours, theirs] = anchors.map(|mut anchor| {
        let trace_id = anchor.len() - 3 - 8 - 8;
        anchor[9..12].fill(0);
        anchor[trace_id..trace_id + 8].fill(0);
        anchor
    });
    assert_eq!(ours, theirs);
}
