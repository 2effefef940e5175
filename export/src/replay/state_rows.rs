//! Reads rows of `lwp_states` and `thread_states`.

use arrow::{array::RecordBatch, datatypes::DataType};
use datafusion::{
    logical_expr::{Expr, ident, lit},
    scalar::ScalarValue,
};
use sigmund_model::{
    LwpState, ThreadState, WaitKind,
    tables::{LWP_STATES, THREAD_STATES, Table},
};
use sigmund_query::Window;
use sigmund_sql::{
    SuperTrace,
    columns::{Small, Wide, Words},
};

use super::{
    by_begin::{ByBegin, Row, RowReader, Selection, cut, has_column},
    columns::Numbers,
    replayer::Replayer,
    rows::{StateRow, UNKNOWN},
};
use crate::Error;

impl Row for StateRow {
    fn begin(&self) -> i64 {
        self.from
    }

    fn replay(self, replayer: &mut Replayer<'_>) {
        if self.of_thread {
            replayer.thread_state(&self);
        } else {
            replayer.lwp_state(&self);
        }
    }
}

/// Reads states from `lwp_states` or `thread_states`.
pub(super) struct StateReader {
    of_thread: bool,
    states: Vec<&'static str>,
    window: Window,
}

/// The states of LWPs.
pub(super) async fn lwp_states(
    trace: &SuperTrace,
    conditions: Vec<Expr>,
    window: &Window,
) -> Result<ByBegin<StateReader>, Error> {
    let states = LwpState::ALL.iter().map(|state| state.name()).collect();
    let reader = StateReader { of_thread: false, states, window: *window };
    ByBegin::open(trace, selection(&LWP_STATES, "lwp", conditions, window), reader).await
}

/// The states of user threads.
pub(super) async fn thread_states(
    trace: &SuperTrace,
    conditions: Vec<Expr>,
    window: &Window,
) -> Result<ByBegin<StateReader>, Error> {
    let states = ThreadState::ALL.iter().map(|state| state.name()).collect();
    let reader = StateReader { of_thread: true, states, window: *window };
    ByBegin::open(trace, selection(&THREAD_STATES, "thread", conditions, window), reader).await
}

/// Columns `actor, state, lwp, cpu, blocked_on, blocked_for`; NULL where the table has no such column.
fn selection<'a>(
    table: &'static Table,
    actor: &str,
    conditions: Vec<Expr>,
    window: &'a Window,
) -> Selection<'a> {
    let or_null = |name: &str, null: ScalarValue| {
        if actor != name && has_column(table, name) {
            ident(name)
        } else {
            lit(null).alias(format!("no_{name}"))
        }
    };
    let no_word = ScalarValue::Dictionary(Box::new(DataType::Int32), Box::new(ScalarValue::Utf8(None)));
    Selection {
        table,
        conditions,
        interval: (ident("ts_tick"), ident("dur_tick")),
        columns: vec![
            ident(actor),
            ident("state"),
            or_null("lwp", ScalarValue::Int32(None)),
            or_null("cpu", ScalarValue::Int32(None)),
            or_null("blocked_on", ScalarValue::Int64(None)),
            or_null("blocked_for", no_word),
        ],
        window,
    }
}

impl RowReader for StateReader {
    type Row = StateRow;

    fn read(&mut self, batch: &RecordBatch, is_wanted: &dyn Fn(usize) -> bool, rows: &mut Vec<StateRow>) {
        let state_of =
            |word: &str| self.states.iter().position(|state| *state == word).map(|index| index as u8);
        let (begins, lengths) = (Wide::of(batch, 0), Wide::of(batch, 1));
        let (actors, states) = (Numbers::of(batch, 2), Words::of(batch, 3, state_of));
        let (lwps, cpus, blocked_on) = (Small::of(batch, 4), Small::of(batch, 5), Wide::of(batch, 6));
        let kinds = Words::of(batch, 7, |word| WaitKind::from_name(word).map(WaitKind::number));
        for row in (0..batch.num_rows()).filter(|row| is_wanted(*row)) {
            let Some(begin) = begins.get(row) else { continue };
            let Some((from, to)) = cut(&self.window, begin, lengths.get(row)) else { continue };
            let (Some(Some(state)), Some(actor)) = (states.get(row), actors.get(row)) else { continue };
            rows.push(StateRow {
                from,
                to,
                of_thread: self.of_thread,
                actor,
                state,
                lwp: lwps.get(row).map_or(UNKNOWN, |lwp| lwp as i32),
                cpu: cpus.get(row).map_or(UNKNOWN, |cpu| cpu as i32),
                blocked_on: blocked_on.get(row),
                blocked_for: kinds.get(row).flatten().unwrap_or(0),
            });
        }
    }
}
