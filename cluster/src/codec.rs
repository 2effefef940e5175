//! Encodes plans: our own operators and functions. DataFusion and Ballista encode everything else.

use std::{io::Cursor, sync::Arc};

use arrow::{
    datatypes::{Schema, SchemaRef},
    ipc::{reader::StreamReader, writer::StreamWriter},
};
use ballista_core::serde::BallistaPhysicalExtensionCodec;
use datafusion::{
    common::{DataFusionError, Result, internal_err, not_impl_err},
    execution::TaskContext,
    logical_expr::{AggregateUDF, ScalarUDF},
    physical_plan::ExecutionPlan,
};
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use serde::{Deserialize, Serialize};
use sigmund_sql::{
    functions::{self, Clock, Snapshot},
    intervals::OperatorParts,
    with_faster_operators,
};

use crate::{
    measured::{MeasureExec, Question},
    traces::Traces,
};

/// Our encodings begin with this. Those of Ballista are protobuf messages, which begin with the tag of a field.
const OURS: &[u8] = b"\0sigmund ";

/// Encodes and decodes plans.
#[derive(Debug, Default)]
pub(crate) struct Codec {
    ballista: BallistaPhysicalExtensionCodec,
    /// In an executor: the super-traces for its measures.
    traces: Option<Arc<Traces>>,
}

impl Codec {
    /// The codec of an executor.
    pub(crate) fn of_executor(traces: Arc<Traces>) -> Codec {
        Codec { traces: Some(traces), ..Codec::default() }
    }
}

/// One of our operators.
#[derive(Serialize, Deserialize)]
enum Operator {
    Measure(Question),
    Intervals { function: String, keys: usize, has_one_key: bool, origins: Vec<String>, schema: Vec<u8> },
}

/// One of our functions. If it uses clocks: these, with the names of their super-traces.
#[derive(Serialize, Deserialize)]
struct Function(Option<Vec<(Vec<String>, WireClock)>>);

/// A clock. Its rate is encoded by its bits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct WireClock {
    tick_hz: Option<u64>,
    snapshots: Vec<(i64, i64)>,
}

impl WireClock {
    fn new(clock: &Clock) -> WireClock {
        WireClock {
            tick_hz: clock.tick_hz.map(f64::to_bits),
            snapshots: clock.snapshots.iter().map(|snapshot| (snapshot.tick, snapshot.nanos)).collect(),
        }
    }

    fn clock(&self) -> Clock {
        let snapshot = |(tick, nanos): &(i64, i64)| Snapshot { tick: *tick, nanos: *nanos };
        Clock {
            tick_hz: self.tick_hz.map(f64::from_bits),
            snapshots: self.snapshots.iter().map(snapshot).collect(),
        }
    }
}

fn write<T: Serialize>(value: &T, bytes: &mut Vec<u8>) -> Result<()> {
    bytes.extend_from_slice(OURS);
    serde_json::to_writer(bytes, value).map_err(|error| DataFusionError::External(Box::new(error)))
}

/// `None` if the bytes are not of our encoding.
fn read<'b, T: Deserialize<'b>>(bytes: &'b [u8]) -> Option<Result<T>> {
    let json = bytes.strip_prefix(OURS)?;
    Some(serde_json::from_slice(json).map_err(|error| DataFusionError::External(Box::new(error))))
}

fn schema_bytes(schema: &Schema) -> Result<Vec<u8>> {
    Ok(StreamWriter::try_new(Vec::new(), schema)?.into_inner()?)
}

fn schema(bytes: &[u8]) -> Result<SchemaRef> {
    Ok(StreamReader::try_new(Cursor::new(bytes), None)?.schema())
}

impl PhysicalExtensionCodec for Codec {
    fn try_decode(
        &self,
        bytes: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match read(bytes).transpose()? {
            // In an executor, it is the operator at the end of its part of a query, which writes the rows. The part is sent without
            // our faster operators, so these need no encoding.
            None if self.traces.is_some() => {
                let faster = |input: &Arc<dyn ExecutionPlan>| {
                    with_faster_operators(Arc::clone(input), context.session_config().options())
                };
                let inputs: Vec<_> = inputs.iter().map(faster).collect::<Result<_>>()?;
                self.ballista.try_decode(bytes, &inputs, context, converter)
            }
            None => self.ballista.try_decode(bytes, inputs, context, converter),
            Some(Operator::Measure(question)) => {
                let [input] = inputs else { return internal_err!("MeasureExec has one input") };
                Ok(Arc::new(MeasureExec::new(question, Arc::clone(input), self.traces.clone())?))
            }
            Some(Operator::Intervals { function, keys, has_one_key, origins, schema: bytes }) => {
                let schema = schema(&bytes)?;
                OperatorParts { function, keys, has_one_key, origins, schema }.operator(inputs.to_vec())
            }
        }
    }

    fn try_encode(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        bytes: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        if let Some(measure) = plan.downcast_ref::<MeasureExec>() {
            return write(&Operator::Measure(measure.question().clone()), bytes);
        }
        if let Some(parts) = OperatorParts::of(plan.as_ref()) {
            let OperatorParts { function, keys, has_one_key, origins, schema } = parts;
            let schema = schema_bytes(&schema)?;
            return write(&Operator::Intervals { function, keys, has_one_key, origins, schema }, bytes);
        }
        self.ballista.try_encode(plan, bytes, converter)
    }

    fn try_decode_udf(&self, name: &str, bytes: &[u8]) -> Result<Arc<ScalarUDF>> {
        let unknown =
            || DataFusionError::Plan(format!("{name}: expected a function of this version, found another"));
        match read(bytes).transpose()? {
            None => self.ballista.try_decode_udf(name, bytes),
            Some(Function(None)) => {
                let function = functions::all().into_iter().find(|function| function.name() == name);
                Ok(Arc::new(function.ok_or_else(unknown)?))
            }
            Some(Function(Some(clocks))) => {
                let clocks = clocks.into_iter().map(|(names, clock)| (names, clock.clock()));
                let function = functions::with_clocks(name, clocks.collect());
                Ok(Arc::new(function.ok_or_else(unknown)?))
            }
        }
    }

    fn try_encode_udf(&self, function: &ScalarUDF, bytes: &mut Vec<u8>) -> Result<()> {
        if let Some(clocks) = functions::clocks_of(function) {
            let clocks = clocks.map_err(|error| DataFusionError::External(Box::new(error)))?;
            let clocks = clocks.into_iter().map(|(names, clock)| (names, WireClock::new(&clock)));
            return write(&Function(Some(clocks.collect())), bytes);
        }
        if functions::all().iter().any(|ours| ours.name() == function.name()) {
            return write(&Function(None), bytes);
        }
        self.ballista.try_encode_udf(function, bytes)
    }

    fn try_decode_udaf(&self, name: &str, bytes: &[u8]) -> Result<Arc<AggregateUDF>> {
        match read(bytes).transpose()? {
            None => self.ballista.try_decode_udaf(name, bytes),
            Some(Function(_)) => {
                let function = functions::aggregates().into_iter().find(|function| function.name() == name);
                match function {
                    Some(function) => Ok(Arc::new(function)),
                    None => not_impl_err!("{name}: expected a function of this version, found another"),
                }
            }
        }
    }

    fn try_encode_udaf(&self, function: &AggregateUDF, bytes: &mut Vec<u8>) -> Result<()> {
        if functions::aggregates().iter().any(|ours| ours.name() == function.name()) {
            return write(&Function(None), bytes);
        }
        self.ballista.try_encode_udaf(function, bytes)
    }
}

#[cfg(test)]
mod tests {
    use arrow::{
        array::{DictionaryArray, RecordBatch},
        datatypes::Int32Type,
    };
    use ballista_core::execution_plans::ShuffleWriterExec;
    use datafusion::{
        physical_plan::{
            aggregates::{AggregateExec, AggregateMode},
            displayable,
        },
        prelude::SessionContext,
    };
    use datafusion_proto::{physical_plan::AsExecutionPlan, protobuf::PhysicalPlanNode};

    use super::*;

    /// The first stage of an aggregation in a plan.
    fn partial(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
        let is_partial = |plan: &AggregateExec| *plan.mode() == AggregateMode::Partial;
        if plan.downcast_ref::<AggregateExec>().is_some_and(is_partial) {
            return Some(Arc::clone(plan));
        }
        plan.children().into_iter().find_map(partial)
    }

    #[tokio::test]
    async fn only_an_executor_puts_faster_operators_into_its_part_of_a_query() {
        let session = SessionContext::new();
        let words: DictionaryArray<Int32Type> = ["active", "ready", "active"].into_iter().collect();
        let rows = RecordBatch::try_from_iter([("state", Arc::new(words) as _)]).unwrap();
        session.register_batch("states", rows).unwrap();
        let plan = session.sql("SELECT state, count(*) FROM states GROUP BY state").await.unwrap();
        let plan = partial(&plan.create_physical_plan().await.unwrap()).unwrap();
        let part = ShuffleWriterExec::try_new("job".into(), 1, plan, String::new()).unwrap();
        let sent = PhysicalPlanNode::try_from_physical_plan(Arc::new(part), &Codec::default()).unwrap();
        for (codec, is_executor) in
            [(Codec::default(), false), (Codec::of_executor(Arc::new(Traces::default())), true)]
        {
            let found = sent.try_into_physical_plan(&session.task_ctx(), &codec).unwrap();
            let found = displayable(found.as_ref()).indent(false).to_string();
            assert_eq!(found.contains("GroupWordsExec"), is_executor, "{found}");
        }
    }
}
