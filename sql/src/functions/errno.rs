//! The names of errors that system calls return.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, StringArray},
    datatypes::DataType,
};
use datafusion::logical_expr::ScalarUDF;
use syscalls::Errno;

/// The least return value that is an error. A system call returns an error as a number from here to -1 (`MAX_ERRNO`,
/// include/linux/err.h).
const LEAST: i64 = -4095;

/// `errno_name(Int64) -> Utf8`: the name of the error in the return value of a system call, for example `ENOENT` for
/// -2. NULL if the value is no error. If the error has no name, its number.
pub(super) fn errno_name() -> ScalarUDF {
    super::scalar::of_integer("errno_name", DataType::Utf8, |returned| {
        let name = |ret: i64| {
            let number = (LEAST..0).contains(&ret).then_some(-ret)?;
            let name = Errno::new(number as i32).name();
            Some(name.map_or_else(|| number.to_string(), String::from))
        };
        Arc::new(returned.iter().map(|ret| ret.and_then(name)).collect::<StringArray>()) as ArrayRef
    })
}
