//! `typed(CAST(x AS BIGINT))`: the value of a cast, with the type in its name.
//!
//! DataFusion names a cast by what is cast. So `sum(x)` and `sum(CAST(x AS DOUBLE))` have one name, and a plan with both of them
//! fails, as does one that groups by `x` and `CAST(x AS VARCHAR)`. `sqlite_words` puts each cast of a statement into this function.

use std::{hash::Hash, sync::Arc};

use arrow::datatypes::{DataType, FieldRef};
use datafusion::{
    common::{Result, plan_datafusion_err},
    logical_expr::{
        ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
        Volatility,
        simplify::{ExprSimplifyResult, SimplifyContext},
    },
};

/// The name of the function.
pub(crate) const TYPED: &str = "typed";

/// The function. The optimizer replaces it by its argument; the column keeps the name.
pub(super) fn typed() -> ScalarUDF {
    ScalarUDF::new_from_impl(Typed { signature: Signature::any(1, Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Typed {
    signature: Signature,
}

impl ScalarUDFImpl for Typed {
    fn name(&self) -> &str {
        TYPED
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        types.first().cloned().ok_or_else(no_argument)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let field = args.arg_fields.first().ok_or_else(no_argument)?;
        Ok(Arc::new(field.as_ref().clone().with_name(TYPED)))
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let (cast, what, field) = match args {
            [Expr::Cast(cast)] => ("CAST", &cast.expr, &cast.field),
            [Expr::TryCast(cast)] => ("TRY_CAST", &cast.expr, &cast.field),
            [other] => return Ok(other.schema_name().to_string()),
            _ => return Err(no_argument()),
        };
        Ok(format!("{cast}({} AS {})", what.schema_name(), field.data_type()))
    }

    fn simplify(&self, args: Vec<Expr>, _: &SimplifyContext) -> Result<ExprSimplifyResult> {
        args.into_iter().next().map(ExprSimplifyResult::Simplified).ok_or_else(no_argument)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        args.args.into_iter().next().ok_or_else(no_argument)
    }
}

fn no_argument() -> datafusion::error::DataFusionError {
    plan_datafusion_err!("{TYPED}: expected one value, found none")
}
