//! Conditions on the rows of row groups.

use std::sync::Arc;

use arrow::{
    array::{Array, AsArray, BooleanArray, RecordBatch},
    compute::cast,
    datatypes::{DataType, Schema, SchemaRef},
    error::ArrowError,
};
use datafusion::{
    common::DFSchema, error::DataFusionError, logical_expr::Expr, physical_plan::PhysicalExpr,
    prelude::SessionContext,
};
use sigmund_model::tables::Table;

use super::row_groups::schema_of;

/// A condition on the rows of a table.
#[derive(Clone, Debug)]
pub struct RowCondition {
    /// The columns that it depends on, in the order of the table.
    schema: SchemaRef,
    expr: Arc<dyn PhysicalExpr>,
}

impl RowCondition {
    pub(crate) fn new(
        session: &SessionContext,
        table: &Table,
        condition: Expr,
    ) -> Result<RowCondition, DataFusionError> {
        let used = condition.column_refs();
        let is_used = |name: &str| used.iter().any(|column| column.name == name);
        let names = table.columns.iter().map(|column| column.name);
        // A batch without any column has no rows.
        let columns: Vec<&str> =
            names.enumerate().filter(|(at, name)| *at == 0 || is_used(name)).map(|(_, name)| name).collect();
        let schema = schema_of(table, &columns);
        let expr = session.create_physical_expr(condition, &DFSchema::try_from(Arc::clone(&schema))?)?;
        Ok(RowCondition { schema, expr })
    }

    /// The names of the columns that it depends on.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.schema.fields().iter().map(|field| field.name().as_str())
    }

    /// For each row of a batch that has these columns, whether the condition holds.
    pub(super) fn holds(&self, batch: &RecordBatch) -> Result<BooleanArray, ArrowError> {
        let batch = with_columns(batch, &self.schema)?;
        let result = self.expr.evaluate(&batch)?.into_array(batch.num_rows())?;
        let result = if *result.data_type() == DataType::Boolean {
            result
        } else {
            cast(&result, &DataType::Boolean)?
        };
        let holds = result.as_boolean();
        Ok(match holds.nulls() {
            None => holds.clone(),
            Some(known) => BooleanArray::new(holds.values() & known.inner(), None),
        })
    }
}

/// These columns of a batch, with the types of a schema.
pub(super) fn with_columns(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let of_batch: SchemaRef = batch.schema();
    let column = |field: &arrow::datatypes::FieldRef| {
        let column = batch.column(Schema::index_of(&of_batch, field.name())?);
        if column.data_type() == field.data_type() {
            Ok(Arc::clone(column))
        } else {
            cast(column, field.data_type())
        }
    };
    let columns = schema.fields().iter().map(column).collect::<Result<_, ArrowError>>()?;
    RecordBatch::try_new(Arc::clone(schema), columns)
}
