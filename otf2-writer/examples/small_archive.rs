//! Writes a small archive: `cargo run -p otf2-writer --example small_archive DIRECTORY`, then
//! `otf2-print DIRECTORY/traces.otf2`.
//!
//! ```text
//! time in us       0        10        20        30        40
//! main             |--------------- solve ----------------|
//!                       |-- step --|    |---- step ----|
//! residual         1.0              0.5                0.25   (a metric)
//! ```

use std::{io, path::Path};

use otf2_writer::{
    Archive, AttributeValue, Base, ClockProperties, Event, LocationGroupType, LocationId, LocationType,
    MetricMember, MetricMode, MetricOccurrence, MetricValue, Options, Paradigm, RecorderKind, Region,
    RegionRole, StringId, SystemTreeDomain, Type,
};

fn main() -> io::Result<()> {
    let directory = std::env::args_os().nth(1).ok_or_else(|| io::Error::other("small_archive DIRECTORY"))?;
    write_archive(Path::new(&directory))
}

pub(crate) fn write_archive(directory: &Path) -> io::Result<()> {
    // Ticks of 1 us.
    let clock = ClockProperties { resolution: 1_000_000, offset: 0, length: 40, realtime: None };
    let options = Options {
        machine: "localhost".into(),
        creator: "small_archive".into(),
        description: "two steps of a solver".into(),
        ..Options::default()
    };
    let mut archive = Archive::create(directory, clock, options)?;
    let definitions = archive.definitions();

    // A machine with one process.
    let (name, class) = (definitions.string("localhost")?, definitions.string("machine")?);
    let machine = definitions.system_tree_node(name, class, None)?;
    definitions.system_tree_node_domain(machine, SystemTreeDomain::Machine)?;
    let name = definitions.string("solver (1234)")?;
    let process = definitions.location_group(name, LocationGroupType::Process, machine)?;

    // Two functions; a step has a number.
    let mut function = |name: &str| {
        let name = definitions.string(name)?;
        let (description, role) = (StringId::EMPTY, RegionRole::Function);
        definitions.region(Region { name, description, role, paradigm: Paradigm::User })
    };
    let (solve, step) = (function("solve")?, function("step")?);
    let name = definitions.string("number")?;
    let number = definitions.attribute(name, StringId::EMPTY, Type::U64)?;

    // A metric of one quantity.
    let (name, unit) = (definitions.string("residual")?, definitions.string("1")?);
    let residual = definitions.metric_member(MetricMember {
        name,
        description: StringId::EMPTY,
        mode: MetricMode::AbsoluteNext,
        ty: Type::F64,
        base: Base::Decimal,
        exponent: 0,
        unit,
    })?;
    let residual =
        definitions.metric_class(&[residual], MetricOccurrence::Asynchronous, RecorderKind::Cpu)?;

    let name = definitions.string("main")?;
    let main = archive.add_location(LocationId(0), name, LocationType::CpuThread, process)?;
    let value = |value| [MetricValue::F64(value)];
    archive.write(main, 0, Event::Enter(solve), &[])?;
    archive.write(main, 0, Event::Metric(residual, &value(1.0)), &[])?;
    archive.write(main, 5, Event::Enter(step), &[(number, AttributeValue::U64(1))])?;
    archive.write(main, 16, Event::Leave(step), &[])?;
    archive.write(main, 17, Event::Metric(residual, &value(0.5)), &[])?;
    archive.write(main, 21, Event::Enter(step), &[(number, AttributeValue::U64(2))])?;
    archive.write(main, 36, Event::Leave(step), &[])?;
    archive.write(main, 36, Event::Metric(residual, &value(0.25)), &[])?;
    archive.write(main, 40, Event::Leave(solve), &[])?;
    archive.finish()
}
