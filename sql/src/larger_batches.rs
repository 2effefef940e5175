//! Makes larger batches of rows that are sorted, if they have columns of words.
//!
//! Each batch of such a column has its own dictionary. DataFusion's sort takes the rows of each batch of its result from all batches that
//! it has read, and merges the dictionaries of all of these each time (arrow 59: `interleave_dictionaries`). That takes quadratic
//! time: minutes for 10^8 rows in batches of 8192. Larger batches have few dictionaries.

use std::{fmt, sync::Arc};

use arrow::{
    array::RecordBatch,
    compute::concat_batches,
    datatypes::{DataType, SchemaRef},
};
use datafusion::{
    common::{
        Result, internal_err,
        tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion},
        utils::memory::get_record_batch_memory_size,
    },
    config::ConfigOptions,
    error::DataFusionError,
    execution::{SendableRecordBatchStream, TaskContext, memory_pool::MemoryLimit},
    physical_expr::PhysicalExpr,
    physical_optimizer::PhysicalOptimizerRule,
    physical_plan::{
        ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties,
        ReplaceChildrenOptions, execution_plan::CardinalityEffect, sorts::sort::SortExec,
        stream::RecordBatchStreamAdapter,
    },
};
use futures::{StreamExt, stream};

/// The size of a batch in bytes, and its most rows, if memory is not limited.
const BYTES: usize = 16 << 20;
const ROWS: usize = 1 << 19;

/// Of the memory that a query may have, a batch has this part at most.
const PARTS: usize = 64;

/// Makes larger batches for sorts of all rows.
#[derive(Debug)]
pub(crate) struct SortLargerBatches;

impl PhysicalOptimizerRule for SortLargerBatches {
    fn name(&self) -> &'static str {
        "SortLargerBatches"
    }

    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| match plan.downcast_ref::<SortExec>() {
            // With a limit, few rows are kept.
            Some(sort) if sort.fetch().is_none() && has_words(&sort.schema()) => {
                let input = larger(Arc::clone(sort.input()));
                let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
                Ok(Transformed::yes(Arc::clone(&plan).replace_children(vec![input], options)?))
            }
            _ => Ok(Transformed::no(plan)),
        })
        .data()
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether a column has words, in dictionaries that can be put together however many there are.
fn has_words(schema: &SchemaRef) -> bool {
    let is_word = |data_type: &DataType| match data_type {
        DataType::Dictionary(keys, _) => **keys == DataType::Int32,
        _ => false,
    };
    schema.fields().iter().any(|field| is_word(field.data_type()))
}

/// The same rows in larger batches.
pub(crate) fn larger(input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    Arc::new(LargerBatchesExec { input })
}

/// Puts batches together.
#[derive(Debug)]
struct LargerBatchesExec {
    input: Arc<dyn ExecutionPlan>,
}

impl DisplayAs for LargerBatchesExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LargerBatchesExec")
    }
}

impl ExecutionPlan for LargerBatchesExec {
    fn name(&self) -> &'static str {
        "LargerBatchesExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Ok([input]) = <[_; 1]>::try_from(children) else {
            return internal_err!("LargerBatchesExec has one input");
        };
        Ok(larger(input))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let bytes = match context.memory_pool().memory_limit() {
            MemoryLimit::Finite(memory) => BYTES.min(memory / PARTS),
            MemoryLimit::Infinite | MemoryLimit::Unknown => BYTES,
        };
        let input = self.input.execute(partition, context)?;
        let batches = Batches { input: Some(input), bytes };
        let larger = stream::try_unfold(batches, async |mut batches| {
            Ok::<_, DataFusionError>(batches.next().await?.map(|batch| (batch, batches)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), larger)))
    }
}

/// The batches of an input.
struct Batches {
    /// `None` after its end.
    input: Option<SendableRecordBatchStream>,
    /// The size of what is put together.
    bytes: usize,
}

impl Batches {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        let Some(input) = &mut self.input else { return Ok(None) };
        let (mut some, mut rows, mut bytes) = (Vec::new(), 0, 0);
        while rows < ROWS && bytes < self.bytes {
            let Some(batch) = input.next().await.transpose()? else {
                self.input = None;
                break;
            };
            rows += batch.num_rows();
            bytes += get_record_batch_memory_size(&batch);
            some.push(batch);
        }
        let Some(first) = some.first() else { return Ok(None) };
        Ok(Some(concat_batches(&first.schema(), &some)?))
    }
}

#[cfg(test)]
mod tests {
    use arrow::{
        array::{AsArray, DictionaryArray, Int32Array, Int64Array, StringArray},
        datatypes::{Int32Type, Int64Type},
    };
    use datafusion::{datasource::MemTable, physical_plan::displayable};

    use super::*;

    /// Batches of 100 rows, each with other words.
    fn batches() -> Vec<RecordBatch> {
        let batch = |batch: i64| {
            let words: StringArray = (0..20).map(|word| Some(format!("w{batch}-{word}"))).collect();
            let keys: Int32Array = (0..100).map(|row| (row % 7 != 0).then_some(row % 20)).collect();
            let words = DictionaryArray::<Int32Type>::new(keys, Arc::new(words));
            let numbers: Int64Array = (0..100).map(|row| Some(row * 7919 % 1000 + batch)).collect();
            RecordBatch::try_from_iter_with_nullable([
                ("word", Arc::new(words) as arrow::array::ArrayRef, true),
                ("n", Arc::new(numbers), true),
            ])
            .unwrap()
        };
        (0..50).map(batch).collect()
    }

    #[tokio::test]
    async fn sorted_rows_are_the_same_with_and_without_a_limit_of_memory() {
        let batches = batches();
        let some = batches.as_slice();
        for memory in [None, Some(4 << 20)] {
            let session = crate::session::session(memory).unwrap();
            let table = MemTable::try_new(batches[0].schema(), vec![some.to_vec()]).unwrap();
            session.register_table("t", Arc::new(table)).unwrap();
            let query = "SELECT CAST(word AS VARCHAR) AS word, n FROM (SELECT word, n, row_number() OVER (ORDER BY n, word) AS r FROM t) \
                         ORDER BY r";
            let plan = session.sql(query).await.unwrap().create_physical_plan().await.unwrap();
            let plan = displayable(&*plan).indent(false).to_string();
            assert!(plan.contains("LargerBatchesExec"), "{plan}");
            let found = session.sql(query).await.unwrap().collect().await.unwrap();
            let found = found.iter().flat_map(|batch| {
                let (words, numbers) =
                    (batch.column(0).as_string::<i32>(), batch.column(1).as_primitive::<Int64Type>());
                (0..batch.num_rows()).map(|row| {
                    let word = words.iter().nth(row).unwrap().map(str::to_string);
                    (numbers.value(row), word.is_none(), word)
                })
            });
            let found: Vec<_> = found.collect();
            let mut expected: Vec<_> = some
                .iter()
                .flat_map(|batch| {
                    let words = batch.column(0).as_dictionary::<Int32Type>();
                    let texts = words.values().as_string::<i32>();
                    let numbers = batch.column(1).as_primitive::<Int64Type>();
                    (0..batch.num_rows()).map(|row| {
                        let word = words.key(row).map(|key| texts.value(key).to_string());
                        (numbers.value(row), word.is_none(), word)
                    })
                })
                .collect();
            expected.sort();
            assert_eq!(found, expected);
        }
    }

    #[tokio::test]
    async fn batches_are_put_together_as_far_as_memory_allows() {
        let all = batches();
        let input = datafusion::datasource::memory::MemorySourceConfig::try_new_exec(
            &[all[..3].to_vec()],
            all[0].schema(),
            None,
        )
        .unwrap();
        let sizes = async |memory| {
            let context = crate::session::session(memory).unwrap().task_ctx();
            let batches = larger(input.clone()).execute(0, context).unwrap();
            batches.map(|batch| batch.unwrap().num_rows()).collect::<Vec<_>>().await
        };
        assert_eq!(sizes(None).await, [300]);
        assert_eq!(sizes(Some(1 << 10)).await, [100, 100, 100]);
    }
}
