//! The end of a recording. Everything that still has to be written or requested is done on separate threads. All of it
//! can be given up, because a user may not want to wait.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use fkt_ingest::live::ClosedPart;
use fut::drain::Unrecorded;
use sigmund_files::Folder;
use sigmund_merge::{KernelSide, Manifest, PartFile, UserSide};
use sigmund_model::Pid;

use super::{
    arenas::UserSides,
    clocks::Clocks,
    conversation::Conversation,
    draining::Draining,
    kernel::Kernel,
    rotation::{Rotated, Rotation},
    signals::Signals,
    work::Work,
};
use crate::output;

/// The interval between two checks of the work.
const LOOK: Duration = Duration::from_millis(2);
/// The time after which a message reports the work that is waited for.
const IS_LONG: Duration = Duration::from_secs(3);
/// How long it may still take after a request to end at once. Tracing is off by then. Only files in tracefs have to be
/// removed, unless the disk hangs.
const AT_ONCE: Duration = Duration::from_millis(300);

/// How many more signals it takes until the work is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// None any more.
    None,
    /// The next signal gives up: the end of the recording was already requested.
    UntilTheNextSignal,
    /// The second signal gives up: the end was not requested. The first signal leaves out everything that is optional.
    UntilTheSecondSignal,
}

/// The work in progress.
pub(super) struct Ending {
    kernel: Work<KernelEnd>,
    drain: Option<Work<UserSides>>,
    conversation: Option<Conversation>,
}

/// The end of the kernel side, and of the rotation.
#[derive(Default)]
struct KernelEnd {
    side: KernelSide,
    last_part: Option<ClosedPart>,
    rotated: Option<Rotated>,
}

/// The result of the work.
#[derive(Default)]
pub(super) struct Ended {
    pub(super) kernel: KernelSide,
    pub(super) user: Vec<UserSide>,
    /// If the recording was cut into parts: their end.
    pub(super) parts: Option<PartsEnd>,
    pub(super) unrecorded: Unrecorded,
    /// The number of processes that asked for an arena and ended without recording into it.
    pub(super) never_began: u64,
    /// A signal ended the collection early, so the run is not merged.
    pub(super) is_stopped: bool,
}

/// The rotation, and the files of the last part.
pub(super) struct PartsEnd {
    rotated: Rotated,
    kernel: Option<ClosedPart>,
    user: Vec<PartFile>,
}

impl Ending {
    /// Begins to write the kernel side, which no longer records, and to collect the user side.
    pub(super) fn begin(
        kernel: Kernel,
        draining: Option<Draining>,
        rotation: Option<Rotation>,
        to_be_asked: Option<Pid>,
        run: &Arc<Folder>,
    ) -> Result<Ending> {
        let conversation = to_be_asked.and_then(|pid| {
            let no_events = |error| output::notice(&format!("no events of the process itself: {error:#}"));
            Conversation::begin(pid, run).map_err(no_events).ok()
        });
        // Stopped before the drain, because the drain finishes only when there are no more parts.
        rotation.iter().for_each(Rotation::stop);
        let drain = draining.map(Draining::finish);
        let run = Arc::clone(run);
        let kernel = Work::start("kernel side", move || {
            let rotated = rotation.and_then(Rotation::join);
            let (side, last_part) = kernel.stop(&run);
            KernelEnd { side, last_part, rotated }
        })?;
        Ok(Ending { kernel, drain, conversation })
    }

    /// Waits until everything is done, or a signal ends the wait.
    ///
    /// # Errors
    /// When the work was abandoned because of a signal.
    pub(super) fn wait(&mut self, signals: &Signals, mut patience: Patience) -> Result<Ended> {
        let (started, mut is_told) = (Instant::now(), false);
        let mut ended = Ended::default();
        let (mut kernel, mut at_once) = (None, None);
        let (mut sides_of_drain, mut last_part) = (Vec::new(), Vec::new());
        loop {
            if kernel.is_none() {
                kernel = self.kernel.within(LOOK)?;
            }
            if let Some(sides) = self.drain.as_ref().map(|drain| drain.within(LOOK)).transpose()?.flatten() {
                (sides_of_drain, last_part, ended.unrecorded) =
                    (sides.sides, sides.last_part, sides.unrecorded);
                (ended.never_began, self.drain) = (sides.never_began, None);
            }
            if let Some(side) = self.conversation.as_ref().and_then(|conversation| conversation.within(LOOK))
            {
                (ended.user, self.conversation) = (side.into_iter().collect(), None);
            }
            if kernel.is_some() && self.drain.is_none() && self.conversation.is_none() {
                let KernelEnd { side, last_part: kernel, rotated } = kernel.unwrap_or_default();
                let first = rotated.as_ref().map_or(0, Rotated::first);
                ended.user.extend(sides_of_drain.into_iter().filter_map(|side| side.kept_from(first)));
                ended.parts = rotated.map(|rotated| PartsEnd { rotated, kernel, user: last_part });
                ended.kernel = side;
                return Ok(ended);
            }
            if signals.next().is_some() {
                patience = self.less(patience, &mut ended);
            }
            if patience == Patience::None
                && Instant::now() > *at_once.get_or_insert_with(|| Instant::now() + AT_ONCE)
            {
                bail!("ended at once: what was recorded is not complete");
            }
            if started.elapsed() > IS_LONG && !is_told {
                output::notice(&format!("waiting for {}; Ctrl-C gives up", self.waits_for()));
                is_told = true;
            }
        }
    }

    /// Handles a signal.
    fn less(&mut self, patience: Patience, ended: &mut Ended) -> Patience {
        if let Some(conversation) = self.conversation.take() {
            conversation.give_up();
        }
        ended.is_stopped = true;
        match patience {
            Patience::UntilTheSecondSignal => {
                output::notice("completing the recording; one more signal ends it at once");
                Patience::UntilTheNextSignal
            }
            Patience::UntilTheNextSignal | Patience::None => Patience::None,
        }
    }

    fn waits_for(&self) -> &'static str {
        if self.conversation.is_some() { "the process to answer" } else { "the disk" }
    }
}

/// Completes the manifest, and gives others access to the folder. If a disk does not answer, this can be given up.
pub(super) fn write(
    clocks: Clocks,
    mut manifest: Manifest,
    parts: Option<PartsEnd>,
    run: &Arc<Folder>,
    signals: &Signals,
) -> Result<()> {
    let theirs = Arc::clone(run);
    let work = Work::start("manifest", move || {
        if let Some(PartsEnd { mut rotated, kernel, user }) = parts {
            if let Err(error) = rotated.finish(&theirs, kernel.as_ref(), user) {
                output::report_error(&format!("{error:#}"));
            }
            rotated.describe(&mut manifest);
        }
        clocks.end(&mut manifest, &theirs)
    })?;
    loop {
        if let Some(written) = work.within(LOOK)? {
            run.unlock();
            return written;
        }
        if signals.next().is_some() {
            bail!("ended at once: the manifest of the recording is not written");
        }
    }
}
