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
    encoding::{Cells, Filled, GATHERED_ROWS, Gathered, Keys, Levels, NONE, Parts, Texts, Values},
    error::Error,
    machine::Placed,
};

/// Rows with the same tick stay in one batch, and so in one part, up to this number of rows. So the times of two parts
/// do not overlap.
const MOST_BATCH_ROWS: usize = 8 * BATCH_ROWS;

/// Writes the table `events`.
pub(crate) struct EventRows {
    parts: Parts,
    types: Types,
    last: Option<Ticks>,
    gathered: GatheredEvents,
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
    /// Number of last rows that have no texts. Most rows have none, so they are added to `texts` together.
    without_texts: usize,
}

/// The last few rows, without their parameters. They are in one place of the cache, and whether there is room is
/// checked only once.
struct GatheredEvents {
    rows: usize,
    tick: [i64; GATHERED_ROWS],
    kind: [u32; GATHERED_ROWS],
    context: [u32; GATHERED_ROWS],
    cpu: Gathered,
    lwp: Gathered,
    thread: Gathered,
    target_lwp: Gathered,
    target_thread: Gathered,
    cpu_seen: Gathered,
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
    /// Creates the table for events of these types.
    pub(crate) fn create<'t>(
        directory: &Directory,
        types: impl Iterator<Item = &'t EventType> + Clone,
    ) -> Result<EventRows, Error> {
        Ok(EventRows {
            parts: directory.parts(&EVENTS)?,
            types: Types::new(types),
            last: None,
            gathered: GatheredEvents::default(),
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
            without_texts: 0,
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
        if self.gathered.rows == GATHERED_ROWS {
            self.settle();
        }
        if self.tick.len() >= BATCH_ROWS && self.ends_before(event.tick) {
            self.flush()?;
        }
        self.last = Some(event.tick);
        self.gathered.push(kind, event.tick, placed, cpu_seen);
        self.params(&event.params);
        Ok(())
    }

    #[inline]
    fn params(&mut self, params: &Params) {
        match params.all_numbers() {
            Some(numbers) => self.args.push_numbers(numbers),
            None => self.args.push_list(params.numbers()),
        }
        if params.texts() == 0 {
            self.without_texts += 1;
            return;
        }
        self.texts.push_empty_lists(std::mem::take(&mut self.without_texts));
        self.texts.push_list(params.iter().take(params.texts()).map(|param| param.text));
    }

    /// Completes the files.
    pub(crate) fn finish(mut self) -> Result<(), Error> {
        self.flush()?;
        self.parts.finish()
    }

    fn ends_before(&self, tick: Ticks) -> bool {
        self.last != Some(tick) || self.tick.len() >= MOST_BATCH_ROWS
    }

    /// Adds the gathered rows to the columns.
    fn settle(&mut self) {
        let gathered = &mut self.gathered;
        let rows = std::mem::take(&mut gathered.rows);
        self.tick.extend_from_slice(&gathered.tick[..rows]);
        self.kind.extend_from_slice(&gathered.kind[..rows]);
        self.context.extend_from_slice(&gathered.context[..rows]);
        self.cpu.push_gathered(&mut gathered.cpu, rows);
        self.lwp.push_gathered(&mut gathered.lwp, rows);
        self.thread.push_gathered(&mut gathered.thread, rows);
        self.target_lwp.push_gathered(&mut gathered.target_lwp, rows);
        self.target_thread.push_gathered(&mut gathered.target_thread, rows);
        self.cpu_seen.push_gathered(&mut gathered.cpu_seen, rows);
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.settle();
        self.texts.push_empty_lists(std::mem::take(&mut self.without_texts));
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

impl GatheredEvents {
    #[inline]
    fn push(&mut self, kind: usize, tick: Ticks, placed: &Placed, cpu_seen: Option<Cpu>) {
        let row = self.rows % GATHERED_ROWS;
        self.tick[row] = tick.0 as i64;
        self.kind[row] = kind as u32;
        self.context[row] = placed.context.map_or(NONE, |context| context as u32);
        self.cpu.fill(row, placed.cpu.map(|c| i64::from(c.0 as i32)));
        self.lwp.fill(row, placed.lwp.map(|l| i64::from(l.0 as i32)));
        self.thread.fill(row, placed.thread.map(|t| t.0 as i64));
        self.target_lwp.fill(row, placed.target_lwp.map(|l| i64::from(l.0 as i32)));
        self.target_thread.fill(row, placed.target_thread.map(|t| t.0 as i64));
        self.cpu_seen.fill(row, cpu_seen.map(|c| i64::from(c.0 as i32)));
        self.rows = row + 1;
    }
}

impl Default for GatheredEvents {
    fn default() -> GatheredEvents {
        let none = Gathered::default();
        GatheredEvents {
            rows: 0,
            tick: [0; GATHERED_ROWS],
            kind: [0; GATHERED_ROWS],
            context: [NONE; GATHERED_ROWS],
            cpu: none,
            lwp: none,
            thread: none,
            target_lwp: none,
            target_thread: none,
            cpu_seen: none,
        }
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
