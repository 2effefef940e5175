//! Gives the sorts of partitions all keys of the merge of their rows.
//!
//! DataFusion leaves a key out of the sort of each partition if it is constant there, as in `UNION ALL` of branches that each have
//! a constant, or the column `host` of a fleet. But with a `LIMIT`, the sorts of all partitions share a limit for rows
//! that cannot be among the first any more (a dynamic filter). Without that key, the limit of one partition drops rows of another
//! that should come first (DataFusion 55.2: `TopK::insert_batch`).

use std::sync::Arc;

use datafusion::{
    common::{
        Result,
        tree_node::{Transformed, TransformedResult, TreeNode},
    },
    config::ConfigOptions,
    physical_expr::equivalence::AcrossPartitions,
    physical_optimizer::PhysicalOptimizerRule,
    physical_plan::{
        ChildrenPropertiesMode, ExecutionPlan, ExecutionPlanProperties, ReplaceChildrenOptions,
        limit::LocalLimitExec,
        sorts::{sort::SortExec, sort_preserving_merge::SortPreservingMergeExec},
    },
};

/// Replaces sorts of partitions that share a limit, but not all keys.
#[derive(Debug)]
pub struct SortByWholeKeys;

impl PhysicalOptimizerRule for SortByWholeKeys {
    fn name(&self) -> &'static str {
        "SortByWholeKeys"
    }

    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            let inputs = plan.children();
            let whole: Vec<_> = inputs.iter().map(|input| sorted_by_whole_keys(&plan, input)).collect();
            if whole.iter().all(Option::is_none) {
                return Ok(Transformed::no(plan));
            }
            let inputs =
                whole.into_iter().zip(inputs).map(|(new, old)| new.unwrap_or_else(|| Arc::clone(old)));
            let inputs = inputs.collect();
            let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
            Ok(Transformed::yes(Arc::clone(&plan).replace_children(inputs, options)?))
        })
        .data()
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// What replaces an input of a plan. `None` if it can stay.
fn sorted_by_whole_keys(
    plan: &Arc<dyn ExecutionPlan>,
    input: &Arc<dyn ExecutionPlan>,
) -> Option<Arc<dyn ExecutionPlan>> {
    let sort = input.downcast_ref::<SortExec>()?;
    let (fetch, rows) = (sort.fetch()?, sort.input());
    if !sort.preserve_partitioning() || rows.output_partitioning().partition_count() < 2 {
        return None;
    }
    let sorted = |keys| SortExec::new(keys, Arc::clone(rows)).with_preserve_partitioning(true);
    if let Some(merge) = plan.downcast_ref::<SortPreservingMergeExec>() {
        let is_whole = merge.expr() == sort.expr();
        return (!is_whole).then(|| Arc::new(sorted(merge.expr().clone()).with_fetch(Some(fetch))) as _);
    }
    // It is not known by which of the keys that are left out the rows will be merged. So no limit is shared.
    let differs = |across: &AcrossPartitions| *across == AcrossPartitions::Heterogeneous;
    let constants = rows.equivalence_properties().constants();
    let may_lack_keys = constants.iter().any(|constant| differs(&constant.across_partitions));
    may_lack_keys.then(|| Arc::new(LocalLimitExec::new(Arc::new(sorted(sort.expr().clone())), fetch)) as _)
}
