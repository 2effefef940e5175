//! `GROUP BY` columns of words, such as the names of events: rows are grouped by the numbers that their words have in the dictionary of
//! their batch.
//!
//! DataFusion has no such grouping: it encodes the word of each row anew, and compares it. Here, a word is looked up once for each
//! dictionary, which a file has one of for some 10^6 rows.
//!
//! What is replaced is the first of the two stages of an aggregation, on the rows of each partition. The second one puts the
//! results of partitions together.

mod groups;
mod operator;
mod stream;

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::{
    common::{
        Result,
        tree_node::{Transformed, TransformedResult, TreeNode},
    },
    config::ConfigOptions,
    physical_expr::PhysicalExpr,
    physical_optimizer::PhysicalOptimizerRule,
    physical_plan::{
        ExecutionPlan, InputOrderMode,
        aggregates::{AggregateExec, AggregateMode},
    },
};

use operator::GroupWordsExec;

/// Replaces the first stage of aggregations that group rows by words.
#[derive(Debug)]
pub(crate) struct GroupByWords;

impl PhysicalOptimizerRule for GroupByWords {
    fn name(&self) -> &'static str {
        "GroupByWords"
    }

    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| match plan.downcast_ref::<AggregateExec>() {
            Some(plain) if groups_words(plain) => {
                Ok(Transformed::yes(Arc::new(GroupWordsExec::new(plain.clone()))))
            }
            _ => Ok(Transformed::no(plan)),
        })
        .data()
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether an aggregation is one that [`GroupWordsExec`] can do.
fn groups_words(plain: &AggregateExec) -> bool {
    let by = plain.group_expr();
    let schema = plain.input().schema();
    *plain.mode() == AggregateMode::Partial
        // Rows that come in the order of the groups need no table of groups.
        && *plain.input_order_mode() == InputOrderMode::Linear
        && plain.limit_options().is_none()
        && by.is_single()
        && (1..=groups::MAX_COLUMNS).contains(&by.expr().len())
        && by.expr().iter().all(|(column, _)| is_word(column, &schema))
        && plain.aggr_expr().iter().all(|function| function.groups_accumulator_supported())
}

fn is_word(column: &Arc<dyn PhysicalExpr>, schema: &Schema) -> bool {
    let Ok(DataType::Dictionary(_, values)) = column.data_type(schema) else { return false };
    *values == DataType::Utf8
}

#[cfg(test)]
mod tests;
