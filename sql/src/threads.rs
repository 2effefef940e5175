//! The names of user threads.

use std::collections::BTreeMap;

use arrow::{
    array::{Array, AsArray},
    datatypes::Int64Type,
};
use datafusion::{common::TableReference, error::Result, logical_expr::ident, prelude::SessionContext};
use sigmund_model::{Thread, tables::THREADS};

use crate::tables::raw_name;

/// Every user thread of the trace, with its name if it has one.
#[derive(Clone, Debug, Default)]
pub struct ThreadNames {
    threads: BTreeMap<Thread, Option<String>>,
}

impl ThreadNames {
    pub(crate) async fn read(context: &SessionContext) -> Result<ThreadNames> {
        let table = context.table(TableReference::bare(raw_name(&THREADS))).await?;
        let batches = table.select(vec![ident("thread"), ident("name")])?.collect().await?;
        let mut threads = BTreeMap::new();
        for batch in &batches {
            let numbers = batch.column(0).as_primitive::<Int64Type>();
            let names = batch.column(1).as_string::<i32>();
            for row in 0..batch.num_rows() {
                let name = names.is_valid(row).then(|| names.value(row).to_string());
                threads.insert(Thread(numbers.value(row) as u64), name);
            }
        }
        Ok(ThreadNames { threads })
    }

    /// The name of a thread, if it has one.
    pub fn name(&self, thread: Thread) -> Option<&str> {
        self.threads.get(&thread)?.as_deref()
    }

    /// The threads of exactly this name, in the order of their numbers. Names need not be unique.
    pub fn named(&self, name: &str) -> Vec<Thread> {
        self.iter().filter(|(_, n)| *n == Some(name)).map(|(thread, _)| thread).collect()
    }

    /// Whether the trace has a thread of this number.
    pub fn contains(&self, thread: Thread) -> bool {
        self.threads.contains_key(&thread)
    }

    /// All threads, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (Thread, Option<&str>)> {
        self.threads.iter().map(|(thread, name)| (*thread, name.as_deref()))
    }
}
