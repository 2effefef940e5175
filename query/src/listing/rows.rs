//! Rows of `events`, batch by batch.

use arrow::{
    array::{
        Array, ArrayRef, ArrowPrimitiveType, AsArray, DictionaryArray, Int32Array, Int64Array, ListArray,
        PrimitiveArray, RecordBatch, StringArray,
    },
    datatypes::{Int32Type, Int64Type},
};
use datafusion::{error::DataFusionError, execution::SendableRecordBatchStream};
use futures::StreamExt;
use sigmund_model::{Context, Cpu, Level, Lwp, Param, Thread, Ticks, tables::EVENTS};
use sigmund_sql::SuperTrace;

use crate::Error;

/// The columns that are read.
pub(crate) const COLUMNS: [&str; 13] = [
    "level",
    "ts_tick",
    "lwp",
    "cpu",
    "thread",
    "code",
    "name",
    "args",
    "texts",
    "context",
    "target_lwp",
    "target_thread",
    "cpu_seen",
];

/// Columns that no format of a listing shows.
pub(super) const NOT_PRINTED: [&str; 4] = ["context", "target_lwp", "target_thread", "cpu_seen"];

/// A stream of events, read batch by batch.
pub struct EventRows {
    stream: SendableRecordBatchStream,
    error: Box<dyn Fn(DataFusionError) -> sigmund_sql::Error + Send + Sync>,
}

impl EventRows {
    pub(crate) fn new(stream: SendableRecordBatchStream, trace: &SuperTrace) -> EventRows {
        EventRows { stream, error: Box::new(trace.error_of(EVENTS.name)) }
    }

    /// The next rows; `None` at the end.
    ///
    /// # Errors
    /// When a part of the trace cannot be read.
    pub async fn next(&mut self) -> Result<Option<EventBatch>, Error> {
        let batch = self.stream.next().await.transpose();
        batch.map_err(|error| (self.error)(error).into()).map(|batch| batch.map(EventBatch::new))
    }
}

/// A batch of consecutive rows of `events`.
pub struct EventBatch {
    level: Words,
    /// The meaning of each word of `level`.
    levels: Vec<Option<Level>>,
    tick: Int64Array,
    lwp: Int32Array,
    cpu: Int32Array,
    thread: Int64Array,
    code: Int64Array,
    name: Words,
    args: ListArray,
    /// The elements of `args` of all rows together; likewise `texts_values`.
    args_values: Int64Array,
    texts: ListArray,
    texts_values: StringArray,
    context: DictionaryArray<Int32Type>,
    /// The meaning of each word of `context`.
    contexts: Vec<Option<Context>>,
    target_lwp: Int32Array,
    target_thread: Int64Array,
    cpu_seen: Int32Array,
}

impl EventBatch {
    fn new(batch: RecordBatch) -> EventBatch {
        let column = |i: usize| batch.column(i);
        let level = Words::of(column(0));
        let context = Words::of(column(9));
        let context_of = |word: Option<&str>| Context::ALL.iter().copied().find(|c| Some(c.name()) == word);
        let of_word = |word: Option<&str>| Level::ALL.iter().copied().find(|l| Some(l.name()) == word);
        let (args, texts) = (column(7).as_list::<i32>().clone(), column(8).as_list::<i32>().clone());
        EventBatch {
            levels: level.values.iter().map(of_word).collect(),
            level,
            tick: column(1).as_primitive::<Int64Type>().clone(),
            lwp: column(2).as_primitive::<Int32Type>().clone(),
            cpu: column(3).as_primitive::<Int32Type>().clone(),
            thread: column(4).as_primitive::<Int64Type>().clone(),
            code: column(5).as_primitive::<Int64Type>().clone(),
            name: Words::of(column(6)),
            args_values: args.values().as_primitive::<Int64Type>().clone(),
            args,
            texts_values: texts.values().as_string::<i32>().clone(),
            texts,
            contexts: context.values.iter().map(context_of).collect(),
            context: context.keys,
            target_lwp: column(10).as_primitive::<Int32Type>().clone(),
            target_thread: column(11).as_primitive::<Int64Type>().clone(),
            cpu_seen: column(12).as_primitive::<Int32Type>().clone(),
        }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.tick.len()
    }

    /// Whether the batch is empty.
    pub fn is_empty(&self) -> bool {
        self.tick.is_empty()
    }

    /// The tick of the event in a row.
    ///
    /// # Panics
    /// When `row` is out of bounds.
    pub fn tick(&self, row: usize) -> Ticks {
        Ticks(self.tick.value(row) as u64)
    }

    /// The ticks of all rows.
    pub fn ticks(&self) -> &[i64] {
        self.tick.values()
    }

    /// The rows, in the order of time.
    pub fn rows(&self) -> impl Iterator<Item = EventRow<'_>> {
        (0..self.tick.len()).map(|row| self.row(row))
    }

    /// One row.
    ///
    /// # Panics
    /// When `row` is out of bounds.
    pub fn row(&self, row: usize) -> EventRow<'_> {
        EventRow {
            level: self.level.keys.key(row).and_then(|key| *self.levels.get(key)?),
            tick: self.tick(row),
            lwp: number(&self.lwp, row).map(|lwp| Lwp(lwp as u32)),
            cpu: number(&self.cpu, row).map(|cpu| Cpu(cpu as u32)),
            thread: number(&self.thread, row).map(|thread| Thread(thread as u64)),
            code: number(&self.code, row),
            name: self.name.get(row),
            args: Part::of(&self.args, row, &self.args_values),
            texts: Part::of(&self.texts, row, &self.texts_values),
            context: self.context.key(row).and_then(|key| *self.contexts.get(key)?),
            target_lwp: number(&self.target_lwp, row).map(|lwp| Lwp(lwp as u32)),
            target_thread: number(&self.target_thread, row).map(|thread| Thread(thread as u64)),
            cpu_seen: number(&self.cpu_seen, row).map(|cpu| Cpu(cpu as u32)),
        }
    }
}

fn number<T: ArrowPrimitiveType>(numbers: &PrimitiveArray<T>, row: usize) -> Option<T::Native> {
    numbers.is_valid(row).then(|| numbers.value(row))
}

/// The texts of a `Dictionary(Int32, Utf8)`.
struct Words {
    keys: DictionaryArray<Int32Type>,
    values: StringArray,
}

impl Words {
    fn of(column: &ArrayRef) -> Words {
        let keys = column.as_dictionary::<Int32Type>().clone();
        let values = keys.values().as_string::<i32>().clone();
        Words { keys, values }
    }

    /// The text of a row; empty for NULL.
    fn get(&self, row: usize) -> &str {
        self.keys.key(row).map_or("", |key| self.values.value(key))
    }
}

/// One event.
#[derive(Clone, Copy, Debug)]
pub struct EventRow<'a> {
    /// The side that recorded it; `None` if the word in the trace is not a level.
    pub level: Option<Level>,
    /// Its tick.
    pub tick: Ticks,
    /// The LWP it was on; the paper's `pid`.
    pub lwp: Option<Lwp>,
    /// The CPU it was on.
    pub cpu: Option<Cpu>,
    /// The user thread that was executing.
    pub thread: Option<Thread>,
    /// Its number in its source.
    pub code: Option<i64>,
    /// Its name in its source.
    pub name: &'a str,
    /// The context of the CPU.
    pub context: Option<Context>,
    /// The LWP that it makes run, wakes or creates.
    pub target_lwp: Option<Lwp>,
    /// The user thread that it makes run, wakes or creates.
    pub target_thread: Option<Thread>,
    /// The CPU that the probe read.
    pub cpu_seen: Option<Cpu>,
    args: Part<'a, Int64Array>,
    texts: Part<'a, StringArray>,
}

impl<'a> EventRow<'a> {
    /// Its parameters, if all are numbers without a name.
    #[inline]
    pub fn plain_numbers(&self) -> Option<&'a [i64]> {
        let is_plain = self.texts.len == 0 && self.args.values.null_count() == 0;
        is_plain.then(|| &self.args.values.values()[self.args.from..self.args.from + self.args.len])
    }

    /// Its parameters, in order.
    pub fn params(&self) -> impl ExactSizeIterator<Item = Param<'a>> + use<'a> {
        let (args, texts) = (self.args, self.texts);
        (0..args.len.max(texts.len)).map(move |index| Param {
            number: args.index(index).map(|i| args.values.value(i)),
            text: texts.index(index).map(|i| texts.values.value(i)),
        })
    }
}

/// The elements of one row's list, borrowed from the batch.
#[derive(Debug)]
struct Part<'a, A> {
    values: &'a A,
    from: usize,
    len: usize,
}

impl<A> Clone for Part<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for Part<'_, A> {}

impl<'a, A: Array> Part<'a, A> {
    fn of(list: &ListArray, row: usize, values: &'a A) -> Part<'a, A> {
        let len = if list.is_valid(row) { list.value_length(row) as usize } else { 0 };
        Part { values, from: list.value_offsets()[row] as usize, len }
    }

    /// The index of an element in `values`; `None` if it is NULL or past the end.
    fn index(&self, index: usize) -> Option<usize> {
        let at = self.from + index;
        (index < self.len && self.values.is_valid(at)).then_some(at)
    }
}
