//! The functions that convert times of a super-trace, where that is not open: in an executor of a cluster.

use datafusion::logical_expr::ScalarUDF;
use sigmund_model::Hertz;

use super::{
    times,
    wall_time::{self, Snapshot},
};
use crate::{Error, Info, files::Files};

/// The clock of a super-trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clock {
    /// Ticks per second; `None` if that is not known.
    pub tick_hz: Option<f64>,
    /// When the machine's clock was read, in the order of time.
    pub snapshots: Vec<Snapshot>,
}

impl Clock {
    /// That of an open super-trace.
    ///
    /// # Errors
    /// When the table `clocks` cannot be read.
    pub(crate) fn of(files: &Files, info: &Info) -> Result<Clock, Error> {
        let tick_hz = info.tick_hz().map(|hz| hz.per_second());
        Ok(Clock { tick_hz, snapshots: wall_time::read(files)? })
    }

    /// The function of this name, if it is one that depends on the clock.
    pub fn function(&self, name: &str) -> Option<ScalarUDF> {
        let tick_hz = self.tick_hz.and_then(Hertz::new);
        match name {
            "to_ns" => Some(times::to_ns(tick_hz)),
            "to_ticks" => Some(times::to_ticks(tick_hz)),
            "wall_time" => Some(wall_time::with_snapshots(tick_hz, &self.snapshots)),
            _ => None,
        }
    }
}
