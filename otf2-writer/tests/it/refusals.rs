//! Calls that return errors; the cache of texts.

use std::{fs, io::ErrorKind, path::Path};

use otf2_writer::{
    Archive, ClockProperties, Event, GroupType, Location, LocationGroupType, LocationId, LocationType,
    MetricMemberId, MetricOccurrence, MetricValue, Options, Paradigm, RecorderKind, RegionId, StringId,
};

const CLOCK: ClockProperties = ClockProperties { resolution: 1, offset: 0, length: 100, realtime: None };

fn with_one_location(folder: &Path) -> (Archive, Location) {
    let mut archive = Archive::create(folder, CLOCK, Options::default()).unwrap();
    let name = archive.definitions().string("a").unwrap();
    let machine = archive.definitions().system_tree_node(name, name, None).unwrap();
    let group = archive.definitions().location_group(name, LocationGroupType::Process, machine).unwrap();
    let location = archive.add_location(LocationId(3), name, LocationType::CpuThread, group).unwrap();
    let again = archive.add_location(LocationId(3), name, LocationType::CpuThread, group);
    assert_eq!(again.unwrap_err().kind(), ErrorKind::InvalidInput);
    (archive, location)
}

#[test]
fn decreasing_time_at_a_location_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (mut archive, location) = with_one_location(folder.path());
    archive.write(location, 10, Event::Enter(RegionId(0)), &[]).unwrap();
    archive.write(location, 10, Event::Leave(RegionId(0)), &[]).unwrap();
    let error = archive.write(location, 9, Event::Enter(RegionId(0)), &[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(
        error.to_string().contains("event at 9, before the previous event of this location at 10"),
        "{error}"
    );
}

#[test]
fn no_event_can_be_written_to_a_finished_archive() {
    let folder = tempfile::tempdir().unwrap();
    let (mut archive, location) = with_one_location(folder.path());
    assert!(!folder.path().join("traces.otf2").exists(), "readers cannot open an unfinished archive");
    archive.finish().unwrap();
    assert!(folder.path().join("traces.otf2").exists());
    assert!(archive.write(location, 10, Event::Enter(RegionId(0)), &[]).is_err());
}

#[test]
fn an_existing_archive_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let (mut archive, _) = with_one_location(folder.path());
    archive.finish().unwrap();
    let error = Archive::create(folder.path(), CLOCK, Options::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
}

#[test]
fn chunks_that_libotf2_does_not_read_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for event_chunk in [4096, 17 << 20] {
        let options = Options { event_chunk, ..Options::default() };
        let error = Archive::create(folder.path(), CLOCK, options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
}

#[test]
fn a_definition_that_does_not_fit_into_a_chunk_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (mut archive, _) = with_one_location(folder.path());
    let members = vec![1 << 60; 1 << 20];
    let definitions = archive.definitions();
    definitions.group(StringId::EMPTY, GroupType::Regions, Paradigm::None, &members).unwrap();
    assert_eq!(archive.finish().unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn a_text_keeps_its_id_until_the_cache_of_texts_is_cleared() {
    let folder = tempfile::tempdir().unwrap();
    let mut archive = Archive::create(folder.path(), CLOCK, Options::default()).unwrap();
    let definitions = archive.definitions();
    let first = definitions.string("a").unwrap();
    assert_eq!(definitions.string("").unwrap(), StringId::EMPTY);
    assert_eq!(definitions.string("a").unwrap(), first);
    for number in 0..17 {
        definitions.string(&format!("{number:020}").repeat(50_000)).unwrap();
    }
    let again = definitions.string("a").unwrap();
    assert!(again > first);
    assert_eq!(definitions.string("a").unwrap(), again);
}

#[test]
fn a_file_that_cannot_be_written_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (mut archive, location) = with_one_location(folder.path());
    fs::remove_dir(folder.path().join("traces")).unwrap();
    let write = |archive: &mut Archive, time| archive.write(location, time, Event::Enter(RegionId(0)), &[]);
    let failed = (0..100_000).find_map(|time| write(&mut archive, time).err());
    assert_eq!(failed.map(|error| error.kind()), Some(ErrorKind::NotFound));
}

// The format stores the number of members in one byte.
#[test]
fn a_metric_of_more_than_255_values_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (mut archive, location) = with_one_location(folder.path());
    let members = vec![MetricMemberId(0); 256];
    let (occurrence, recorder) = (MetricOccurrence::Asynchronous, RecorderKind::Cpu);
    let mut class =
        |count: usize| archive.definitions().metric_class(&members[..count], occurrence, recorder);
    let metric = class(255).unwrap();
    assert_eq!(class(256).unwrap_err().kind(), ErrorKind::InvalidInput);
    let values = vec![MetricValue::U64(1); 256];
    archive.write(location, 10, Event::Metric(metric, &values[..255]), &[]).unwrap();
    let error = archive.write(location, 10, Event::Metric(metric, &values), &[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}
