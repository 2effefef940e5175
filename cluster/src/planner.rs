//! Plans queries of a client as without a cluster, and then sends the plans.

use std::{collections::BTreeMap, fmt, sync::Arc};

use arrow::{
    array::{RecordBatch, RecordBatchOptions},
    compute::cast,
    datatypes::SchemaRef,
};
use async_trait::async_trait;
use ballista_core::{
    config::BallistaConfig, execution_plans::execute_physical_plan, extension::SessionConfigExt,
};
use datafusion::{
    catalog::Session,
    common::{
        Result, internal_err,
        tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion},
    },
    datasource::{physical_plan::FileScanConfig, source::DataSourceExec},
    execution::{SendableRecordBatchStream, TaskContext, context::QueryPlanner},
    logical_expr::LogicalPlan,
    physical_expr::{EquivalenceProperties, PhysicalExpr},
    physical_plan::{
        DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties, ReplaceChildrenOptions,
        execution_plan::{Boundedness, EmissionType},
        stream::RecordBatchStreamAdapter,
    },
    physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner},
};
use datafusion_proto::protobuf::PhysicalPlanNode;
use futures::{StreamExt, TryStreamExt, future, stream};

use crate::{client::Scheduler, codec::Codec, faithful, files, place::Place, rows};

/// Plans the queries of a session. Plans that read files of super-traces are executed on a cluster.
#[derive(Debug)]
pub(crate) struct ClusterPlanner {
    pub(crate) scheduler: Arc<Scheduler>,
    /// The super-traces, by the URLs of their files in the session.
    pub(crate) places: BTreeMap<String, Place>,
    pub(crate) codec: Arc<Codec>,
    /// The context in which plans are decoded to check them.
    pub(crate) checking: Arc<TaskContext>,
}

#[async_trait]
impl QueryPlanner for ClusterPlanner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = DefaultPhysicalPlanner::default().create_physical_plan(plan, session).await?;
        let mut reads_files = false;
        plan.apply(|plan| {
            reads_files |= scan(plan).is_some();
            Ok(TreeNodeRecursion::Continue)
        })?;
        if !reads_files {
            return Ok(plan);
        }
        let plan = plan.transform_up(rows::in_memory).data()?;
        let plan = plan.transform_up(|plan| self.renamed(plan)).data()?;
        faithful::check(&plan, self.codec.as_ref(), &self.checking)?;
        Ok(Arc::new(ClusterExec::new(Arc::clone(&self.scheduler), Arc::clone(&self.codec), plan)))
    }
}

fn scan(plan: &Arc<dyn ExecutionPlan>) -> Option<&FileScanConfig> {
    plan.downcast_ref::<DataSourceExec>()?.data_source().downcast_ref::<FileScanConfig>()
}

impl ClusterPlanner {
    /// A scan in which the URL and the paths are replaced by those that executors know.
    fn renamed(&self, plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
        let Some(config) = scan(&plan) else { return Ok(Transformed::no(plan)) };
        let Some(place) = self.places.get(config.object_store_url.as_str()) else {
            return internal_err!("a plan reads {}", config.object_store_url);
        };
        let (url, identity) = (place.url()?, place.identity);
        let mut config = config.clone();
        config.object_store_url = url;
        for group in &mut config.file_groups {
            for number in 0..group.len() {
                let meta = &mut group[number].object_meta;
                meta.location = files::location(identity, &meta.location);
            }
        }
        Ok(Transformed::yes(DataSourceExec::from_data_source(config)))
    }
}

/// The rows with the column types of the plan. Texts lose their dictionaries on the way from an executor.
fn of_schema(schema: &SchemaRef, batch: &RecordBatch) -> Result<RecordBatch> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns =
        columns.map(|(column, field)| cast(column, field.data_type())).collect::<Result<Vec<_>, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

/// A plan that is executed on a cluster. Its rows are received from there.
#[derive(Debug)]
pub(crate) struct ClusterExec {
    scheduler: Arc<Scheduler>,
    codec: Arc<Codec>,
    plan: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl ClusterExec {
    pub(crate) fn new(
        scheduler: Arc<Scheduler>,
        codec: Arc<Codec>,
        plan: Arc<dyn ExecutionPlan>,
    ) -> ClusterExec {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(plan.schema()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        ClusterExec { scheduler, codec, plan, properties: Arc::new(properties) }
    }
}

impl DisplayAs for ClusterExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = datafusion::physical_plan::displayable(self.plan.as_ref());
        write!(f, "ClusterExec: {}\n{}", self.scheduler.url(), plan.indent(false).to_string().trim_end())
    }
}

impl ExecutionPlan for ClusterExec {
    fn name(&self) -> &'static str {
        "ClusterExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (scheduler, codec, plan) =
            (Arc::clone(&self.scheduler), Arc::clone(&self.codec), Arc::clone(&self.plan));
        let failed = Arc::clone(&self.scheduler);
        let rows = async move {
            let config = context.session_config();
            let ballista: BallistaConfig = config.ballista_config();
            let rows = execute_physical_plan::<PhysicalPlanNode>(
                scheduler.url().to_string(),
                &ballista,
                plan,
                codec.as_ref(),
                context.session_id(),
                config.clone(),
            );
            rows.await
        };
        let rows = stream::once(rows).try_flatten().map_err(move |error| failed.error(&error));
        let schema = self.plan.schema();
        let rows = rows.and_then(move |batch| future::ready(of_schema(&schema, &batch)));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.plan.schema(), rows.boxed())))
    }
}
