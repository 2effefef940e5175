//! The operator without its inputs, in the form in which it is sent to other processes: executors of a cluster.

use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use datafusion::{
    common::{Result, plan_err},
    physical_plan::ExecutionPlan,
};

use super::{operation::Operation, operator::IntervalExec, output::Origin};

/// The parts of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorParts {
    /// The name of its function.
    pub function: String,
    /// The number of key columns, which come first in each input.
    pub keys: usize,
    /// Whether all rows have the same key.
    pub has_one_key: bool,
    /// Where each column of the result comes from: `from`, `length`, `added`, `key PLACE`, `column INPUT NAME`.
    pub origins: Vec<String>,
    /// The schema of the result.
    pub schema: SchemaRef,
}

impl OperatorParts {
    /// The parts of an operator in a plan; `None` if it is another kind of operator.
    pub fn of(plan: &dyn ExecutionPlan) -> Option<OperatorParts> {
        let (operation, (keys, has_one_key), origins) = plan.downcast_ref::<IntervalExec>()?.parts();
        let origins = origins.iter().map(|origin| match origin {
            Origin::From => "from".to_string(),
            Origin::Length => "length".to_string(),
            Origin::Added => "added".to_string(),
            Origin::Key(place) => format!("key {place}"),
            Origin::Column(input, name) => format!("column {input} {name}"),
        });
        let (function, origins) = (operation.name().to_string(), origins.collect());
        Some(OperatorParts { function, keys, has_one_key, origins, schema: plan.schema() })
    }

    /// Makes the operator on these inputs.
    ///
    /// # Errors
    /// When the parts do not fit together, or do not fit the inputs.
    pub fn operator(self, inputs: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let OperatorParts { function, keys, has_one_key, origins, schema } = self;
        let Some(operation) = Operation::by_name(&function) else {
            return plan_err!("expected a function of intervals, found {function}");
        };
        let origins = origins.iter().map(|text| origin(text)).collect::<Option<Vec<Origin>>>();
        let origins = origins.filter(|origins| fit(origins, (operation, keys), &inputs));
        let origins = origins.filter(|origins| origins.len() == schema.fields().len());
        let Some(origins) = origins else {
            return plan_err!("{function}: expected an operator that fits its inputs, found another");
        };
        Ok(Arc::new(IntervalExec::new(operation, inputs, (keys, has_one_key), origins, schema)))
    }
}

fn origin(text: &str) -> Option<Origin> {
    let mut words = text.splitn(3, ' ');
    match (words.next()?, words.next(), words.next()) {
        ("from", None, None) => Some(Origin::From),
        ("length", None, None) => Some(Origin::Length),
        ("added", None, None) => Some(Origin::Added),
        ("key", Some(place), None) => Some(Origin::Key(place.parse().ok()?)),
        ("column", Some(input), Some(name)) => Some(Origin::Column(input.parse().ok()?, name.to_string())),
        _ => None,
    }
}

/// Whether the inputs have the columns of the key, of the time, and the others that are needed.
fn fit(origins: &[Origin], (operation, keys): (Operation, usize), inputs: &[Arc<dyn ExecutionPlan>]) -> bool {
    let of_input = |number: usize| {
        origins.iter().filter(move |origin| matches!(origin, Origin::Column(input, _) if *input == number))
    };
    let has_time = |(number, input): (usize, &Arc<dyn ExecutionPlan>)| {
        let schema = input.schema();
        let times = keys.checked_add(2).and_then(|end| schema.fields().get(keys..end));
        times.is_some_and(|times| times.iter().all(|field| *field.data_type() == DataType::Int64))
            && schema.fields().len() == keys + 2 + of_input(number).count()
    };
    let is_there = |origin: &Origin| match origin {
        Origin::Key(place) => *place < keys,
        Origin::Column(input, _) => *input < inputs.len(),
        Origin::From | Origin::Length | Origin::Added => true,
    };
    keys > 0
        && inputs.len() == operation.tables()
        && origins.iter().all(is_there)
        && inputs.iter().enumerate().all(has_time)
}
