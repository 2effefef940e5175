//! How columns are declared.

use super::{Column, ColumnType};

/// A column that always has a value.
pub(super) const fn known(name: &'static str, ty: ColumnType, doc: &'static str) -> Column {
    Column { name, ty, nullable: false, doc }
}

/// A column that is NULL where the value is not known, or does not exist.
pub(super) const fn maybe(name: &'static str, ty: ColumnType, doc: &'static str) -> Column {
    Column { name, ty, nullable: true, doc }
}
