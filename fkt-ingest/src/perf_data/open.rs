//! Opening: the header, then one pass over all records.

use std::path::Path;
use std::sync::Arc;

use sigmund_files::Folder;
use sigmund_model::{ClockDomain, Loss, LossKind, Severity};

use super::PerfData;
use super::decode::RecordDecoder;
use super::described::Described;
use super::file_header::{self, EarlyEnd, PerfHeader};
use super::index::{AttrSource, Index, RecordingFacts};
use super::record::Attrs;
use super::record_cursor::RecordRange;
use crate::cut::ByteOrder;
use crate::error::{Error, ErrorKind, ParseError};
use crate::input::Input;
use crate::losses::kernel_loss;

/// The file of a directory that has the header.
const DATA: &str = "data";

impl PerfData {
    /// Maps the file, and reads it once to find the records of each CPU. `path` may be a directory written by `perf
    /// record --threads`.
    ///
    /// # Errors
    /// If the file cannot be mapped, is not a perf.data, its records have no time or cannot be attributed to an
    /// event, or its header is damaged.
    pub fn open(path: &Path) -> Result<PerfData, Error> {
        match path.is_dir() {
            true => PerfData::open_directory(path),
            false => PerfData::read(Input::open(path)?),
        }
    }

    /// Whether a folder was written by `perf record --threads`.
    pub(crate) fn is_perf_directory(path: &Path) -> bool {
        let data = Folder::open(path).map(|folder| Input::open_in(&folder, DATA.as_ref()));
        data.is_ok_and(|data| data.is_ok_and(|data| PerfData::is_perf_data(data.bytes())))
    }

    /// `data` has the header; `data.0`, `data.1`, … are records. Symbolic links are refused.
    fn open_directory(path: &Path) -> Result<PerfData, Error> {
        let folder = Folder::open(path).map_err(|error| Error::io(path, error))?;
        let names = folder.names().map_err(|error| Error::io(path, error))?;
        let numbered = names.into_iter().filter_map(|name| {
            let number: u32 = name.to_str()?.strip_prefix("data.")?.parse().ok()?;
            Some((number, name))
        });
        let mut numbered: Vec<_> = numbered.collect();
        numbered.sort();
        let mut others = Vec::new();
        for (_, name) in &numbered {
            let input = Input::open_in(&folder, name)?;
            // An empty file belongs to a CPU that recorded nothing.
            if input.len() > 0 {
                others.push(input);
            }
        }
        PerfData::read_files(Input::open_in(&folder, DATA.as_ref())?, others)
    }

    pub(crate) fn read(input: Input) -> Result<PerfData, Error> {
        PerfData::read_files(input, Vec::new())
    }

    fn read_files(input: Input, others: Vec<Input>) -> Result<PerfData, Error> {
        let PerfHeader { mut described, record_range, is_pipe, cut } = file_header::read(&input)?;
        let (name, order) = (input.name(), record_range.order);
        let mut recording_facts = RecordingFacts::default();
        recording_facts.losses.extend(cut.map(|cut| loss_of(&cut, &record_range)));
        let at = record_range.from;
        let read = match is_pipe {
            true => read_pipe(record_range, &mut described, &mut recording_facts),
            false => read_ranges(record_range, others, &mut described, &mut recording_facts),
        };
        let (attrs, files) = read.map_err(|why| {
            let expected = "attributes that determine the positions of time and id in a record".to_owned();
            let parse_error = ParseError { at, part: "attributes", expected, found: why.to_owned() };
            Error::at(ErrorKind::Unsupported, input.path(), parse_error)
        })?;
        note_undeclared(&mut described);
        recording_facts.losses.extend(described.tracing.iter_mut().flat_map(|data| data.losses.drain(..)));
        recording_facts.losses.extend(described.unreadable.drain(..).map(|(part, found)| {
            let detail = format!("{name}: {part}: {found}");
            kernel_loss(LossKind::Damaged, Severity::Serious, None, detail)
        }));
        recording_facts.finish(&name, files.iter().map(|(_, index)| index));
        let whole_cpus = files.iter().any(|(_, index)| index.whole_cpus);
        let clock_pair = described.clock_pair;
        let clock = attrs.list().iter().find(|attr| attr.sample.time.is_some()).map(|attr| attr.clock());
        Ok(PerfData {
            format: format_name(is_pipe, &files, order),
            clock: clock.unwrap_or(ClockDomain::Local),
            decoder: Arc::new(RecordDecoder::new(&described, attrs, whole_cpus)),
            files,
            lwp_names: recording_facts.lwp_names,
            facts: facts(described),
            time_conv: recording_facts.time_conv,
            clock_pair,
            losses: recording_facts.losses,
        })
    }
}

/// The attributes, and each file with its index; or the reason why records cannot be attributed to events.
type IndexedFiles = Result<(Attrs, Vec<(RecordRange, Index)>), &'static str>;

fn read_pipe(
    record_range: RecordRange,
    described: &mut Described,
    recording_facts: &mut RecordingFacts,
) -> IndexedFiles {
    let mut attrs = None;
    let index = Index::read(&record_range, &mut AttrSource::Pipe(described, &mut attrs), recording_facts)?;
    described.name_attrs();
    let attrs = match attrs {
        Some(attrs) => attrs,
        None => Attrs::new(described.attrs.clone())?,
    };
    Ok((attrs, vec![(record_range, index)]))
}

fn read_ranges(
    first: RecordRange,
    others: Vec<Input>,
    described: &mut Described,
    recording_facts: &mut RecordingFacts,
) -> IndexedFiles {
    described.name_attrs();
    let attrs = Attrs::new(described.attrs.clone())?;
    let order = first.order;
    let whole = |input: Input| RecordRange { order, from: 0, to: input.len(), input };
    let mut files = Vec::new();
    for record_range in std::iter::once(first).chain(others.into_iter().map(whole)) {
        let index = Index::read(&record_range, &mut AttrSource::File(&attrs), recording_facts)?;
        files.push((record_range, index));
    }
    Ok((attrs, files))
}

/// Tracepoints whose fields are unknown: their events are `unknown(id, size)`.
fn note_undeclared(described: &mut Described) {
    if described.tracing.is_none() && described.attrs.iter().any(|attr| attr.is_tracepoint()) {
        described.unreadable.push(("fields of tracepoints", "their declarations are missing".to_owned()));
    }
}

fn loss_of(cut: &EarlyEnd, record_range: &RecordRange) -> Loss {
    let (kind, at, part, expected, found) = match cut {
        EarlyEnd::Unfinished => {
            (LossKind::Unfinished, 48, "header", "the size of the records".to_owned(), "0".to_owned())
        }
        EarlyEnd::Truncated => (
            LossKind::Truncated,
            record_range.from,
            "records",
            format!("records up to byte {}", record_range.to),
            format!("the end of the file at {}", record_range.input.len()),
        ),
    };
    let parse_error = ParseError { at, part, expected, found };
    kernel_loss(kind, Severity::Gap, None, format!("{}: {parse_error}", record_range.input.name()))
}

/// `perf.data, pipe, zstd, big endian`
fn format_name(is_pipe: bool, files: &[(RecordRange, Index)], order: ByteOrder) -> String {
    let parts = [
        (is_pipe, ", pipe"),
        (files.len() > 1, ", directory"),
        (files.iter().any(|(_, index)| index.packed), ", zstd"),
        (order == ByteOrder::Big, ", big endian"),
    ];
    let parts = parts.iter().filter(|(is, _)| *is).map(|(_, name)| *name);
    std::iter::once("perf.data").chain(parts).collect()
}

/// Facts, with the same key `uname` as other formats.
fn facts(described: Described) -> Vec<(String, String)> {
    let mut facts = described.facts;
    let fact = |key: &str| facts.iter().find(|(k, _)| k == key).map_or("", |(_, value)| value.as_str());
    let uname = format!("Linux {} {} {}", fact("host"), fact("kernel"), fact("arch"));
    if !facts.is_empty() {
        facts.push(("uname".to_owned(), uname));
    }
    facts
}
