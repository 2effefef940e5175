//! The end of a recording: everything that still has to be written or asked for, each on a thread of its own, and all of
//! it while a user may not want to wait.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use fut::drain::Unrecorded;
use sigmund_files::Folder;
use sigmund_merge::{KernelSide, Manifest, UserSide};
use sigmund_model::Pid;

use super::{
    arenas::UserSides, clocks::Clocks, conversation::Conversation, draining::Draining, kernel::Kernel,
    signals::Signals, work::Work,
};
use crate::output;

/// How long one look at what is being done takes.
const LOOK: Duration = Duration::from_millis(2);
/// The time after which a message reports the work that is waited for.
const IS_LONG: Duration = Duration::from_secs(3);
/// What may still be completed after a request to end at once: tracing is off by then, and there is no more to do
/// than to remove what is in tracefs, unless the disk hangs.
const AT_ONCE: Duration = Duration::from_millis(300);

/// How many signals it takes to give up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// None any more.
    None,
    /// The end of the recording was already asked for.
    UntilTheNextSignal,
    /// It was not: the first request leaves out what can be left out.
    UntilTheSecondSignal,
}

/// The work in progress.
pub(super) struct Ending {
    kernel: Work<KernelSide>,
    drain: Option<Work<UserSides>>,
    conversation: Option<Conversation>,
}

/// The result of the work.
#[derive(Default)]
pub(super) struct Ended {
    pub(super) kernel: KernelSide,
    pub(super) user: Vec<UserSide>,
    pub(super) unrecorded: Unrecorded,
    /// Processes that asked for an arena, and ended without having recorded into it.
    pub(super) never_began: u64,
    /// A signal ended the collection early: the run is not merged.
    pub(super) is_stopped: bool,
}

impl Ending {
    /// Begins to write the kernel side, which records no more, and to collect the user side.
    pub(super) fn begin(
        kernel: Kernel,
        draining: Option<Draining>,
        to_be_asked: Option<Pid>,
        run: &Arc<Folder>,
    ) -> Result<Ending> {
        let conversation = to_be_asked.and_then(|pid| {
            let no_events = |error| output::notice(&format!("no events of the process itself: {error:#}"));
            Conversation::begin(pid, run).map_err(no_events).ok()
        });
        let drain = draining.map(Draining::finish);
        let run = Arc::clone(run);
        let kernel = Work::start("kernel side", move || kernel.stop(&run))?;
        Ok(Ending { kernel, drain, conversation })
    }

    /// Waits until all is done, or a signal ends the wait.
    ///
    /// # Errors
    /// When the work was abandoned because of a signal.
    pub(super) fn wait(&mut self, signals: &Signals, mut patience: Patience) -> Result<Ended> {
        let (started, mut is_told) = (Instant::now(), false);
        let mut ended = Ended::default();
        let (mut kernel, mut at_once) = (None, None);
        loop {
            if kernel.is_none() {
                kernel = self.kernel.within(LOOK)?;
            }
            if let Some(sides) = self.drain.as_ref().map(|drain| drain.within(LOOK)).transpose()?.flatten() {
                (ended.user, ended.unrecorded) = (sides.sides, sides.unrecorded);
                (ended.never_began, self.drain) = (sides.never_began, None);
            }
            if let Some(side) = self.conversation.as_ref().and_then(|conversation| conversation.within(LOOK))
            {
                (ended.user, self.conversation) = (side.into_iter().collect(), None);
            }
            if kernel.is_some() && self.drain.is_none() && self.conversation.is_none() {
                ended.kernel = kernel.unwrap_or_default();
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

/// Writes the whole manifest, and lets others use the folder. A disk that does not answer can be given up.
pub(super) fn write(
    clocks: Clocks,
    mut manifest: Manifest,
    run: &Arc<Folder>,
    signals: &Signals,
) -> Result<()> {
    let theirs = Arc::clone(run);
    let work = Work::start("manifest", move || clocks.end(&mut manifest, &theirs))?;
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
