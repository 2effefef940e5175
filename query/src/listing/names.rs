//! The names of the threads that a listing mentions. A trace may have millions of threads, so a short listing reads
//! only the names that it needs.

use std::collections::BTreeSet;

use sigmund_model::{FieldType, Thread};
use sigmund_sql::{SuperTrace, ThreadNames};

use super::{EventBatch, declarations::Declarations, params};
use crate::Error;

/// A listing with more rows reads all names at once.
const SHORT: usize = 16 << 10;

/// In a trace with at most this many threads, all names are read at once, whatever the listing mentions.
const FEW_THREADS: u64 = 32 << 10;

/// Names of threads, read as they are needed.
pub(super) struct Names<'t> {
    trace: &'t SuperTrace,
    /// The number of rows so far.
    rows: usize,
    mentioned: BTreeSet<Thread>,
    /// How many of the mentioned threads `few` has names for.
    asked: usize,
    few: ThreadNames,
}

impl<'t> Names<'t> {
    pub(super) fn new(trace: &'t SuperTrace) -> Names<'t> {
        Names { trace, rows: 0, mentioned: BTreeSet::new(), asked: 0, few: ThreadNames::default() }
    }

    /// Notes the threads that the next rows mention.
    pub(super) fn mention(&mut self, batch: &EventBatch, declarations: &Declarations<'_>) {
        self.rows += batch.len();
        if self.are_all() {
            return;
        }
        for row in batch.rows() {
            let ty = declarations.of(&row);
            let is_thread = |index: usize| params::field_type(&row, ty, index) == FieldType::Thread;
            let numbers = row.params().enumerate().filter(|(index, _)| is_thread(*index));
            let named = numbers.filter_map(|(_, param)| param.number).map(|number| Thread(number as u64));
            self.mentioned.extend(named.chain(row.thread));
        }
    }

    /// The names of at least the threads mentioned so far.
    pub(super) async fn read(&mut self) -> Result<&ThreadNames, Error> {
        if self.are_all() {
            return Ok(self.trace.threads()?);
        }
        if self.mentioned.len() > self.asked {
            let mentioned: Vec<Thread> = self.mentioned.iter().copied().collect();
            self.few = self.trace.threads_among(&mentioned).await?;
            self.asked = mentioned.len();
        }
        Ok(&self.few)
    }

    fn are_all(&self) -> bool {
        self.rows > SHORT || self.trace.thread_count() <= FEW_THREADS
    }
}
