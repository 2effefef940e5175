//! The clock of a super-trace. It reads its snapshots when they are first needed.

use std::{
    fmt,
    hash::{Hash, Hasher},
    sync::{Arc, OnceLock},
};

use sigmund_model::Hertz;

use super::wall_time::{self, Snapshot};
use crate::{Error, Info, files::Files};

/// The clock of a super-trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clock {
    /// Ticks per second; `None` if unknown.
    pub tick_hz: Option<f64>,
    /// The snapshots of the machine's clock, in time order.
    pub snapshots: Vec<Snapshot>,
}

/// A clock with the names of its super-trace. Its snapshots are read when they are first needed.
#[derive(Clone)]
pub(crate) struct NamedClock {
    pub(crate) names: Vec<String>,
    pub(crate) tick_hz: Option<Hertz>,
    snapshots: Arc<Snapshots>,
}

struct Snapshots {
    known: OnceLock<Arc<[Snapshot]>>,
    files: Option<Arc<Files>>,
}

impl NamedClock {
    /// The clock of open files.
    pub(crate) fn of_files(files: &Arc<Files>, info: &Info) -> NamedClock {
        let snapshots = Snapshots { known: OnceLock::new(), files: Some(Arc::clone(files)) };
        NamedClock { names: Vec::new(), tick_hz: info.tick_hz(), snapshots: Arc::new(snapshots) }
    }

    /// A clock whose snapshots are already known.
    pub(crate) fn known(names: Vec<String>, clock: Clock) -> NamedClock {
        let snapshots =
            Snapshots { known: OnceLock::from(Arc::<[Snapshot]>::from(clock.snapshots)), files: None };
        NamedClock { names, tick_hz: clock.tick_hz.and_then(Hertz::new), snapshots: Arc::new(snapshots) }
    }

    /// Its snapshots.
    pub(crate) fn snapshots(&self) -> Result<Arc<[Snapshot]>, Error> {
        let Snapshots { known, files } = &*self.snapshots;
        if let Some(snapshots) = known.get() {
            return Ok(Arc::clone(snapshots));
        }
        let read: Arc<[Snapshot]> = match files {
            Some(files) => wall_time::read(files)?.into(),
            None => Arc::default(),
        };
        Ok(Arc::clone(known.get_or_init(|| read)))
    }

    /// Everything that is known of it.
    pub(crate) fn clock(&self) -> Result<Clock, Error> {
        let tick_hz = self.tick_hz.map(|hz| hz.per_second());
        Ok(Clock { tick_hz, snapshots: self.snapshots()?.to_vec() })
    }
}

impl fmt::Debug for NamedClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamedClock").field("names", &self.names).finish_non_exhaustive()
    }
}

impl PartialEq for NamedClock {
    fn eq(&self, other: &NamedClock) -> bool {
        self.names == other.names && Arc::ptr_eq(&self.snapshots, &other.snapshots)
    }
}

impl Eq for NamedClock {}

impl Hash for NamedClock {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.names, Arc::as_ptr(&self.snapshots)).hash(state);
    }
}
