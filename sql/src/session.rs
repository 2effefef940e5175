//! The DataFusion session of every query: its options, functions and rules.

use std::sync::Arc;

use datafusion::{
    error::DataFusionError,
    execution::{SessionStateBuilder, memory_pool::FairSpillPool, runtime_env::RuntimeEnvBuilder},
    prelude::{SessionConfig, SessionContext},
};

use crate::{
    checked_arithmetic::CheckArithmetic, faster_operators, functions, unused_join::EliminateUnusedJoin,
    whole_keys::SortByWholeKeys, yielding::YieldWhereRowsMultiply,
};

/// A session with our functions and rules, and without tables. `memory` is a limit in bytes.
pub(crate) fn session(memory: Option<usize>) -> Result<SessionContext, DataFusionError> {
    let mut config = SessionConfig::new().with_information_schema(true);
    let options = config.options_mut();
    // Event names keep the case in which programs write them: USER_CONTEXT_SWITCH must not become user_context_switch.
    options.sql_parser.enable_ident_normalization = false;
    // So the first rows of `ORDER BY dur DESC` are the longest ones, and not those without an end.
    options.sql_parser.default_null_ordering = "nulls_last".into();
    // VARCHAR is the type in the tables: Utf8, not Utf8View.
    options.sql_parser.map_string_types_to_utf8view = false;
    // The columns on the two sides of a UNION have different descriptions in their metadata, which the check would
    // reject.
    options.execution.skip_physical_aggregate_schema_check = true;
    // For rows that do not pass the filter, the other columns are not read.
    options.execution.parquet.pushdown_filters = true;
    let mut runtime = RuntimeEnvBuilder::new();
    if let Some(memory) = memory {
        // The memory that each partition of a sort reserves for merging its spilled rows; 10 MB by default.
        let options = &mut config.options_mut().execution;
        let share = memory / (8 * options.target_partitions.max(1));
        options.sort_spill_reservation_bytes = options.sort_spill_reservation_bytes.min(share);
        runtime = runtime.with_memory_pool(Arc::new(FairSpillPool::new(memory)));
    }
    let builder = SessionStateBuilder::new_with_default_features()
        .with_config(config)
        .with_runtime_env(runtime.build_arc()?)
        .with_optimizer_rule(Arc::new(EliminateUnusedJoin))
        .with_analyzer_rule(Arc::new(CheckArithmetic))
        .with_physical_optimizer_rule(Arc::new(SortByWholeKeys));
    let builder = faster_operators::rules()
        .into_iter()
        .fold(builder, |builder, rule| builder.with_physical_optimizer_rule(rule));
    let builder = builder.with_physical_optimizer_rule(Arc::new(YieldWhereRowsMultiply));
    let context = SessionContext::new_with_state(builder.build());
    functions::register_all(&context, memory)?;
    Ok(context)
}
