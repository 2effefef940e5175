//! Sorts the inputs of functions over intervals by key and start.
//!
//! DataFusion's sort compares the rows of each batch with each other, and then those of all batches. But rows come nearly in the order of
//! their starts, because tables are stored in that order: it is enough to distribute them over their keys, and to sort the few keys
//! whose rows are not in order. It also merges the dictionaries of all batches for each batch of its result, which takes
//! quadratic time.
//!
//! The rows have to fit into memory. If they do not, DataFusion's sort takes over, which uses temporary files.

mod buckets;
mod columns;
mod operator;

use std::sync::Arc;

use datafusion::{
    common::{
        Result,
        tree_node::{Transformed, TransformedResult, TreeNode},
    },
    config::ConfigOptions,
    physical_optimizer::PhysicalOptimizerRule,
    physical_plan::{ChildrenPropertiesMode, ExecutionPlan, ReplaceChildrenOptions, sorts::sort::SortExec},
};

use super::operator::IntervalExec;
use operator::SortByKeyExec;

/// Replaces the sorts of inputs of functions over intervals.
#[derive(Debug)]
pub(crate) struct SortIntervalsByKey;

impl PhysicalOptimizerRule for SortIntervalsByKey {
    fn name(&self) -> &'static str {
        "SortIntervalsByKey"
    }

    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            let Some(intervals) = plan.downcast_ref::<IntervalExec>() else {
                return Ok(Transformed::no(plan));
            };
            let (_, (keys, _), _) = intervals.parts();
            let input = |input: &Arc<dyn ExecutionPlan>| match input.downcast_ref::<SortExec>() {
                Some(sort) if sort.fetch().is_none() => Arc::new(SortByKeyExec::new(sort.clone(), keys)) as _,
                _ => Arc::clone(input),
            };
            let inputs = plan.children().into_iter().map(input).collect();
            let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
            Ok(Transformed::yes(Arc::clone(&plan).replace_children(inputs, options)?))
        })
        .data()
    }

    fn schema_check(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
