//! The clocks for the times of a call: that of the super-trace that its tables are from, or that of each host.

use datafusion::{
    common::{Result, ScalarValue, plan_err},
    logical_expr::{Expr, ident, lit, when},
};
use sigmund_model::Ticks;

use super::input::{Input, Unit};
use crate::{
    Info,
    clocks::{Clocks, TraceClock},
    fleet::HOST,
    nanos,
};

/// The clocks of the times of a call.
#[derive(Clone, Debug)]
pub(super) struct Times {
    traces: Vec<TraceClock>,
    /// Whether the clock of a row is that of the host in its column `host`.
    by_host: bool,
}

impl Times {
    /// The clocks for these tables.
    ///
    /// # Errors
    /// When there are several clocks, and no column has the host.
    pub(super) fn of(function: &str, inputs: &[Input], clocks: &Clocks) -> Result<Times> {
        let mut traces: Vec<TraceClock> = Vec::new();
        for trace in inputs.iter().flat_map(|input| &input.traces) {
            if !traces.iter().any(|known| known.clock == trace.clock) {
                traces.push(trace.clone());
            }
        }
        if traces.is_empty() && !clocks.is_fleet() {
            traces = clocks.without_schema();
        }
        let are_read = || inputs.iter().filter(|input| !input.traces.is_empty());
        let without_host = are_read().find(|input| !input.has(HOST));
        match (traces.as_slice(), without_host) {
            ([_, ..], None) if clocks.is_fleet() => Ok(Times { traces, by_host: true }),
            ([] | [_], _) => Ok(Times { traces, by_host: false }),
            (_, Some(input)) if clocks.is_fleet() => plan_err!(
                "{function}: {}: expected a column {HOST}, found none: each host has its own clock, so only rows of the same host \
                 can meet",
                input.name
            ),
            _ => {
                let names: Vec<&str> = traces.iter().map(TraceClock::name).collect();
                plan_err!(
                    "{function}: expected tables of one super-trace, found those of {}: each has its own clock",
                    names.join(" and ")
                )
            }
        }
    }

    /// Whether the clock of a row is that of the host in its column `host`.
    pub(super) fn are_by_host(&self) -> bool {
        self.by_host
    }

    /// The super-traces that the tables are from.
    pub(super) fn traces(&self) -> &[TraceClock] {
        &self.traces
    }

    /// The end of the trace that a row is from; `None` if its tables are from no trace.
    pub(super) fn end(&self, unit: Unit, input: &Input) -> Result<Option<Expr>> {
        match self.by_host && input.has(HOST) {
            true => self.of_row(|info| lit(end(unit, info))).map(Some),
            false => Ok(self.traces.first().map(|trace| lit(end(unit, &trace.info)))),
        }
    }

    /// The nanoseconds for a column of the result in ticks. NULL if its tables are from no super-trace.
    pub(super) fn in_nanos(&self, column: &str) -> Result<Expr> {
        let unknown = || lit(ScalarValue::Int64(None));
        let nanos = |info: &Info| nanos::beside(column, info).map_or_else(unknown, Expr::unalias);
        match self.by_host {
            true => self.of_row(nanos),
            false => Ok(self.traces.first().map_or_else(unknown, |trace| nanos(&trace.info))),
        }
    }

    /// An expression that depends on the column `host`. NULL if that is the name of no host.
    fn of_row(&self, of: impl Fn(&Info) -> Expr) -> Result<Expr> {
        let mut traces = self.traces.iter();
        let Some(first) = traces.next() else { return plan_err!("expected a host, found none") };
        let is = |trace: &TraceClock| ident(HOST).eq(lit(trace.name()));
        let mut cases = when(is(first), of(&first.info));
        for trace in traces {
            cases = cases.when(is(trace), of(&trace.info));
        }
        cases.end()
    }
}

/// The end of a trace.
fn end(unit: Unit, info: &Info) -> i64 {
    let last = info.last_tick().map_or(0, |tick| tick.0);
    match (unit, info.tick_hz(), info.first_tick()) {
        (Unit::Ticks, ..) => last as i64,
        (Unit::Nanos, Some(hz), Some(first)) => {
            i64::try_from(hz.to_nanos(Ticks(last.saturating_sub(first.0))).0).unwrap_or(i64::MAX)
        }
        (Unit::Nanos, ..) => i64::MAX,
    }
}
