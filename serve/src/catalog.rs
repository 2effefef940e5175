//! Which tables there are, for clients that draw a tree of them.

use std::sync::LazyLock;

use arrow::{array::RecordBatch, datatypes::Schema};
use arrow_flight::sql::{
    CommandGetCatalogs, CommandGetDbSchemas, CommandGetTableTypes, CommandGetTables, SqlInfo,
    metadata::{SqlInfoData, SqlInfoDataBuilder},
};
use sigmund_sql::{RelationKind, SuperTrace};
use tonic::Status;

use crate::running::{status, without_dictionaries};

/// What the server is and can do.
pub(crate) static ABOUT: LazyLock<SqlInfoData> = LazyLock::new(|| {
    let mut about = SqlInfoDataBuilder::new();
    about.append(SqlInfo::FlightSqlServerName, "Sigmund");
    about.append(SqlInfo::FlightSqlServerVersion, env!("CARGO_PKG_VERSION"));
    about.append(SqlInfo::FlightSqlServerArrowVersion, "1.3");
    about.append(SqlInfo::FlightSqlServerReadOnly, true);
    about.append(SqlInfo::FlightSqlServerSql, true);
    about.append(SqlInfo::FlightSqlServerSubstrait, false);
    about.append(SqlInfo::FlightSqlServerCancel, false);
    about.append(SqlInfo::SqlIdentifierQuoteChar, "\"");
    about.append(SqlInfo::SqlDdlCatalog, false);
    about.append(SqlInfo::SqlDdlSchema, false);
    about.append(SqlInfo::SqlDdlTable, false);
    // Of constants, this cannot fail.
    about.build().unwrap_or_else(|error| panic!("{error}"))
});

/// The catalog and the schemas, each with its super-trace: the first is that of names without a schema. A super-trace that was
/// given a name has a schema of that name, the first one, too.
fn schemata(trace: &SuperTrace) -> (String, Vec<(String, &SuperTrace)>) {
    let names = trace.session().state().config_options().catalog.clone();
    let mut schemata = trace.schema_names();
    schemata.sort_by_key(|schema| *schema != names.default_schema);
    let of = |schema: String| {
        let of = trace.attached().get(&schema).unwrap_or(trace);
        (schema, of)
    };
    (names.default_catalog, schemata.into_iter().map(of).collect())
}

pub(crate) fn catalogs(trace: &SuperTrace, query: CommandGetCatalogs) -> Result<RecordBatch, Status> {
    let mut builder = query.into_builder();
    builder.append(schemata(trace).0);
    Ok(builder.build()?)
}

pub(crate) fn schemas(trace: &SuperTrace, query: CommandGetDbSchemas) -> Result<RecordBatch, Status> {
    let mut builder = query.into_builder();
    let (catalog, schemata) = schemata(trace);
    schemata.iter().for_each(|(schema, _)| builder.append(&catalog, schema));
    Ok(builder.build()?)
}

/// The tables of each schema; with their columns if that is asked for.
pub(crate) async fn tables(trace: &SuperTrace, query: CommandGetTables) -> Result<RecordBatch, Status> {
    let mut builder = query.into_builder();
    let (catalog, schemata) = schemata(trace);
    for (schema, of) in schemata {
        for relation in of.relations() {
            let columns = match builder.include_schema() {
                true => {
                    let columns = trace.columns_in(&schema, &relation.name).await;
                    without_dictionaries(&*columns.map_err(|error| status(&error))?)
                }
                false => Schema::empty().into(),
            };
            builder.append(&catalog, &schema, &relation.name, type_name(relation.kind), &columns)?;
        }
    }
    Ok(builder.build()?)
}

pub(crate) fn table_types(query: CommandGetTableTypes) -> Result<RecordBatch, Status> {
    let mut builder = query.into_builder();
    ["TABLE", "VIEW"].iter().for_each(|name| builder.append(name));
    Ok(builder.build()?)
}

fn type_name(kind: RelationKind) -> &'static str {
    match kind {
        RelationKind::Table | RelationKind::Stored => "TABLE",
        RelationKind::View | RelationKind::Event => "VIEW",
    }
}
