//! The user side of a recording: drains the arenas of the recorded processes into the run directory.

use std::{borrow::Borrow, collections::HashMap, fs::File, io::ErrorKind, path::PathBuf, sync::Arc};

use anyhow::{Context, Result};
use fut::{
    drain::{ArenaServer, Drain, DrainSummary, ProcessArena, Unrecorded},
    shm::{Arena, Geometry, Mode},
};
use sigmund_files::Folder;
use sigmund_merge::{NAMESPACE_MARK, PartFile, UserSide, user_part_name};
use sigmund_model::Pid;

use super::{
    folder::SocketFolder,
    namespace::Namespace,
    part_counts::{PartCounts, Side},
    rotation::is_limited,
    user,
};
use crate::{cli::RecordArgs, descriptors, output};

/// The number of polls between two checks for processes that have ended.
const LOOK_EVERY: u32 = 8;

/// The arenas that were given to processes, and the drains of processes that record.
pub(super) struct Arenas {
    server: ArenaServer,
    run: Arc<Folder>,
    /// Arenas of processes that have not begun to record.
    waiting: Vec<ProcessArena>,
    drains: Vec<Drained>,
    /// The results of processes that have ended.
    finished: Vec<Side>,
    finished_bytes: u64,
    /// If the recording is cut into parts: the current part, and its files that are already closed.
    part: Option<u32>,
    closed_files: Vec<PartFile>,
    /// For each process, the number of its user traces so far.
    traces: HashMap<u32, u32>,
    /// The number of processes whose events could not be stored because there was no file, and the reason of the first.
    without_file: u64,
    why_without_file: Option<String>,
    /// Polls until the next check for ended processes.
    look_in: u32,
    /// The reason why a user trace could not be written: the first one.
    why_unwritten: Option<String>,
    /// The number of processes that asked for an arena and ended without recording into it.
    never_began: u64,
    limit_is_raised: bool,
    /// Has to be dropped after the server, because the server's socket is in this folder.
    folder: Arc<SocketFolder>,
}

/// The drain of one process. If the process is in another PID namespace: the numbers of its LWPs in this namespace.
struct Drained {
    drain: Drain<ProcessArena>,
    namespace: Option<Namespace>,
    counts: PartCounts,
}

impl Drained {
    fn look_for_lwps(&mut self) {
        if let Some(namespace) = &mut self.namespace {
            let arena: &Arena = self.drain.arena().borrow();
            namespace.look(arena);
        }
    }
}

/// The summary of the user side: the results of the processes, and the number of those that could not be recorded.
#[derive(Debug, Default)]
pub(super) struct UserSides {
    pub(super) sides: Vec<Side>,
    /// The files of the last part.
    pub(super) last_part: Vec<PartFile>,
    pub(super) unrecorded: Unrecorded,
    /// The number of processes that asked for an arena and ended without recording into it.
    pub(super) never_began: u64,
}

impl Arenas {
    /// Begins to hand out arenas, to processes of root and of the user that the program runs as. Removes what killed
    /// recorders have left behind.
    pub(super) fn create(run: &Arc<Folder>, args: &RecordArgs) -> Result<Arenas> {
        let owner = args.user.as_deref().map(user::find).transpose()?.map(|user| user.ids().uid);
        let folder = SocketFolder::create(owner.is_some())?;
        let geometry = Geometry { packets: args.user_buffer / 64, ..Geometry::default() };
        let mode = if args.flight { Mode::Overwrite } else { Mode::Discard };
        let server = ArenaServer::start(folder.path(), geometry, mode, owner)
            .with_context(|| folder.path().display().to_string())?;
        Ok(Arenas {
            server,
            run: Arc::clone(run),
            waiting: Vec::new(),
            drains: Vec::new(),
            finished: Vec::new(),
            finished_bytes: 0,
            part: (is_limited(args) && !args.flight).then_some(1),
            closed_files: Vec::new(),
            traces: HashMap::new(),
            without_file: 0,
            why_without_file: None,
            look_in: 0,
            why_unwritten: None,
            never_began: 0,
            limit_is_raised: false,
            folder: Arc::new(folder),
        })
    }

    /// The folder with the socket. The program needs nothing else.
    pub(super) fn folder(&self) -> Arc<SocketFolder> {
        Arc::clone(&self.folder)
    }

    /// Bytes written so far.
    pub(super) fn bytes(&self) -> u64 {
        self.finished_bytes + self.drains.iter().map(|drained| drained.drain.summary().bytes).sum::<u64>()
    }

    /// The number of processes that have an arena and had not ended at the last check.
    pub(super) fn recording(&self) -> u64 {
        (self.waiting.len() + self.drains.len()) as u64
    }

    /// Drains finished packets. Returns their number.
    pub(super) fn poll(&mut self) -> usize {
        if !self.limit_is_raised {
            // Not earlier, because the program inherits the limit if it is started later.
            descriptors::raise_limit();
            self.limit_is_raised = true;
        }
        self.find();
        if self.look_in == 0 {
            self.finish_ended();
            self.look_in = LOOK_EVERY;
        }
        self.look_in -= 1;
        let mut taken = 0;
        for drained in &mut self.drains {
            drained.look_for_lwps();
            let drain = &mut drained.drain;
            match drain.poll() {
                Ok(packets) => taken += packets,
                Err(error) if self.why_unwritten.is_none() => {
                    let path = drain.path().display();
                    output::report_error(&format!("{path}: {error}; later events will be lost"));
                    self.why_unwritten = Some(error.to_string());
                }
                Err(_) => {}
            }
        }
        taken
    }

    /// Ends the recording: drains all arenas and returns a summary. Processes that continue are no longer recorded.
    pub(super) fn finish(mut self) -> UserSides {
        self.server.stop();
        self.find();
        for drained in std::mem::take(&mut self.drains) {
            self.close(drained);
        }
        let (refused, foreign) = (self.server.unrecorded(), self.folder.foreign_arenas());
        let processes = refused.processes + self.without_file + foreign;
        let foreign = (foreign > 0)
            .then(|| "it was built with a version of fut that this recorder does not know".into());
        let why = refused.why.or(self.why_without_file.take()).or(foreign);
        if let Some(why) = &why {
            let were = if processes == 1 { "1 process was" } else { &format!("{processes} processes were") };
            output::report_error(&format!("{were} not recorded, the first because {why}"));
        }
        let unrecorded = Unrecorded { processes, why };
        let (sides, last_part) = (std::mem::take(&mut self.finished), std::mem::take(&mut self.closed_files));
        UserSides { sides, last_part, unrecorded, never_began: self.never_began }
    }

    /// Continues in files of part `number`, and returns the files of the previous part. Parts before `first` were
    /// removed.
    pub(super) fn next_part(&mut self, number: u32, first: u32) -> Vec<PartFile> {
        let Some(before) = self.part.replace(number) else {
            // A flight recorder has no parts: it writes its trace at the end.
            self.part = None;
            return Vec::new();
        };
        for drained in &mut self.drains {
            let name = user_part_name(&drained.counts.whole, number);
            let path = self.run.path_of(&name);
            let next = self.run.create_file(&name).and_then(|file| {
                let same = file.try_clone()?;
                drained.drain.next_part(file, &path)?;
                Ok(same.metadata()?.len())
            });
            let mut closed = drained.drain.summary();
            match next {
                // The header of the next part has been written and counted already.
                Ok(head) => closed.bytes = closed.bytes.saturating_sub(head),
                Err(error) => {
                    output::report_error(&format!("{}: {error}; later events may be lost", path.display()));
                    self.why_unwritten.get_or_insert_with(|| error.to_string());
                }
            }
            drained.counts.forget_before(first);
            self.closed_files.push(drained.counts.close(before, closed));
        }
        self.finished.retain(|side| side.has_part_from(first));
        std::mem::take(&mut self.closed_files)
    }

    /// Begins to drain the arenas of processes that have begun to record.
    fn find(&mut self) {
        self.waiting.extend(self.server.take());
        for arena in std::mem::take(&mut self.waiting) {
            // The end is checked first. Otherwise a process that begins and ends between the two checks would count as
            // one that never began.
            let has_ended = arena.has_ended();
            if arena.has_begun() {
                self.begin(arena);
            } else if has_ended {
                self.never_began += 1;
            } else {
                self.waiting.push(arena);
            }
        }
    }

    fn begin(&mut self, arena: ProcessArena) {
        let pid = arena.pid();
        let namespace = Namespace::of(&arena);
        let begun = self.new_trace(pid, namespace.is_some()).and_then(|(trace, file, whole)| {
            let drain = Drain::to_file(arena, file, &trace).with_context(|| trace.display().to_string())?;
            Ok((drain, PartCounts::new(whole)))
        });
        match begun {
            Ok((drain, counts)) => self.drains.push(Drained { drain, namespace, counts }),
            Err(error) => {
                self.without_file += 1;
                self.why_without_file.get_or_insert_with(|| format!("{error:#}"));
            }
        }
    }

    /// Drains the rest of processes that have ended, and frees their memory and descriptors.
    fn finish_ended(&mut self) {
        let has_ended = |drained: &mut Drained| drained.drain.arena().has_ended();
        for drained in self.drains.extract_if(.., has_ended).collect::<Vec<_>>() {
            self.close(drained);
        }
    }

    fn close(&mut self, mut drained: Drained) {
        drained.look_for_lwps();
        let Drained { drain, namespace, mut counts } = drained;
        let cut = !drain.arena().has_ended();
        let no_memory = Borrow::<Arena>::borrow(drain.arena()).is_out_of_memory();
        let (pid, path) = (drain.pid(), drain.path().to_path_buf());
        let file = counts.whole.clone();
        let (summary, written) = drain.close();
        if let Err(error) = written {
            output::report_error(&format!("{}: {error}", path.display()));
            self.why_unwritten.get_or_insert_with(|| error.to_string());
        }
        let DrainSummary { lost, unfinished, unwritten, .. } = summary;
        if unwritten > 0 {
            let why = self.why_unwritten.as_deref().unwrap_or("for an unknown reason");
            let events = output::counted(unwritten, "event");
            output::report_error(&format!("{}: {events} could not be written: {why}", path.display()));
        }
        self.finished_bytes += summary.bytes;
        let namespace = namespace.map(Namespace::numbers);
        if let Some(part) = self.part {
            self.closed_files.push(counts.close(part, summary));
        }
        let parts = Vec::new();
        let side =
            UserSide { file, parts, pid: pid.0, lost, unfinished, unwritten, cut, no_memory, namespace };
        self.finished.push(Side { side, counts });
    }

    /// The name is `user-PID.fut`. If a process executed another program by `exec`, its second trace is
    /// `user-PID-2.fut`. The name of a process in another PID namespace has a mark. Returns the path, the file, and the
    /// name of the whole trace, of which the file may be a part.
    fn new_trace(&mut self, pid: Pid, is_in_namespace: bool) -> Result<(PathBuf, File, String)> {
        let mark = if is_in_namespace { NAMESPACE_MARK } else { "" };
        let number = self.traces.entry(pid.0).or_default();
        loop {
            *number += 1;
            let suffix = if *number == 1 { String::new() } else { format!("-{number}") };
            let whole = format!("user-{pid}{mark}{suffix}.fut");
            let name = self.part.map_or_else(|| whole.clone(), |part| user_part_name(&whole, part));
            let trace = self.run.path_of(&name);
            match self.run.create_file(&name) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                made => {
                    return Ok((trace.clone(), made.with_context(|| trace.display().to_string())?, whole));
                }
            }
        }
    }
}
