//! Opens a trace file of any format, which is recognised by the content.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::ctf;
use crate::error::{Error, ErrorKind, ParseError};
use crate::event_names::EventNames;
use crate::ftrace_text::FtraceText;
use crate::fxt::Fxt;
use crate::input::Input;
use crate::perf_data::PerfData;
use crate::trace_dat::TraceDat;
use crate::trace_file::TraceFile;

/// Opens the trace at `path`: one trace for a file; a folder may hold several (those of an LTTng session).
///
/// A file must not be truncated by another process while it is open: the system would end this process (SIGBUS), as
/// with every mapped file.
///
/// # Errors
/// If the input cannot be read, has an unknown format, or its header is damaged. After a readable header, everything
/// readable is kept; the rest is among the losses of the trace and of its streams.
pub fn open(path: &Path) -> Result<Vec<Box<dyn TraceFile>>, Error> {
    open_with(path, &OpenOptions::default())
}

/// What the user knows about a trace and the trace itself does not contain.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// Names of events that the trace only numbers.
    pub event_names: EventNames,
}

/// Like [`open`], with what the user knows about the trace.
///
/// # Errors
/// Like [`open`].
pub fn open_with(path: &Path, options: &OpenOptions) -> Result<Vec<Box<dyn TraceFile>>, Error> {
    if path.is_dir() {
        let traces = ctf::open_folder(path)?;
        if !traces.is_empty() {
            return Ok(traces);
        }
        if PerfData::is_perf_directory(path) {
            return Ok(vec![Box::new(PerfData::open(path)?)]);
        }
        let expected = "a CTF trace, or a perf.data of several files".to_owned();
        let parse_error = ParseError { at: 0, part: "folder", expected, found: "none".to_owned() };
        return Err(Error::at(ErrorKind::NotThisFormat, path, parse_error));
    }
    open_mapped(Input::open(path)?, path, options)
}

/// Opens the trace in an open file. `path` is used in messages; for a CTF metadata file it also locates the streams.
///
/// # Errors
/// Like [`open`].
pub fn open_file(path: &Path, file: File, options: &OpenOptions) -> Result<Vec<Box<dyn TraceFile>>, Error> {
    open_mapped(Input::of_file(path, file)?, path, options)
}

fn open_mapped(input: Input, path: &Path, options: &OpenOptions) -> Result<Vec<Box<dyn TraceFile>>, Error> {
    if ctf::is_metadata(input.bytes()) {
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        return Ok(vec![Box::new(ctf::CtfTrace::open(folder)?)]);
    }
    Ok(vec![open_input(input, options)?])
}

/// Opens a trace in memory; `name` is used in messages.
///
/// # Errors
/// Like [`open`].
pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<Box<dyn TraceFile>, Error> {
    from_bytes_with(name, bytes, &OpenOptions::default())
}

/// Like [`from_bytes`], with what the user knows about the trace.
///
/// # Errors
/// Like [`open`].
pub fn from_bytes_with(
    name: &str,
    bytes: Vec<u8>,
    options: &OpenOptions,
) -> Result<Box<dyn TraceFile>, Error> {
    open_input(Input::from_bytes(&PathBuf::from(name), bytes), options)
}

fn open_input(input: Input, options: &OpenOptions) -> Result<Box<dyn TraceFile>, Error> {
    let head = input.bytes();
    if TraceDat::is_trace_dat(head) {
        return Ok(Box::new(TraceDat::read(input)?));
    }
    if PerfData::is_perf_data(head) {
        return Ok(Box::new(PerfData::read(input)?));
    }
    if Fxt::is_fxt(head) {
        return Ok(Box::new(Fxt::read(input, &options.event_names)?));
    }
    if FtraceText::is_ftrace_text(head) {
        return Ok(Box::new(FtraceText::read(input)));
    }
    let found = format!("{:?}", head[..head.len().min(16)].escape_ascii().to_string());
    let expected = "a trace.dat, a perf.data, a CTF trace, an FxT trace or a text of ftrace".to_owned();
    let parse_error = ParseError { at: 0, part: "magic", expected, found };
    Err(Error::at(ErrorKind::NotThisFormat, input.path(), parse_error))
}
