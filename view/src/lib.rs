//! `sigmund view`: the timeline of a super-trace in the browser.
//!
//! ```text
//! key.rs        the names of rows
//! actors.rs     CPUs, LWPs, user threads, processes
//! index/        what is drawn, as partitions of time with prefix sums: exact at every zoom
//! live.rs       a running program, until it is frozen
//! api/          what the page may ask, and the answers
//! server/       HTTP: who may ask, the page's files
//! web/          the page: ES modules as they are in git, embedded
//! ```
//!
//! Data stays on the server. The page asks for rows as pixels, and for details of the object under the pointer.

#![deny(unsafe_code)]

mod actors;
mod api;
mod error;
mod index;
mod key;
mod live;
mod server;

use std::{path::Path, sync::Arc};

use sigmund_sql::SuperTrace;
use tempfile::TempDir;

use self::{actors::Actors, api::Orders, index::Index};
pub use self::{
    error::Error,
    index::Progress,
    live::{Frozen, Live, Shown},
    server::{Limits, Listener, serve},
};

/// A super-trace that can be drawn.
pub struct View {
    trace: Arc<SuperTrace>,
    actors: Actors,
    index: Index,
    orders: Orders,
    /// Ticks of the first and of the last event.
    extent: (i64, i64),
    losses: Vec<serde_json::Value>,
    clock_bound: Option<f64>,
    /// Of a frozen super-trace. It is removed with the view, that is, after the last question about it.
    _folder: Option<TempDir>,
}

impl View {
    /// Opens the index of a super-trace in the folder `cache`, or makes it. Without a folder, it is made in a temporary
    /// file.
    ///
    /// # Errors
    /// If a table cannot be read, or the index cannot be written anywhere.
    pub async fn open(
        trace: Arc<SuperTrace>,
        cache: Option<&Path>,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<View, Error> {
        let actors = Actors::read(&trace).await?;
        let index = Index::open(&trace, &actors, cache, progress).await?;
        let tick = |tick: Option<sigmund_model::Ticks>| tick.map_or(0, |tick| tick.0 as i64);
        let extent = (tick(trace.first_tick()), tick(trace.last_tick()));
        let losses = api::losses(&trace, extent.0).await?;
        let clock_bound = api::clock_bound(&trace).await?;
        // The first list of threads contains names. If there are millions, reading them takes longer than starting a
        // browser.
        let names = Arc::clone(&trace);
        drop(tokio::task::spawn_blocking(move || names.threads().is_ok()));
        let orders = Orders::default();
        Ok(View { trace, actors, index, orders, extent, losses, clock_bound, _folder: None })
    }

    /// Keeps the folder of its super-trace as long as the view.
    fn in_folder(self, folder: TempDir) -> View {
        View { _folder: Some(folder), ..self }
    }

    /// The size of its index in bytes.
    pub fn index_size(&self) -> usize {
        self.index.size()
    }

    /// Intervals of threads or LWPs that the super-trace does not list; they are not shown.
    pub fn stray(&self) -> u64 {
        self.index.stray()
    }
}
