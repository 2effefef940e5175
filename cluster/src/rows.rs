//! Rows that a plan has without reading anything, such as those of `SELECT 1`. On a cluster, they become rows in
//! memory.

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

/// Replaces a plan of one row or of none by rows in memory. Other plans are returned unchanged.
///
/// The reason is a problem of Ballista (55.0) with unions. A task that is for the other inputs of the union gets empty
/// rows in memory in the place of such a plan. Rows in memory are an operator with counters, and such a plan is not.
/// But the scheduler expects the same number of counters from all tasks.
pub(crate) fn in_memory(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let rows = match (plan.is::<PlaceholderRowExec>(), plan.is::<EmptyExec>()) {
        (true, _) => vec![null_row(&plan.schema())?],
        (_, true) => Vec::new(),
        _ => return Ok(Transformed::no(plan)),
    };
    let partitions = vec![rows; plan.output_partitioning().partition_count()];
    Ok(Transformed::yes(MemorySourceConfig::try_new_exec(&partitions, plan.schema(), None)?))
}

/// The row of a `PlaceholderRowExec`.
fn null_row(schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = schema.fields().iter().map(|field| new_null_array(field.data_type(), 1)).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}
