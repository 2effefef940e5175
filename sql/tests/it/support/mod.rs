//! Writes little super-traces by hand: rows as JSON, one call a row. What a row leaves out is NULL, or 0, "" or
//! an empty list where the table allows no NULL. `query/tests` uses this file too.

#![allow(unreachable_pub)]

use std::{collections::BTreeMap, fs, io::Cursor, path::PathBuf, sync::Arc};

use arrow::{
    array::{RecordBatch, new_empty_array},
    compute::cast,
    datatypes::{DataType, Field, Schema, SchemaRef},
};
use parquet::{arrow::ArrowWriter, file::properties::WriterProperties};
use serde_json::{Value, json};
use sigmund_model::tables::{ALL, ColumnType, SCHEMA_VERSION, Table};
use tempfile::TempDir;

/// A super-trace in the making. Its directory is removed with it.
pub struct Little {
    dir: TempDir,
    /// Per table the files, per file the rows.
    parts: BTreeMap<&'static str, Vec<Vec<Value>>>,
    pub rows_per_group: usize,
    /// Words are written as plain texts, as a writer without dictionaries does.
    pub without_dictionaries: bool,
    /// This column is in no file.
    pub without: Option<&'static str>,
    /// These tables have no folder.
    pub left_out: Vec<&'static str>,
}

impl Little {
    pub fn new() -> Little {
        let parts = ALL.iter().map(|t| (t.name, vec![Vec::new()])).collect();
        let mut little = Little {
            dir: TempDir::new().unwrap(),
            parts,
            rows_per_group: 1 << 20,
            without_dictionaries: false,
            without: None,
            left_out: Vec::new(),
        };
        little.row("info", json!({"key": "schema_version", "value": SCHEMA_VERSION.to_string()}));
        little
    }

    pub fn path(&self) -> PathBuf {
        self.dir.path().join("T [1].supertrace")
    }

    pub fn row(&mut self, table: &str, row: Value) -> &mut Little {
        self.parts.get_mut(table).unwrap().last_mut().unwrap().push(row);
        self
    }

    pub fn info(&mut self, key: &str, value: impl ToString) -> &mut Little {
        self.row("info", json!({"key": key, "value": value.to_string()}))
    }

    /// Rows from here on go to the next file of this table.
    pub fn next_part(&mut self, table: &str) -> &mut Little {
        self.parts.get_mut(table).unwrap().push(Vec::new());
        self
    }

    /// Forgets the rows of a table.
    pub fn clear(&mut self, table: &str) -> &mut Little {
        self.parts.insert(Table::named(table).unwrap().name, vec![Vec::new()]);
        self
    }

    pub fn write(&self) -> PathBuf {
        let path = self.path();
        let _ = fs::remove_dir_all(&path);
        for (name, parts) in self.parts.iter().filter(|(name, _)| !self.left_out.contains(name)) {
            let folder = path.join(name);
            fs::create_dir_all(&folder).unwrap();
            for (number, rows) in parts.iter().enumerate() {
                let mut batch = batch(Table::named(name).unwrap(), rows);
                if self.without_dictionaries {
                    batch = with_types(&batch, &plain(&batch.schema()));
                }
                let kept = |f: &Arc<Field>| self.without != Some(f.name().as_str());
                let columns: Vec<_> = batch.schema().fields().iter().map(kept).collect();
                let columns: Vec<_> = (0..columns.len()).filter(|index| columns[*index]).collect();
                let batch = batch.project(&columns).unwrap();
                let file = fs::File::create(folder.join(format!("part-{number:05}.parquet"))).unwrap();
                let properties = WriterProperties::builder()
                    .set_max_row_group_row_count(Some(self.rows_per_group))
                    .build();
                let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
                writer.write(&batch).unwrap();
                writer.close().unwrap();
            }
        }
        path
    }
}

fn batch(table: &Table, rows: &[Value]) -> RecordBatch {
    let schema = table.schema();
    if rows.is_empty() {
        let columns = schema.fields().iter().map(|f| new_empty_array(f.data_type())).collect();
        return RecordBatch::try_new(schema, columns).unwrap();
    }
    let mut text = String::new();
    for row in rows {
        let mut row = row.as_object().unwrap().clone();
        for name in row.keys() {
            assert!(table.columns.iter().any(|c| c.name == name), "{}.{name}", table.name);
        }
        for column in table.columns.iter().filter(|c| !c.nullable) {
            row.entry(column.name).or_insert_with(|| default(column.ty));
        }
        text.push_str(&Value::Object(row).to_string());
        text.push('\n');
    }
    // The JSON reader knows no dictionaries: read texts, then cast.
    let mut reader = arrow::json::ReaderBuilder::new(plain(&schema))
        .with_batch_size(rows.len())
        .build(Cursor::new(text))
        .unwrap();
    with_types(&reader.next().unwrap().unwrap(), &schema)
}

/// The schema with texts in place of dictionaries.
fn plain(schema: &Schema) -> SchemaRef {
    let plain = |f: &Arc<Field>| match f.data_type() {
        DataType::Dictionary(..) => Field::new(f.name(), DataType::Utf8, f.is_nullable()),
        _ => f.as_ref().clone(),
    };
    Arc::new(Schema::new(schema.fields().iter().map(plain).collect::<Vec<_>>()))
}

fn with_types(batch: &RecordBatch, schema: &SchemaRef) -> RecordBatch {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(c, f)| cast(c, f.data_type()).unwrap()).collect();
    RecordBatch::try_new(schema.clone(), columns).unwrap()
}

fn default(ty: ColumnType) -> Value {
    match ty {
        ColumnType::Int64 | ColumnType::Int32 | ColumnType::Float64 => json!(0),
        ColumnType::Bool => json!(false),
        ColumnType::Word | ColumnType::Text => json!(""),
        ColumnType::Numbers | ColumnType::Texts => json!([]),
    }
}
