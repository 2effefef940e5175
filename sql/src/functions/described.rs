//! The catalog's descriptions of functions of values: our functions, and the functions that DataFusion documents.

use datafusion::{execution::SessionState, logical_expr::Documentation};

use crate::{DescribedArgument, DescribedFunction};

/// The name, arguments and sentence of each function.
const OURS: [(&str, &[&str], &str); 12] = [
    (
        "percentile",
        &["x", "percent"],
        "Exact, by nearest rank: the smallest value such that at least `percent` % of the values are not larger; with DISTINCT, of the \
         distinct values.",
    ),
    ("sum", &["x"], "The sum of the values; an error if it is an integer beyond 64 bits."),
    (
        "to_ns",
        &["ticks"],
        "A length in nanoseconds, rounded towards zero; NULL if the rate of the clock is not known.",
    ),
    (
        "to_ticks",
        &["ns"],
        "A length in ticks, rounded towards zero; NULL if the rate of the clock is not known.",
    ),
    ("duration", &["ns"], "A human-readable length: `12.35 µs`, `1 d 6 h`."),
    (
        "wall_time",
        &["tick"],
        "The date and time of an instant, in UTC, by the snapshots in the table `clocks`.",
    ),
    (
        "log2_bucket",
        &["x"],
        "The largest power of two that is not greater than `x`, the bucket of a length in a histogram; of what is less than 1, 0.",
    ),
    (
        "time_bucket",
        &["width", "t"],
        "The largest multiple of `width` that is not later than `t`: the bucket of an instant in a histogram over time.",
    ),
    ("row_id", &["a", "b", "c"], "One number computed from three: the ids of Perfetto's views."),
    (
        "errno_name",
        &["ret"],
        "The name of the error in the return value of a system call: `ENOENT` for -2, NULL if there is no error.",
    ),
    ("u64_bits", &["x"], "A number of `args`, reinterpreted as the unsigned number with the same bits."),
    (
        "f64_bits",
        &["x"],
        "A number of `args`, reinterpreted as the floating-point number with the same bits.",
    ),
];

/// Our functions of values.
pub fn described_functions() -> Vec<DescribedFunction> {
    OURS.iter().map(|(name, arguments, sentence)| described(name, arguments, sentence)).collect()
}

/// The description of a function of values, which may be one of ours or one that DataFusion documents. `None` if there
/// is none of this name.
pub fn described_function(state: &SessionState, name: &str) -> Option<DescribedFunction> {
    if let Some(ours) = described_functions().into_iter().find(|function| function.name == name) {
        return Some(ours);
    }
    let scalar = || state.scalar_functions().get(name)?.documentation();
    let aggregate = || state.aggregate_functions().get(name)?.documentation();
    let window = || state.window_functions().get(name)?.documentation();
    let Documentation { description, syntax_example, arguments, .. } =
        scalar().or_else(aggregate).or_else(window)?;
    let arguments = arguments.iter().flatten();
    Some(DescribedFunction {
        definition: syntax_example.clone(),
        arguments: arguments.map(|(name, sentence)| DescribedArgument::new(name, sentence)).collect(),
        ..described(name, &[], description)
    })
}

fn described(name: &str, arguments: &[&str], sentence: &str) -> DescribedFunction {
    DescribedFunction {
        name: name.to_string(),
        sentence: sentence.to_string(),
        definition: String::new(),
        arguments: arguments.iter().map(|argument| DescribedArgument::new(*argument, "")).collect(),
        columns: Vec::new(),
        columns_of_cases: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::session;

    #[test]
    fn functions_that_are_registered_are_described() {
        let context = session(None).unwrap();
        for function in super::super::named() {
            assert!(described_function(&context.state(), function.name()).is_some(), "{}", function.name());
        }
        let lag = described_function(&context.state(), "lag").unwrap();
        assert!(lag.definition.starts_with("lag(") && !lag.arguments.is_empty(), "{lag:?}");
        assert_eq!(described_function(&context.state(), "percentil"), None);
    }
}
