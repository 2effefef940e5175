//! The rows that are related to a row: they woke it or were woken by it, carried it, created it, or held its lock.

use std::collections::HashSet;

use arrow::array::{Array, AsArray};
use arrow::datatypes::Int64Type;
use sigmund_model::tables::{LOCKS, WAKEUPS};

use super::{Refusal, cells, query::Window};
use crate::{
    View,
    key::{Key, Kind},
};

/// The rows that are related to one row.
pub(super) struct Related(HashSet<Key>);

impl Related {
    pub(super) fn has(&self, key: Key) -> bool {
        self.0.contains(&key)
    }
}

/// The columns of a table that name rows, and its column with the length.
struct Source {
    table: &'static str,
    length: &'static str,
    columns: &'static [(&'static str, Kind)],
}

const SOURCES: [Source; 4] = [
    Source {
        table: WAKEUPS.name,
        length: "0",
        columns: &[
            ("waker_thread", Kind::Thread),
            ("thread", Kind::Thread),
            ("waker_lwp", Kind::Lwp),
            ("lwp", Kind::Lwp),
        ],
    },
    Source {
        table: "active",
        length: "dur_tick",
        columns: &[("thread", Kind::Thread), ("lwp", Kind::Lwp), ("cpu", Kind::Cpu)],
    },
    Source {
        table: "lwp_states",
        length: "coalesce(dur_tick, 0)",
        columns: &[("lwp", Kind::Lwp), ("cpu", Kind::Cpu)],
    },
    Source {
        table: LOCKS.name,
        length: "coalesce(wait_tick, 0) + coalesce(hold_tick, 0)",
        columns: &[("thread", Kind::Thread), ("holder", Kind::Thread)],
    },
];

/// The largest number of related rows. Further ones are left out.
const MOST: usize = 1_000_000;

/// The row `key`, and the rows that are related to it in the window.
pub(super) async fn related(view: &View, key: Key, window: Window) -> Result<Related, Refusal> {
    let mut found = HashSet::from([key]);
    for source in &SOURCES {
        if view.trace.info().left_out_tables().any(|table| table == source.table) {
            continue;
        }
        let own: Vec<&str> =
            source.columns.iter().filter(|(_, kind)| *kind == key.kind).map(|(column, _)| *column).collect();
        if own.is_empty() {
            continue;
        }
        let is_own: Vec<String> = own.iter().map(|column| format!("{column} = {}", key.number)).collect();
        let columns: Vec<String> = source
            .columns
            .iter()
            .map(|(column, _)| format!("CAST({column} AS BIGINT) AS {column}"))
            .collect();
        let (Window { from, to }, length) = (window, source.length);
        let query = format!(
            "SELECT DISTINCT {} FROM raw_{} WHERE ({}) AND ts_tick < {to} AND ts_tick + {length} >= {from}",
            columns.join(", "),
            source.table,
            is_own.join(" OR "),
        );
        cells::each(view, &query, MOST, |batch| {
            for ((_, kind), column) in source.columns.iter().zip(batch.columns()) {
                let numbers = column.as_primitive::<Int64Type>();
                let valid = (0..numbers.len()).filter(|row| numbers.is_valid(*row));
                found.extend(valid.map(|row| Key { kind: *kind, number: numbers.value(row) as u64 }));
            }
        })
        .await?;
    }
    if key.kind == Kind::Thread
        && let Some(row) = view.actors.thread(key.number)
    {
        let threads = &view.actors.threads;
        let created = threads.created_by.iter().enumerate().filter(|(_, by)| **by == key.number);
        found.extend(created.map(|(row, _)| Key::thread(threads.numbers[row])));
        found.insert(Key::thread(threads.created_by[row]));
    }
    Ok(Related(found))
}
