//! A run that was cut into parts, as inputs. The kernel side is one input, and so is each user trace. A part that is
//! missing, or that belongs to another recording, is a loss that names the part; the other parts are read.

use std::{
    collections::BTreeMap,
    fs::File,
    ops::Range,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicU64},
};

use fkt_ingest::TraceStream;
use fut::trace::{LwpPackets, UserTrace};
use sigmund_files::Folder;
use sigmund_model::{EventType, Level, Loss, LossKind, Severity, Ticks, tables::info_keys};

use super::{
    CarriedOver, Inputs, OpenedInput, carried,
    clock::Nothing,
    joined::{Piece, begun, joined},
    of_user_trace, open_file,
};
use crate::{
    error::Error,
    merge::MergeOptions,
    run::{Part, ProcessLwps, Rotation, UserSide, user_carried_name, user_part_name},
};

/// The parts of a run.
pub(super) struct Parts<'r> {
    path: &'r Path,
    run: &'r Folder,
    rotation: &'r Rotation,
    /// The parts that exist, by their numbers.
    there: BTreeMap<u32, Part>,
    losses: Vec<Loss>,
    kernel_skipped: Arc<AtomicU64>,
    user_skipped: Arc<AtomicU64>,
}

impl<'r> Parts<'r> {
    /// Reads the descriptions of the parts.
    ///
    /// # Errors
    /// If no part of the recording exists.
    pub(super) fn open(path: &'r Path, run: &'r Folder, rotation: &'r Rotation) -> Result<Parts<'r>, Error> {
        let (kernel_skipped, user_skipped) = (Arc::default(), Arc::default());
        let (there, losses) = (BTreeMap::new(), Vec::new());
        let mut parts = Parts { path, run, rotation, there, losses, kernel_skipped, user_skipped };
        for number in rotation.first..=rotation.last {
            match Part::read(run, number) {
                Ok(part) if part.recording == rotation.recording => {
                    parts.check_lengths(&part);
                    parts.there.insert(number, part);
                }
                Ok(part) => {
                    let (expected, found) = (&rotation.recording, &part.recording);
                    let what = format!("expected a part of recording {expected}, found one of {found}");
                    parts.lose(Level::Kern, &format!("{}: {what}", Part::name(number)));
                }
                Err(error) => parts.lose(Level::Kern, &format!("part {number} is missing: {error}")),
            }
            // A damaged manifest may name very many parts. The search for them must end.
            if parts.losses.len() > MOST_MISSING {
                break;
            }
        }
        if parts.there.is_empty() {
            let expected = format!("parts {} to {} of the recording", rotation.first, rotation.last);
            let found = parts.losses.first().map_or("none", |loss| loss.detail.as_str());
            return Err(Error::bad(path, "run.json", &expected, found));
        }
        Ok(parts)
    }

    /// Adds the facts, and what is missing.
    pub(super) fn describe(&self, about: &mut OpenedInput) {
        let Rotation { first, last, removed, .. } = self.rotation;
        about.facts.push((info_keys::PARTS.into(), format!("{first} to {last}")));
        if let Some(begins) = self.begins() {
            about.facts.push((info_keys::KEPT_FROM.into(), begins.0.to_string()));
            about.processes =
                self.first().iter().flat_map(|part| &part.processes).flat_map(ProcessLwps::pairs).collect();
            // These facts are about the whole recording.
            about.facts.retain(|(key, _)| !key.starts_with(info_keys::LWP_CPU_TIME));
        }
        if let Some(begins) = self.begins().filter(|_| *first > 1) {
            let note = |level, what: &str, count: u64| {
                let detail = format!(
                    "{}: {what} before part {}: the recording is limited, and parts 1 to {} were removed",
                    self.path.display(),
                    self.first().map_or(*first, |part| part.number),
                    first - 1
                );
                let advice = "a larger --max-size or --max-time keeps more";
                let loss = Loss::new(LossKind::Overwritten, level, detail);
                Loss { severity: Severity::Note, to: Some(begins), count: Some(count), advice, ..loss }
            };
            let kernel = note(Level::Kern, "events of the kernel", removed.kernel_events);
            let user = note(Level::User, "events of programs", removed.user_events);
            about.removed.push((kernel, Arc::clone(&self.kernel_skipped)));
            about.removed.push((user, Arc::clone(&self.user_skipped)));
        }
        about.losses.extend(self.losses.iter().cloned());
    }

    /// The kernel side; `None` if no part has a kernel side.
    pub(super) fn kernel_side(&self, inputs: &mut Inputs, options: &MergeOptions) -> Option<OpenedInput> {
        let mut opened: Vec<KernelPart> = Vec::new();
        let mut losses = Vec::new();
        for number in self.numbers() {
            let name = self.run.path_of(fkt_ingest::live::part_name(number)).display().to_string();
            let mut input = self.kernel_part(number, inputs, options).unwrap_or_else(|error| {
                let detail = format!("part {number} of the kernel side cannot be read: {error}");
                losses.push(Loss::new(LossKind::Truncated, Level::Kern, detail));
                None
            });
            let first = opened.iter().find_map(|part| part.input.as_ref());
            if input.as_ref().zip(first).is_some_and(|(input, first)| input.types != first.types) {
                let detail = format!("{name}: expected the events that other parts declare, found others");
                losses.push(Loss::new(LossKind::Damaged, Level::Kern, detail));
                input = None;
            }
            opened.push(KernelPart { name, ticks: self.ticks_of(number), input });
        }
        let first = opened.iter().position(|part| part.input.is_some())?;
        // The earlier parts have nothing that could be joined.
        let mut parts = opened.split_off(first);
        let mut whole = parts[0].input.take()?;
        let streams = std::mem::take(&mut whole.streams);
        for input in parts.iter_mut().filter_map(|part| part.input.as_mut()) {
            whole.losses.append(&mut input.losses);
            whole.lwp_names.append(&mut input.lwp_names);
            whole.snapshots.append(&mut input.snapshots);
        }
        whole.losses.append(&mut losses);
        let begins = self.begins().unwrap_or(Ticks(0));
        let join = |stream| joined(join_pieces(stream, &mut parts), begins, &self.kernel_skipped);
        whole.streams = streams.into_iter().map(join).collect();
        Some(whole)
    }

    /// The trace of a part; `None` if the part is missing, or was already given as an input.
    fn kernel_part(
        &self,
        number: u32,
        inputs: &mut Inputs,
        options: &MergeOptions,
    ) -> Result<Option<OpenedInput>, Error> {
        if !self.there.contains_key(&number) {
            return Ok(None);
        }
        let name = fkt_ingest::live::part_name(number);
        let path = self.run.path_of(&name);
        let file = self.run.open_file(&name).map_err(Error::io(&path))?;
        Ok(open_file(&path, file, inputs, options)?.pop())
    }

    /// A user trace; `None` if all of its files were already given as inputs.
    pub(super) fn user_side(
        &self,
        side: &UserSide,
        inputs: &mut Inputs,
    ) -> Result<Option<OpenedInput>, Error> {
        let path = self.run.path_of(&side.file);
        let (mut files, mut losses, mut missing) = (Vec::new(), Vec::new(), Vec::new());
        for number in &side.parts {
            let name = user_part_name(&side.file, *number);
            match self.user_part(*number, &name, inputs) {
                Ok(Some(file)) => {
                    // At its end, some packets of any LWP are missing.
                    missing.extend(Some(*number).filter(|_| self.is_shorter(*number, &name, &file)));
                    files.push((self.run.path_of(&name), file));
                }
                Ok(None) => {}
                Err(error) => {
                    let detail = format!("part {number} of a user trace cannot be read: {error}");
                    losses.push(Loss::new(LossKind::Truncated, Level::User, detail));
                    missing.push(*number);
                }
            }
        }
        if files.is_empty() && losses.is_empty() {
            return Ok(None);
        }
        let begins = self.begins();
        let mut user = if files.is_empty() {
            OpenedInput { numbers_its_threads: true, ..OpenedInput::new(&path) }
        } else {
            let trace = UserTrace::of_parts(&path, files, begins.is_some())?;
            inputs.take_packets(&path, &trace)?;
            for number in missing {
                losses.extend(trace.lwps().iter().map(|lwp| self.missing_part_of(lwp, number)));
            }
            let mut user = of_user_trace(&path, &trace);
            user.carried = self.carried_over(side, &path, (&trace, &user.types), &mut losses);
            user
        };
        user.losses.append(&mut losses);
        if let Some(begins) = begins {
            let streams = std::mem::take(&mut user.streams).into_iter();
            user.streams = streams.map(|stream| begun(stream, begins, &self.user_skipped)).collect();
        }
        Ok(Some(user))
    }

    /// What the recorder carried over from removed parts of a user trace; `None` if there is none.
    fn carried_over(
        &self,
        side: &UserSide,
        path: &Path,
        (trace, types): (&UserTrace, &[EventType]),
        losses: &mut Vec<Loss>,
    ) -> Option<CarriedOver> {
        let name = user_carried_name(&side.file, self.first()?.number);
        let file = self.run.open_file(&name).ok()?;
        let of = self.run.path_of(&name);
        let (carried, mut lost) = carried::read(&of, file, (trace, path), types, self.begins()?);
        losses.append(&mut lost);
        carried
    }

    /// What is unknown about an LWP because a part is missing. It is unknown from the LWP's last event in the earlier
    /// parts on.
    fn missing_part_of(&self, lwp: &LwpPackets, number: u32) -> Loss {
        let begun = self.there.range(..=number).next_back().map_or(0, |(_, part)| part.begins);
        let ends = lwp.heads().map(|head| head.last_tick).filter(|last| last.0 < begun);
        let detail = format!("{}: LWP {}: part {number} is missing", lwp.path().display(), lwp.lwp);
        let loss = Loss::new(LossKind::Truncated, Level::User, detail);
        let to = Some(self.ticks_of(number).end).filter(|end| end.0 < u64::MAX);
        Loss { lwp: Some(lwp.lwp), from: Some(ends.max().unwrap_or(Ticks(self.rotation.began))), to, ..loss }
    }

    /// Whether a file is shorter than it was when its part was closed.
    fn is_shorter(&self, number: u32, name: &str, file: &File) -> bool {
        let files = self.there.get(&number).map_or(&[][..], |part| &part.files);
        let then = files.iter().find(|of| of.name == name && !of.to_be_made).map_or(0, |of| of.bytes);
        file.metadata().is_ok_and(|now| now.len() < then)
    }

    /// Opens a file of a user trace, which must belong to this recording.
    fn user_part(&self, number: u32, name: &str, inputs: &mut Inputs) -> Result<Option<File>, Error> {
        let path: PathBuf = self.run.path_of(name);
        let file = self.run.open_file(name).map_err(Error::io(&path))?;
        if !inputs.take_file(&path, &file)? {
            return Ok(None);
        }
        let alone = UserTrace::of_file(&path, file.try_clone().map_err(Error::io(&path))?)?;
        let ticks = self.ticks_of(number);
        let mut last_ticks =
            alone.lwps().iter().flat_map(|lwp| lwp.heads()).map(|head| head.last_tick).peekable();
        let found = last_ticks.peek().copied();
        // A damaged file is left out alone, and becomes a loss.
        if let Some(found) = found.filter(|_| !last_ticks.any(|last| ticks.contains(&last))) {
            let expected = format!("packets of ticks from {} to {}", ticks.start.0, ticks.end.0);
            let found =
                format!("one that ends at {}: it is a part of another recording, or damaged", found.0);
            return Err(Error::bad(&path, "packets", &expected, found));
        }
        Ok(Some(file))
    }

    /// When the kept part begins; `None` if that is the beginning of the recording.
    fn begins(&self) -> Option<Ticks> {
        let first = self.first().filter(|part| part.number > 1)?;
        Some(Ticks(first.begins))
    }

    /// The numbers of the parts that exist, and of those missing between them.
    fn numbers(&self) -> Range<u32> {
        let (first, last) = (self.there.keys().next(), self.there.keys().next_back());
        first.zip(last).map_or(0..0, |(first, last)| *first..last.saturating_add(1))
    }

    fn first(&self) -> Option<&Part> {
        self.there.values().next()
    }

    /// The ticks that events of a part can have.
    fn ticks_of(&self, number: u32) -> Range<Ticks> {
        // 0 means that the recorder was killed before it knew.
        let next = self.there.range(number + 1..).find(|(_, part)| part.begins > 0);
        let end = next.map_or(u64::MAX, |(_, part)| part.begins.max(self.rotation.began));
        Ticks(self.rotation.began)..Ticks(end)
    }

    /// Reports files that are shorter or longer than they were.
    fn check_lengths(&mut self, part: &Part) {
        for file in part.files.iter().filter(|file| !file.to_be_made) {
            // A missing file is reported as a loss of its side.
            let Ok(found) = self.run.open_file(&file.name).and_then(|opened| opened.metadata()) else {
                continue;
            };
            if found.len() != file.bytes {
                let (expected, found) = (file.bytes, found.len());
                let what = format!("{}: expected {expected} bytes, found {found}", file.name);
                let level = if file.name.ends_with(".fut") { Level::User } else { Level::Kern };
                self.lose(level, &format!("{what}: it is damaged, or of another recording"));
            }
        }
    }

    fn lose(&mut self, level: Level, what: &str) {
        let detail = format!("{}: {what}", self.path.display());
        self.losses.push(Loss::new(LossKind::Truncated, level, detail));
    }
}

/// The kernel side of a part.
struct KernelPart {
    name: String,
    ticks: Range<Ticks>,
    input: Option<OpenedInput>,
}

/// The stream of the first part, and the streams of the other parts with the same clock, CPU and buffer.
fn join_pieces(first: TraceStream, parts: &mut [KernelPart]) -> (TraceStream, Vec<Piece>) {
    let TraceStream { clock, cpu, buffer, events } = first;
    let mut first = Some(events);
    let mut pieces = Vec::new();
    for KernelPart { name, ticks, input } in parts {
        let of_input = input.as_mut().and_then(|input| {
            let is_same = |s: &TraceStream| s.clock == clock && s.cpu == cpu && s.buffer == buffer;
            let place = input.streams.iter().position(is_same)?;
            Some(input.streams.swap_remove(place).events)
        });
        let events = first.take().or(of_input);
        pieces.push(Piece { name: name.clone(), events, ticks: ticks.clone() });
    }
    (TraceStream { clock, cpu, buffer, events: Box::new(Nothing) }, pieces)
}

/// Maximum number of parts that are reported as missing.
const MOST_MISSING: usize = 1000;
