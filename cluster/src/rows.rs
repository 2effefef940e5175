//! Rows that a plan has without reading anything, as those of `SELECT 1`: on a cluster, rows in memory.

use std::sync::Arc;

use arrow::{
    array::{RecordBatch, RecordBatchOptions, new_null_array},
    datatypes::SchemaRef,
};
use datafusion::{
    common::{Result, tree_node::Transformed},
    datasource::memory::MemorySourceConfig,
    physical_plan::{
        ExecutionPlan, ExecutionPlanProperties, empty::EmptyExec, placeholder_row::PlaceholderRowExec,
    },
};

/// A plan of one row, or of none, as rows in memory; other plans as they are.
///
/// In a union, Ballista (55.0) gives tasks that are of the other inputs rows in memory, none of them, in the place of such a plan. These
/// are an operator that counts what it does, and the plan is none; but the scheduler expects the same counts of all tasks.
pub(crate) fn in_memory(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let rows = match (plan.is::<PlaceholderRowExec>(), plan.is::<EmptyExec>()) {
        (true, _) => vec![null_row(&plan.schema())?],
        (_, true) => Vec::new(),
        _ => return Ok(Transformed::no(plan)),
    };
    let partitions = vec![rows; plan.output_partitioning().partition_count()];
    Ok(Transformed::yes(MemorySourceConfig::try_new_exec(&partitions, plan.schema(), None)?))
}

/// What a `PlaceholderRowExec` has.
fn null_row(schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = schema.fields().iter().map(|field| new_null_array(field.data_type(), 1)).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}
