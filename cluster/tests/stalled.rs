//! Ends of queries that Ballista's scheduler would wait for without end.
#![cfg(feature = "ballista")]

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    time::Duration,
};

use arrow::{
    array::{Int64Array, RecordBatch},
    datatypes::{DataType, Field, Schema},
};
use ballista_core::{
    execution_plans::execute_physical_plan, extension::SessionConfigExt,
    serde::BallistaPhysicalExtensionCodec,
};
use datafusion::{
    datasource::memory::MemorySourceConfig,
    error::Result,
    physical_expr::expressions::lit,
    physical_plan::{
        ExecutionPlan, placeholder_row::PlaceholderRowExec, projection::ProjectionExec, union::UnionExec,
    },
    prelude::{SessionConfig, SessionContext},
};
use datafusion_proto::protobuf::PhysicalPlanNode;
use futures::TryStreamExt;
use sigmund_cluster::{Cluster, ExecutorOptions, SchedulerOptions, run_executor, run_scheduler};
use tokio::{sync::oneshot, task::spawn_blocking, time::sleep};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// `SELECT 3 UNION ALL SELECT a FROM rows`, as clients of this crate do not send it: its two tasks have three and four operators
/// that count what they do.
fn uneven() -> Arc<dyn ExecutionPlan> {
    let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, false)]));
    let rows = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(Int64Array::from(vec![4]))]).unwrap();
    let rows = MemorySourceConfig::try_new_exec(&[vec![rows]], schema, None).unwrap();
    let nothing = Arc::new(PlaceholderRowExec::new(Arc::new(Schema::empty())));
    let three = ProjectionExec::try_new([(lit(3_i64), "a".to_string())], nothing).unwrap();
    UnionExec::try_new(vec![Arc::new(three), rows]).unwrap()
}

/// The rows that the cluster at this address gives.
async fn asked(url: String) -> Result<Vec<RecordBatch>> {
    loop {
        let at = url.clone();
        if spawn_blocking(move || Cluster::at(&at)).await.unwrap().is_ok() {
            break;
        }
        sleep(Duration::from_millis(50)).await;
    }
    let session = SessionContext::new_with_config(SessionConfig::new_with_ballista());
    let (config, codec) = (session.copied_config(), BallistaPhysicalExtensionCodec::default());
    let ballista = config.ballista_config();
    let rows = execute_physical_plan::<PhysicalPlanNode>(
        url,
        &ballista,
        uneven(),
        &codec,
        session.session_id(),
        config,
    );
    rows.await?.try_collect().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_cannot_go_on_is_cancelled() {
    let work = tempfile::tempdir().unwrap();
    let (sender, listening) = oneshot::channel();
    let options =
        SchedulerOptions { listen: (HERE, 0).into(), host: None, lost_after: Duration::from_secs(6) };
    let scheduler = run_scheduler(options, |address| sender.send(address).unwrap(), |_| {});
    let rows = async {
        let address = listening.await.unwrap();
        let options = ExecutorOptions {
            scheduler: (HERE.to_string(), address.port()),
            listen: HERE,
            ports: (0, 0),
            host: None,
            cpus: 1,
            memory: None,
            work: work.path().to_path_buf(),
        };
        tokio::select! {
            _ = run_executor(options, |_| {}, |_| {}) => panic!("the executor ended"),
            rows = asked(format!("http://{address}")) => rows,
        }
    };
    let rows = tokio::select! {
        _ = scheduler => panic!("the scheduler ended"),
        rows = rows => rows,
    };
    let error = rows.unwrap_err().to_string();
    assert!(error.ends_with("Cancelled"), "{error}");
}
