//! `cardinality` of a list of plain values, such as the column `args`: its length, by the offsets of the list.
//!
//! DataFusion counts the values of each list in a slice of them, in case they are lists themselves. That takes five times as long as
//! reading them.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray, UInt64Array},
    datatypes::DataType,
};
use datafusion::{
    common::{Result, internal_err},
    logical_expr::{ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature},
    prelude::SessionContext,
};

/// Replaces the function of a session.
pub(super) fn register(context: &SessionContext) -> Result<()> {
    let Some(function) = context.state().scalar_functions().get("cardinality").map(Arc::clone) else {
        return internal_err!("DataFusion has no function cardinality");
    };
    context.register_udf(ScalarUDF::new_from_impl(Cardinality { function }));
    Ok(())
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Cardinality {
    /// DataFusion's, for lists of lists and for maps.
    function: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for Cardinality {
    fn name(&self) -> &str {
        self.function.name()
    }

    fn signature(&self) -> &Signature {
        self.function.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.function.return_type(types)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.function.coerce_types(types)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.function.documentation()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.as_slice() {
            [ColumnarValue::Array(lists)] if is_of_plain_values(lists.data_type()) => {
                Ok(ColumnarValue::Array(lengths(lists)))
            }
            _ => self.function.invoke_with_args(args),
        }
    }
}

fn is_of_plain_values(data_type: &DataType) -> bool {
    matches!(data_type, DataType::List(value) if !value.data_type().is_nested())
}

fn lengths(lists: &ArrayRef) -> ArrayRef {
    let lists = lists.as_list::<i32>();
    let lengths = lists.offsets().lengths().map(|length| length as u64);
    Arc::new(UInt64Array::new(lengths.collect(), lists.nulls().cloned()))
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Builder, ListBuilder, RecordBatch};
    use datafusion::prelude::SessionContext;

    use super::*;

    #[tokio::test]
    async fn lengths_are_those_of_datafusion() {
        let mut lists = ListBuilder::new(Int64Builder::new());
        for list in [Some(vec![Some(1), None, Some(3)]), None, Some(vec![]), Some(vec![Some(7)])] {
            lists.append_option(list);
        }
        let batch = RecordBatch::try_from_iter([("args", Arc::new(lists.finish()) as ArrayRef)]).unwrap();
        let mut answers = Vec::new();
        for session in [SessionContext::new(), crate::session::session(None).unwrap()] {
            // The first row is left out, so the offsets do not begin with 0.
            session.register_batch("t", batch.slice(1, 3)).unwrap();
            session.register_batch("u", batch.clone()).unwrap();
            for query in [
                "SELECT cardinality(args) AS n FROM t",
                "SELECT cardinality(args) AS n FROM u",
                "SELECT cardinality([args, args]) AS n FROM u WHERE args IS NOT NULL",
                "SELECT cardinality([1, 2, 3]) AS n",
            ] {
                let rows = session.sql(query).await.unwrap().collect().await.unwrap();
                answers.push(rows[0].column(0).clone());
            }
        }
        let (datafusion, ours) = answers.split_at(4);
        assert_eq!(ours, datafusion);
        let expected = UInt64Array::from(vec![Some(3), None, Some(0), Some(1)]);
        assert_eq!(ours[1].as_primitive(), &expected);
    }
}
