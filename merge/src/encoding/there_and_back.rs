//! For tests: Arrow's reader reads what our encoders have written.

use std::{iter, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, AsArray},
    compute::{cast, concat},
    datatypes::{DataType, Field, Float64Type, Int64Type, Schema},
};
use bytes::Bytes;
use parquet::{
    arrow::{ArrowWriter, arrow_reader::ParquetRecordBatchReaderBuilder},
    file::statistics::Statistics,
};

use super::{
    bits::Bits,
    column::{Append, Cells, Filled, Texts},
    encoder::Encoding,
};

/// Writes each batch as a page of one row group, and reads them with Arrow's reader.
pub(super) fn there_and_back(batches: &[ArrayRef]) -> (ArrayRef, Statistics) {
    named("column", batches)
}

/// The same for a column of this name. The name matters, because columns of ticks are encoded differently.
pub(super) fn named(name: &str, batches: &[ArrayRef]) -> (ArrayRef, Statistics) {
    let ty = batches[0].data_type().clone();
    let can_be_null = !matches!(ty, DataType::List(_) | DataType::Boolean);
    let schema = Arc::new(Schema::new(vec![Field::new(name, ty, can_be_null)]));
    let (mut file, _) =
        ArrowWriter::try_new(Vec::new(), schema, None).unwrap().into_serialized_writer().unwrap();
    let filled = batches.iter().map(|batch| vec![cells(batch)]).collect();
    let mut encoding = Encoding::new(Arc::new(file.schema_descr().clone()), filled);
    let mut group = file.next_row_group().unwrap();
    let chunks = iter::repeat_with(|| encoding.step()).find_map(|chunks| chunks).unwrap();
    for chunk in chunks.unwrap() {
        group.append_column(&chunk.bytes, chunk.close).unwrap();
    }
    group.close().unwrap();
    let bytes = Bytes::from(file.into_inner().unwrap());
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap();
    let statistics = reader.metadata().row_group(0).column(0).statistics().cloned();
    let read: Vec<ArrayRef> =
        reader.build().unwrap().map(|batch| Arc::clone(batch.unwrap().column(0))).collect();
    let read: Vec<&dyn Array> = read.iter().map(|array| array.as_ref()).collect();
    (concat(&read).unwrap(), statistics.unwrap_or(Statistics::boolean(None, None, None, None, false)))
}

/// A column filled with the values of an array.
fn cells(rows: &ArrayRef) -> Cells {
    match rows.data_type() {
        DataType::Boolean => {
            let mut bits = Bits::default();
            rows.as_boolean().values().iter().for_each(|bit| bits.push(u64::from(bit), 1));
            Cells::Bools(bits)
        }
        DataType::Float64 => {
            let fractions = rows.as_primitive::<Float64Type>().iter();
            Cells::Numbers(flat(fractions.map(|f| f.map(|f| f.to_bits() as i64))))
        }
        DataType::Utf8 => Cells::Texts(flat(rows.as_string::<i32>().iter())),
        DataType::List(element) if *element.data_type() == DataType::Utf8 => {
            let mut texts = Filled::<Texts>::default();
            let lists = rows.as_list::<i32>();
            lists.iter().flatten().for_each(|list| texts.push_list(list.as_string::<i32>().iter()));
            Cells::Texts(texts)
        }
        DataType::List(_) => {
            let mut numbers = Filled::<Vec<i64>>::default();
            let lists = rows.as_list::<i32>();
            lists
                .iter()
                .flatten()
                .for_each(|list| numbers.push_list(list.as_primitive::<Int64Type>().iter()));
            Cells::Numbers(numbers)
        }
        _ => Cells::Numbers(flat(cast(rows, &DataType::Int64).unwrap().as_primitive::<Int64Type>().iter())),
    }
}

fn flat<'v, V: Append>(values: impl Iterator<Item = Option<V::Value<'v>>>) -> Filled<V> {
    let mut filled = Filled::default();
    values.for_each(|value| filled.push(value));
    filled
}
