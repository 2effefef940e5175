//! Functions whose result can be far larger than their arguments, with a limit of its size.
//!
//! `repeat('x', 1000000000)` takes a gigabyte that the memory limit of a session does not know of: it counts what
//! operators keep, and no expressions.

mod sizes;

use std::sync::Arc;

use arrow::{array::Array, compute::concat, datatypes::DataType};
use datafusion::{
    common::{Result, plan_err},
    config::ConfigOptions,
    logical_expr::{
        ColumnarValue, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
        Signature,
    },
    prelude::SessionContext,
};

use crate::error::size as size_in_words;
use sizes::Size;

/// The maximum size of the result for a batch of rows, in bytes.
pub(crate) const MOST_BYTES: usize = 256 << 20;

/// The functions.
const BOUNDED: [(&str, Size); 11] = [
    ("repeat", Size::Repeated),
    ("lpad", Size::Padded),
    ("rpad", Size::Padded),
    ("array_repeat", Size::ListOf),
    ("array_resize", Size::Resized),
    ("range", Size::Between),
    ("generate_series", Size::Between),
    ("replace", Size::Replaced),
    ("regexp_replace", Size::ReplacedMatches),
    ("array_to_string", Size::Joined),
    ("to_char", Size::Formatted),
];

/// Replaces the functions of a session by bounded ones. `memory` is the limit of the session in bytes: a result has at most half of
/// it.
pub(super) fn register(context: &SessionContext, memory: Option<usize>) -> Result<()> {
    let memory = memory.filter(|memory| memory / 2 < MOST_BYTES);
    for (name, size) in BOUNDED {
        let function = Arc::clone(context.state().scalar_functions().get(name).ok_or_else(|| {
            datafusion::error::DataFusionError::Internal(format!("DataFusion has no function {name}"))
        })?);
        context.register_udf(ScalarUDF::new_from_impl(Bounded { function, size, memory }));
    }
    Ok(())
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Bounded {
    function: Arc<ScalarUDF>,
    size: Size,
    /// The memory limit of the session in bytes, if that matters.
    memory: Option<usize>,
}

impl Bounded {
    /// The maximum size of a result in bytes.
    fn most(&self) -> usize {
        self.memory.map_or(MOST_BYTES, |memory| memory / 2)
    }

    fn refuse<T>(&self, rows: usize, bytes: i128) -> Result<T> {
        let most = match self.memory {
            None => format!("{} MiB", MOST_BYTES >> 20),
            Some(memory) => {
                format!("half of the memory limit of {} (--memory)", size_in_words(&format!("{memory} B")))
            }
        };
        let found = bytes >> 20;
        plan_err!("{}: expected a result of at most {most} for {rows} rows, found {found} MiB", self.name())
    }

    /// The result, if its size is known to be at most so many bytes for each row. It is made of a few rows at a time, until it is too
    /// large.
    fn by_and_by(&self, args: &ScalarFunctionArgs, sizes: &[i128]) -> Result<ColumnarValue> {
        let (mut parts, mut made, mut first) = (Vec::new(), 0, 0);
        while first < sizes.len() {
            let mut sum = 0;
            let fits = |size: &&i128| {
                sum += **size;
                sum <= self.most() as i128
            };
            let count = sizes[first..].iter().take_while(fits).count();
            if count == 0 {
                return self.refuse(1, sizes[first]);
            }
            let slice = |arg: &ColumnarValue| match arg {
                ColumnarValue::Scalar(_) => arg.clone(),
                ColumnarValue::Array(array) => ColumnarValue::Array(array.slice(first, count)),
            };
            let part = ScalarFunctionArgs {
                args: args.args.iter().map(slice).collect(),
                arg_fields: args.arg_fields.clone(),
                number_rows: count,
                return_field: Arc::clone(&args.return_field),
                config_options: Arc::clone(&args.config_options),
            };
            let part = self.function.invoke_with_args(part)?.into_array(count)?;
            made += part.get_array_memory_size();
            if made > self.most() {
                return self.refuse(first + count, made as i128);
            }
            parts.push(part);
            first += count;
        }
        let parts: Vec<&dyn Array> = parts.iter().map(|part| part.as_ref()).collect();
        Ok(ColumnarValue::Array(concat(&parts)?))
    }
}

impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        self.function.name()
    }

    fn aliases(&self) -> &[String] {
        self.function.aliases()
    }

    fn signature(&self) -> &Signature {
        self.function.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.function.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<arrow::datatypes::FieldRef> {
        self.function.return_field_from_args(args)
    }

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        let function = Arc::new(self.function.inner().with_updated_config(config)?);
        Some(ScalarUDF::new_from_impl(Bounded { function, ..*self }))
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.function.coerce_types(types)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.function.documentation()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let are_constants = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if are_constants { 1 } else { args.number_rows };
        let sizes = self.size.of_rows(&args.args, rows)?;
        let bytes: i128 = sizes.iter().sum();
        // The value of constants counts once: whether it is copied to each row is known later (`crate::large_constants`). Where rows are
        // read, it is copied to each; while the query is planned there is one row.
        let bytes =
            if are_constants && self.size.is_exact() { bytes * args.number_rows as i128 } else { bytes };
        if bytes <= self.most() as i128 {
            self.function.invoke_with_args(args)
        } else if are_constants || self.size.is_exact() {
            self.refuse(args.number_rows, bytes)
        } else {
            self.by_and_by(&args, &sizes)
        }
    }
}
