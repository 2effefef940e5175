//! The table `events`. It has most of the rows of a super-trace, so its columns are filled without lookups. The level,
//! code and name of an event are those of its type, and are gathered from the types for each batch.

use std::{
    collections::{HashMap, hash_map::Entry},
    hash::Hash,
    sync::Arc,
};

use sigmund_model::{Context, Cpu, Event, EventType, Params, Ticks, tables::EVENTS};

use super::{directory::Directory, writer::BATCH_ROWS};
use crate::{
    encoding::{Cells, Filled, Keys, Levels, NONE, Parts, Texts, Values},
    error::Error,
    machine::Placed,
};

/// Rows with the same tick stay in one batch, and so in one part, up to this number: then the times of two parts do not
/// overlap.
const MOST_BATCH_ROWS: usize = 8 * BATCH_ROWS;

/// Writes the table `events`.
pub(crate) struct EventRows {
    parts: Parts,
    types: Types,
    tick: Vec<i64>,
    kind: Vec<u32>,
    cpu: Filled<Vec<i64>>,
    lwp: Filled<Vec<i64>>,
    thread: Filled<Vec<i64>>,
    context: Vec<u32>,
    target_lwp: Filled<Vec<i64>>,
    target_thread: Filled<Vec<i64>>,
    cpu_seen: Filled<Vec<i64>>,
    args: Filled<Vec<i64>>,
    texts: Filled<Texts>,
}

/// The values that all rows of an event type have in common. The number of the type is the key of its value in each of
/// these columns.
struct Types {
    level: Arc<Values>,
    code: Arc<Values>,
    name: Arc<Values>,
    contexts: Arc<Values>,
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
            cpu: Filled::default(),
            lwp: Filled::default(),
            thread: Filled::default(),
            context: Vec::with_capacity(BATCH_ROWS),
            target_lwp: Filled::default(),
            target_thread: Filled::default(),
            cpu_seen: Filled::default(),
            args: Filled::default(),
            texts: Filled::default(),
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
        self.cpu.push(placed.cpu.map(|c| i64::from(c.0 as i32)));
        self.lwp.push(placed.lwp.map(|l| i64::from(l.0 as i32)));
        self.thread.push(placed.thread.map(|t| t.0 as i64));
        self.context.push(placed.context.map_or(NONE, |context| context as u32));
        self.target_lwp.push(placed.target_lwp.map(|l| i64::from(l.0 as i32)));
        self.target_thread.push(placed.target_thread.map(|t| t.0 as i64));
        self.cpu_seen.push(cpu_seen.map(|c| i64::from(c.0 as i32)));
        self.params(&event.params);
        Ok(())
    }

    #[inline]
    fn params(&mut self, params: &Params) {
        match params.all_numbers() {
            Some(numbers) => self.args.push_numbers(numbers),
            None => self.args.push_list(params.numbers()),
        }
        self.texts.push_list(params.iter().take(params.texts()).map(|param| param.text));
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
        let kinds = Arc::new(std::mem::replace(&mut self.kind, Vec::with_capacity(BATCH_ROWS)));
        // In the order of the table's columns.
        let batch = vec![
            Cells::Numbers(Filled { levels: Levels::all(rows), values: ticks }),
            keys(&kinds, &self.types.level),
            keys(&kinds, &self.types.code),
            keys(&kinds, &self.types.name),
            Cells::Numbers(self.cpu.take()),
            Cells::Numbers(self.lwp.take()),
            Cells::Numbers(self.thread.take()),
            keys(&Arc::new(contexts), &self.types.contexts),
            Cells::Numbers(self.target_lwp.take()),
            Cells::Numbers(self.target_thread.take()),
            Cells::Numbers(self.cpu_seen.take()),
            Cells::Numbers(self.args.take()),
            Cells::Texts(self.texts.take()),
        ];
        self.parts.write(batch, rows)
    }
}

impl Types {
    fn new<'t>(types: impl Iterator<Item = &'t EventType> + Clone) -> Types {
        let text = |text: &str, values: &mut Values| values.push_text(text);
        let number = |number: i64, values: &mut Values| values.push_number(number);
        Types {
            level: of_types(types.clone().map(|t| Some(t.level.name())), text),
            code: of_types(types.clone().map(|t| t.code.map(i64::from)), number),
            name: of_types(types.map(|t| Some(t.name.as_str())), text),
            contexts: Values::texts(Context::ALL.iter().map(|context| context.name())),
        }
    }
}

/// Builds a list from the values of all types; `push` adds a value to the list. Equal values are added once.
fn of_types<T: Hash + Eq + Copy>(
    of_types: impl Iterator<Item = Option<T>>,
    push: impl Fn(T, &mut Values),
) -> Arc<Values> {
    let (mut values, mut known) = (Values::default(), HashMap::new());
    for (kind, value) in of_types.enumerate() {
        let Some(value) = value else {
            values.push_as(None);
            continue;
        };
        match known.entry(value) {
            Entry::Occupied(before) => values.push_as(Some(*before.get())),
            Entry::Vacant(new) => {
                new.insert(kind);
                push(value, &mut values);
            }
        }
    }
    Arc::new(values)
}

fn keys(keys: &Arc<Vec<u32>>, values: &Arc<Values>) -> Cells {
    Cells::Keys(Keys { keys: Arc::clone(keys), values: Arc::clone(values) })
}
