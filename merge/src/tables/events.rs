//! The table `events`: most rows of a super-trace, so its columns are filled without looking anything up. An event's
//! level, code and name are those of its type, and are gathered from there batch by batch.

use std::{collections::HashMap, hash::Hash, sync::Arc};

use arrow::array::{Int32Builder, Int64Array, Int64Builder, StringBuilder};
use sigmund_model::{Context, Cpu, Event, EventType, Level, Params, Ticks, tables::EVENTS};

use super::{
    column::{Cells, List},
    dictionary::{Keys, NONE, Values},
    directory::Directory,
    parts::Parts,
    writer::BATCH_ROWS,
};
use crate::{error::Error, machine::Placed};

/// Rows with the tick of the row before stay in its batch, and so in its part, up to this many: then the times of two
/// parts do not overlap.
const MOST_BATCH_ROWS: usize = 8 * BATCH_ROWS;

/// Writes the table `events`.
pub(crate) struct EventRows {
    parts: Parts,
    types: Types,
    tick: Vec<i64>,
    kind: Vec<u32>,
    cpu: Int32Builder,
    lwp: Int32Builder,
    thread: Int64Builder,
    context: Vec<u32>,
    target_lwp: Int32Builder,
    target_thread: Int64Builder,
    cpu_seen: Int32Builder,
    args: List<Int64Builder>,
    texts: List<StringBuilder>,
}

/// What the rows of each event type have in common: for each type its key in each of these columns.
struct Types {
    level: Common,
    code: Common,
    name: Common,
    contexts: Arc<Values>,
}

/// A column that an event's type decides.
struct Common {
    keys: Vec<u32>,
    values: Arc<Values>,
}

impl EventRows {
    /// For events of these types.
    pub(crate) fn create<'t>(
        directory: &Directory,
        types: impl Iterator<Item = &'t EventType> + Clone,
    ) -> Result<EventRows, Error> {
        Ok(EventRows {
            parts: directory.parts(&EVENTS)?,
            types: Types::new(types),
            tick: Vec::with_capacity(BATCH_ROWS),
            kind: Vec::with_capacity(BATCH_ROWS),
            cpu: Int32Builder::with_capacity(BATCH_ROWS),
            lwp: Int32Builder::with_capacity(BATCH_ROWS),
            thread: Int64Builder::with_capacity(BATCH_ROWS),
            context: Vec::with_capacity(BATCH_ROWS),
            target_lwp: Int32Builder::with_capacity(BATCH_ROWS),
            target_thread: Int64Builder::with_capacity(BATCH_ROWS),
            cpu_seen: Int32Builder::with_capacity(BATCH_ROWS),
            args: List::default(),
            texts: List::default(),
        })
    }

    /// Adds an event, whose type has the number `kind`.
    #[inline]
    pub(crate) fn push(
        &mut self,
        kind: usize,
        event: &Event,
        placed: &Placed,
        cpu_seen: Option<Cpu>,
    ) -> Result<(), Error> {
        if self.tick.len() >= BATCH_ROWS && self.ends_before(event.tick) {
            self.flush()?;
        }
        self.tick.push(event.tick.0 as i64);
        self.kind.push(kind as u32);
        self.cpu.append_option(placed.cpu.map(|c| c.0 as i32));
        self.lwp.append_option(placed.lwp.map(|l| l.0 as i32));
        self.thread.append_option(placed.thread.map(|t| t.0 as i64));
        self.context.push(placed.context.map_or(NONE, |context| context as u32));
        self.target_lwp.append_option(placed.target_lwp.map(|l| l.0 as i32));
        self.target_thread.append_option(placed.target_thread.map(|t| t.0 as i64));
        self.cpu_seen.append_option(cpu_seen.map(|c| c.0 as i32));
        self.params(&event.params);
        Ok(())
    }

    #[inline]
    fn params(&mut self, params: &Params) {
        for param in params.iter() {
            self.args.values.append_option(param.number);
        }
        for param in params.iter().take(params.texts()) {
            self.texts.values.append_option(param.text);
        }
        self.args.end();
        self.texts.end();
    }

    /// Completes the files.
    pub(crate) fn finish(mut self) -> Result<(), Error> {
        self.flush()?;
        self.parts.finish()
    }

    fn ends_before(&self, tick: Ticks) -> bool {
        self.tick.last() != Some(&(tick.0 as i64)) || self.tick.len() >= MOST_BATCH_ROWS
    }

    fn flush(&mut self) -> Result<(), Error> {
        let rows = self.tick.len();
        let ticks = std::mem::replace(&mut self.tick, Vec::with_capacity(BATCH_ROWS));
        let contexts = std::mem::replace(&mut self.context, Vec::with_capacity(BATCH_ROWS));
        let kinds = &self.kind;
        // In the order of the table's columns.
        let batch = vec![
            Int64Array::from(ticks).into(),
            self.types.level.of(kinds),
            self.types.code.of(kinds),
            self.types.name.of(kinds),
            self.cpu.finish().into(),
            self.lwp.finish().into(),
            self.thread.finish().into(),
            Cells::Keys(Keys { keys: contexts, values: Arc::clone(&self.types.contexts) }),
            self.target_lwp.finish().into(),
            self.target_thread.finish().into(),
            self.cpu_seen.finish().into(),
            self.args.finish(),
            self.texts.finish(),
        ];
        self.kind.clear();
        self.parts.write(batch, rows)
    }
}

impl Types {
    fn new<'t>(types: impl Iterator<Item = &'t EventType> + Clone) -> Types {
        let code = |number: &i64, values: &mut Values| values.push_number(*number);
        let name = |name: &&str, values: &mut Values| values.push_text(name);
        Types {
            level: Common {
                keys: types.clone().map(|t| t.level as u32).collect(),
                values: Values::texts(Level::ALL.iter().map(|level| level.name())),
            },
            code: Common::new(types.clone().map(|t| t.code.map(i64::from)), code),
            name: Common::new(types.map(|t| Some(t.name.as_str())), name),
            contexts: Values::texts(Context::ALL.iter().map(|context| context.name())),
        }
    }
}

impl Common {
    /// From the value of each type; `push` adds one to the list. Equal ones have one key.
    fn new<T: Hash + Eq>(
        of_types: impl Iterator<Item = Option<T>>,
        push: impl Fn(&T, &mut Values),
    ) -> Common {
        let (mut values, mut known) = (Values::default(), HashMap::new());
        let mut key = |value: T| {
            let next = known.len() as u32;
            *known.entry(value).or_insert_with_key(|value| {
                push(value, &mut values);
                next
            })
        };
        let keys = of_types.map(|value| value.map_or(NONE, &mut key)).collect();
        Common { keys, values: Arc::new(values) }
    }

    /// The column of events of these types.
    fn of(&self, kinds: &[u32]) -> Cells {
        let keys = kinds.iter().map(|kind| self.keys[*kind as usize]).collect();
        Cells::Keys(Keys { keys, values: Arc::clone(&self.values) })
    }
}
