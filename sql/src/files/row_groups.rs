//! The row groups of a table. Each can be read as one batch, in any order and from any thread.

use std::{
    collections::BTreeSet,
    sync::{Arc, OnceLock},
};

use arrow::{
    array::{AsArray, BooleanArray, Int64Array, RecordBatch},
    compute::{kernels::cmp::eq, or},
    datatypes::{DataType, Field, FieldRef, Int64Type, Schema, SchemaRef},
    error::ArrowError,
};
use datafusion::parquet::{
    arrow::{
        ProjectionMask,
        arrow_reader::{
            ArrowPredicateFn, ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
            RowFilter, RowSelection,
        },
    },
    file::statistics::Statistics,
};
use sigmund_model::tables::{ColumnType, Table};

use super::{
    Part,
    pages::{Useful, pages_with, pages_within, with_page_index},
    row_condition::{RowCondition, with_columns},
};
use crate::Error;

/// Some columns of a table, as row groups in the order of the table.
#[derive(Debug)]
pub struct RowGroups {
    parts: Vec<OfPart>,
    /// For each row group, the index of its file, and its index in that file.
    groups: Vec<(usize, usize)>,
    /// The columns of batches. Texts are dictionaries.
    schema: SchemaRef,
}

/// A file, with its footer.
#[derive(Debug)]
struct OfPart {
    part: Part,
    footer: ArrowReaderMetadata,
    columns: ProjectionMask,
    /// The footer with the page index, if there is a readable one. Read when it is first needed.
    indexed: OnceLock<Option<ArrowReaderMetadata>>,
}

impl OfPart {
    fn indexed(&self) -> Option<&ArrowReaderMetadata> {
        let read = || {
            let metadata = with_page_index(self.footer.metadata(), &self.part.reader())?;
            let options = ArrowReaderOptions::new().with_schema(Arc::clone(self.footer.schema()));
            ArrowReaderMetadata::try_new(metadata, options).ok()
        };
        self.indexed.get_or_init(read).as_ref()
    }
}

impl RowGroups {
    /// Opens the row groups of the files of a table.
    ///
    /// # Errors
    /// When a footer cannot be read.
    pub(super) fn open(parts: &[Part], table: &Table, columns: &[&str]) -> Result<RowGroups, Error> {
        let mut groups =
            RowGroups { parts: Vec::new(), groups: Vec::new(), schema: schema_of(table, columns) };
        for (place, part) in parts.iter().enumerate() {
            let footer = with_dictionaries(part.footer()?);
            let columns = ProjectionMask::columns(footer.parquet_schema(), columns.iter().copied());
            groups.groups.extend((0..footer.metadata().num_row_groups()).map(|group| (place, group)));
            groups.parts.push(OfPart { part: part.clone(), footer, columns, indexed: OnceLock::new() });
        }
        Ok(groups)
    }

    /// The number of row groups.
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The number of rows of a row group, by its footer; 0 if there is no such row group.
    pub fn rows(&self, group: usize) -> usize {
        let rows = self.groups.get(group).map(|(part, group)| {
            let footer = self.parts[*part].footer.metadata();
            usize::try_from(footer.row_group(*group).num_rows()).unwrap_or_default()
        });
        rows.unwrap_or_default()
    }

    /// The least and the greatest value of a column of integers in a row group, if its footer has them.
    pub fn bounds(&self, group: usize, column: &str) -> Option<(i64, i64)> {
        let (part, group) = *self.groups.get(group)?;
        let footer = &self.parts[part].footer;
        let columns = footer.metadata().row_group(group).columns();
        let column = columns.iter().find(|chunk| chunk.column_path().string() == column)?;
        match column.statistics()? {
            Statistics::Int64(values) => Some((*values.min_opt()?, *values.max_opt()?)),
            Statistics::Int32(values) => Some(((*values.min_opt()?).into(), (*values.max_opt()?).into())),
            _ => None,
        }
    }

    /// The columns of a row group, in the requested order.
    ///
    /// # Errors
    /// When the file is damaged.
    ///
    /// # Panics
    /// When there is no such row group.
    pub fn read(&self, group: usize) -> Result<RecordBatch, Error> {
        let (part, group) = self.groups[group];
        let of = &self.parts[part];
        self.read_selected(of, &of.footer, (group, None), None)
    }

    /// As [`read`](Self::read), for a table of intervals: leaves out pages without useful rows. Also returns the latest
    /// known end of the rows that are left out.
    ///
    /// # Errors
    /// When the file is damaged.
    ///
    /// # Panics
    /// When there is no such row group.
    pub fn read_within(&self, group: usize, useful: Useful<'_>) -> Result<(RecordBatch, Option<i64>), Error> {
        let (part, in_part) = self.groups[group];
        let of = &self.parts[part];
        let Some(footer) = of.indexed() else { return Ok((self.read(group)?, None)) };
        let Some(pages) = pages_within(footer.metadata(), in_part, useful) else {
            return Ok((self.read(group)?, None));
        };
        Ok((self.read_selected(of, footer, (in_part, Some(pages.selection)), None)?, pages.latest))
    }

    /// As [`read_within`](Self::read_within), but only the rows with one of these values in a column of 64-bit integers. Pages that
    /// have none, by their least and greatest values, are not read. The other columns are decoded only where there are such rows.
    ///
    /// # Errors
    /// When the file is damaged.
    ///
    /// # Panics
    /// When there is no such row group.
    pub fn read_where(
        &self,
        group: usize,
        useful: Useful<'_>,
        (column, values): (&str, &Arc<BTreeSet<i64>>),
    ) -> Result<RecordBatch, Error> {
        if !self.may_have(group, column, values) {
            return Ok(RecordBatch::new_empty(Arc::clone(&self.schema)));
        }
        let (part, in_part) = self.groups[group];
        let of = &self.parts[part];
        let indexed = of.indexed();
        let within = indexed.and_then(|footer| pages_within(footer.metadata(), in_part, useful));
        let with = indexed.and_then(|footer| pages_with(footer.metadata(), in_part, (column, values)));
        let selection = match (within, with) {
            (Some(within), Some(with)) => Some(within.selection.intersection(&with)),
            (within, with) => within.map(|pages| pages.selection).or(with),
        };
        let footer = indexed.unwrap_or(&of.footer);
        self.read_selected(of, footer, (in_part, selection), Some(one_of(footer, column, values)))
    }

    /// The rows of a row group for which one of several conditions holds, with a column of booleans for each condition after the
    /// other columns. The conditions may use columns of this reader only. Of all other rows, only the columns of the conditions are decoded.
    ///
    /// # Errors
    /// When the file is damaged, or a condition cannot be evaluated.
    ///
    /// # Panics
    /// When there is no such row group.
    pub fn read_if(&self, group: usize, conditions: &[RowCondition]) -> Result<RecordBatch, Error> {
        let (part, in_part) = self.groups[group];
        let of = &self.parts[part];
        let columns: BTreeSet<&str> = conditions.iter().flat_map(RowCondition::columns).collect();
        let only = ProjectionMask::columns(of.footer.parquet_schema(), columns);
        let all = conditions.to_vec();
        let holds = move |batch: RecordBatch| {
            let none = BooleanArray::from(vec![false; batch.num_rows()]);
            all.iter().try_fold(none, |any, condition| or(&any, &condition.holds(&batch)?))
        };
        let filter = RowFilter::new(vec![Box::new(ArrowPredicateFn::new(only, holds))]);
        let batch = self.read_selected(of, &of.footer, (in_part, None), Some(filter))?;
        let mut fields: Vec<FieldRef> = batch.schema().fields().iter().cloned().collect();
        let mut columns = batch.columns().to_vec();
        for (place, condition) in conditions.iter().enumerate() {
            let holds = condition.holds(&batch).map_err(|error| of.part.unreadable(&error))?;
            fields.push(Arc::new(Field::new(format!("condition {place}"), DataType::Boolean, false)));
            columns.push(Arc::new(holds));
        }
        let schema = Arc::new(Schema::new(fields));
        RecordBatch::try_new(schema, columns).map_err(|error| of.part.unreadable(&error))
    }

    /// Whether a row group may have one of these values, by the least and the greatest value of the column in it.
    fn may_have(&self, group: usize, column: &str, values: &BTreeSet<i64>) -> bool {
        let bounds = self.bounds(group, column);
        bounds.is_none_or(|(least, most)| least > most || values.range(least..=most).next().is_some())
    }

    /// The rows with one of these values in a column of 64-bit integers, in the order of the table. Row groups and pages whose
    /// least and greatest values exclude all of these are not read: that is fast if the table is sorted by the column, or almost.
    ///
    /// # Errors
    /// When a file is damaged.
    pub fn rows_with(&self, column: &str, values: &Arc<BTreeSet<i64>>) -> Result<Vec<RecordBatch>, Error> {
        let read = |group: usize| {
            let (part, in_part) = self.groups[group];
            let of = &self.parts[part];
            let indexed = of.indexed();
            let pages = indexed.and_then(|footer| pages_with(footer.metadata(), in_part, (column, values)));
            let footer = indexed.unwrap_or(&of.footer);
            self.read_selected(of, footer, (in_part, pages), Some(one_of(footer, column, values)))
        };
        (0..self.len()).filter(|group| self.may_have(*group, column, values)).map(read).collect()
    }

    fn read_selected(
        &self,
        of: &OfPart,
        footer: &ArrowReaderMetadata,
        (group, selection): (usize, Option<RowSelection>),
        filter: Option<RowFilter>,
    ) -> Result<RecordBatch, Error> {
        let OfPart { part, columns, .. } = of;
        let rows = usize::try_from(footer.metadata().row_group(group).num_rows()).unwrap_or_default();
        let rows = selection.as_ref().map_or(rows, RowSelection::row_count);
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(part.reader(), footer.clone());
        // A batch has at most as many rows as the row group has. That number comes from a footer, so it is limited.
        let reader = reader.with_projection(columns.clone()).with_row_groups(vec![group]);
        let reader = match selection {
            Some(selection) => reader.with_row_selection(selection),
            None => reader,
        };
        let reader = match filter {
            Some(filter) => reader.with_row_filter(filter),
            None => reader,
        };
        let reader = reader.with_batch_size(rows.clamp(1, MOST_ROWS)).build();
        let mut batches = Vec::new();
        for batch in reader.map_err(|error| part.unreadable(&error))? {
            let batch = batch.map_err(|error| part.unreadable(&error))?;
            batches.push(with_columns(&batch, &self.schema).map_err(|error| part.unreadable(&error))?);
        }
        arrow::compute::concat_batches(&self.schema, &batches).map_err(|error| part.unreadable(&error))
    }
}

/// So many values are compared with all rows, one after the other, which takes less time than to look each row up.
const FEW_VALUES: usize = 4;

/// Keeps the rows with one of these values in a column of 64-bit integers.
fn one_of(footer: &ArrowReaderMetadata, column: &str, values: &Arc<BTreeSet<i64>>) -> RowFilter {
    let only = ProjectionMask::columns(footer.parquet_schema(), [column]);
    let values = Arc::clone(values);
    let is_one = move |batch: RecordBatch| {
        let column = batch.column(0).as_primitive_opt::<Int64Type>();
        let column = column.ok_or_else(|| ArrowError::CastError("expected 64-bit integers".into()))?;
        if values.len() > FEW_VALUES {
            return Ok(column
                .iter()
                .map(|value| Some(value.is_some_and(|value| values.contains(&value))))
                .collect());
        }
        let none = BooleanArray::from(vec![false; column.len()]);
        values.iter().try_fold(none, |any, value| or(&any, &eq(column, &Int64Array::new_scalar(*value))?))
    };
    RowFilter::new(vec![Box::new(ArrowPredicateFn::new(only, is_one))])
}

/// The maximum number of rows that are decoded at a time. Row groups of a merge have a quarter of that.
const MOST_ROWS: usize = 1 << 20;

/// The columns of batches with these columns of a table.
pub(super) fn schema_of(table: &Table, columns: &[&str]) -> SchemaRef {
    let columns = columns.iter().filter_map(|name| table.columns.iter().find(|column| column.name == *name));
    let fields = columns.map(|column| Field::new(column.name, batch_type(column.ty), true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The type of a column in batches: texts become dictionaries.
fn batch_type(ty: ColumnType) -> DataType {
    match ty {
        ColumnType::Text => ColumnType::Word.data_type(),
        ty => ty.data_type(),
    }
}

/// Changes the footer so that texts are read as dictionaries, which is how they are stored. Unchanged if that is not
/// possible.
fn with_dictionaries(footer: ArrowReaderMetadata) -> ArrowReaderMetadata {
    let fields = footer.schema().fields().iter().map(|field| match field.data_type() {
        DataType::Utf8 => field.as_ref().clone().with_data_type(ColumnType::Word.data_type()),
        _ => field.as_ref().clone(),
    });
    let schema = Schema::new(fields.collect::<Vec<_>>());
    let schema = Arc::new(schema.with_metadata(footer.schema().metadata().clone()));
    let options = ArrowReaderOptions::new().with_schema(schema);
    ArrowReaderMetadata::try_new(Arc::clone(footer.metadata()), options).unwrap_or(footer)
}
