//! The calls of clients, and their answers.

use std::{pin::Pin, time::Duration};

use arrow::{
    array::RecordBatch,
    datatypes::{Schema, SchemaRef},
    ipc::writer::IpcWriteOptions,
};
use arrow_flight::{
    FlightDescriptor, FlightEndpoint, FlightInfo, HandshakeRequest, HandshakeResponse, IpcMessage,
    SchemaAsIpc, Ticket,
    decode::FlightRecordBatchStream,
    encode::FlightDataEncoderBuilder,
    error::FlightError,
    flight_service_server::FlightService,
    sql::{
        ActionClosePreparedStatementRequest, ActionCreatePreparedStatementRequest,
        ActionCreatePreparedStatementResult, CommandGetCatalogs, CommandGetDbSchemas, CommandGetSqlInfo,
        CommandGetTableTypes, CommandGetTables, CommandPreparedStatementQuery, CommandStatementQuery,
        DoPutPreparedStatementResult, ProstMessageExt, SqlInfo, TicketStatementQuery,
        server::{FlightSqlService, PeekableFlightDataStream},
    },
};
use futures::{Stream, TryStreamExt, stream};
use prost::Message;
use tonic::{Request, Response, Status, Streaming, metadata::MetadataValue};

use crate::{
    catalog::{self, ABOUT},
    running::{Deadline, Queries},
    statement::Statement,
};

/// The largest batch of parameter values, in bytes of its messages.
const MOST_VALUES: usize = 1 << 20;

/// The service. The token was checked before a call gets here.
#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) queries: Queries,
    /// The time limit of a query.
    pub(crate) time: Duration,
    /// The header for clients that sent the token as a password.
    pub(crate) bearer: String,
}

type Rows = <Service as FlightService>::DoGetStream;
type Answer<T> = Result<Response<T>, Status>;

impl Service {
    async fn rows(&self, statement: Statement) -> Answer<Rows> {
        let deadline = Deadline::after(self.time);
        let (schema, rows) = self.queries.run(statement, deadline).await?;
        Ok(encoded(schema, rows))
    }

    /// Tells the client how to get the rows of a statement.
    async fn info_of(&self, statement: &Statement, descriptor: FlightDescriptor) -> Answer<FlightInfo> {
        let columns = self.queries.columns(statement.clone(), Deadline::after(self.time)).await?;
        let ticket = TicketStatementQuery { statement_handle: statement.handle() };
        info(&columns, &ticket, descriptor)
    }
}

/// Tells the client how to get rows with these columns: with this ticket, from this server.
fn info(columns: &Schema, ticket: &impl ProstMessageExt, descriptor: FlightDescriptor) -> Answer<FlightInfo> {
    let ticket = Ticket::new(ticket.as_any().encode_to_vec());
    let endpoint = FlightEndpoint::new().with_ticket(ticket);
    let info = FlightInfo::new().try_with_schema(columns).map_err(FlightError::from)?;
    Ok(Response::new(info.with_endpoint(endpoint).with_descriptor(descriptor)))
}

fn encoded(
    schema: SchemaRef,
    rows: impl Stream<Item = Result<RecordBatch, FlightError>> + Send + 'static,
) -> Response<Rows> {
    let encoded = FlightDataEncoderBuilder::new().with_schema(schema).build(rows);
    Response::new(Box::pin(encoded.map_err(Status::from)))
}

fn one(batch: RecordBatch) -> Response<Rows> {
    encoded(batch.schema(), stream::iter([Ok(batch)]))
}

fn message(schema: &Schema) -> Result<bytes::Bytes, Status> {
    let message = IpcMessage::try_from(SchemaAsIpc::new(schema, &IpcWriteOptions::default()));
    let IpcMessage(message) = message.map_err(FlightError::from)?;
    Ok(message)
}

#[tonic::async_trait]
impl FlightSqlService for Service {
    type FlightService = Service;

    async fn do_handshake(
        &self,
        _request: Request<Streaming<HandshakeRequest>>,
    ) -> Answer<Pin<Box<dyn Stream<Item = Result<HandshakeResponse, Status>> + Send>>> {
        let payload = self.bearer.clone().into_bytes().into();
        let answer = stream::iter([Ok(HandshakeResponse { protocol_version: 0, payload })]);
        let mut response: Response<Pin<Box<dyn Stream<Item = _> + Send>>> = Response::new(Box::pin(answer));
        let header =
            MetadataValue::try_from(&self.bearer).map_err(|error| Status::internal(error.to_string()))?;
        response.metadata_mut().insert("authorization", header);
        Ok(response)
    }

    async fn get_flight_info_statement(
        &self,
        query: CommandStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        self.info_of(&Statement::new(query.query), request.into_inner()).await
    }

    async fn do_get_statement(
        &self,
        ticket: TicketStatementQuery,
        _request: Request<Ticket>,
    ) -> Answer<Rows> {
        self.rows(Statement::of_handle(&ticket.statement_handle)?).await
    }

    async fn do_action_create_prepared_statement(
        &self,
        query: ActionCreatePreparedStatementRequest,
        _request: Request<arrow_flight::Action>,
    ) -> Result<ActionCreatePreparedStatementResult, Status> {
        let statement = Statement::new(query.query);
        // The columns of some queries are unknown before the parameters have values.
        let columns = self.queries.columns(statement.clone(), Deadline::after(self.time)).await;
        let columns = match columns {
            Err(_) if statement.query.contains(['$', '?']) => Schema::empty().into(),
            columns => columns?,
        };
        Ok(ActionCreatePreparedStatementResult {
            prepared_statement_handle: statement.handle(),
            dataset_schema: message(&columns)?,
            parameter_schema: message(&Schema::empty())?,
        })
    }

    async fn do_put_prepared_statement_query(
        &self,
        query: CommandPreparedStatementQuery,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<DoPutPreparedStatementResult, Status> {
        let mut statement = Statement::of_handle(&query.prepared_statement_handle)?;
        let mut received = 0;
        let data = request.into_inner().map_err(|status| FlightError::Tonic(Box::new(status)));
        let data = data.and_then(move |data| {
            received += data.data_body.len() + data.data_header.len();
            let is_short = received <= MOST_VALUES;
            let message = format!("expected at most {MOST_VALUES} bytes of parameters");
            async move { if is_short { Ok(data) } else { Err(FlightError::protocol(message)) } }
        });
        let rows: Vec<RecordBatch> =
            FlightRecordBatchStream::new_from_flight_data(data).try_collect().await?;
        statement.bind(&rows)?;
        Ok(DoPutPreparedStatementResult { prepared_statement_handle: Some(statement.handle()) })
    }

    async fn get_flight_info_prepared_statement(
        &self,
        query: CommandPreparedStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        self.info_of(&Statement::of_handle(&query.prepared_statement_handle)?, request.into_inner()).await
    }

    async fn do_get_prepared_statement(
        &self,
        query: CommandPreparedStatementQuery,
        _request: Request<Ticket>,
    ) -> Answer<Rows> {
        self.rows(Statement::of_handle(&query.prepared_statement_handle)?).await
    }

    async fn do_action_close_prepared_statement(
        &self,
        _query: ActionClosePreparedStatementRequest,
        _request: Request<arrow_flight::Action>,
    ) -> Result<(), Status> {
        Ok(())
    }

    async fn get_flight_info_catalogs(
        &self,
        query: CommandGetCatalogs,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        info(&query.into_builder().schema(), &query, request.into_inner())
    }

    async fn do_get_catalogs(&self, query: CommandGetCatalogs, _request: Request<Ticket>) -> Answer<Rows> {
        Ok(one(catalog::catalogs(&self.queries.trace, query)?))
    }

    async fn get_flight_info_schemas(
        &self,
        query: CommandGetDbSchemas,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        info(&query.clone().into_builder().schema(), &query, request.into_inner())
    }

    async fn do_get_schemas(&self, query: CommandGetDbSchemas, _request: Request<Ticket>) -> Answer<Rows> {
        Ok(one(catalog::schemas(&self.queries.trace, query)?))
    }

    async fn get_flight_info_tables(
        &self,
        query: CommandGetTables,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        info(&query.clone().into_builder().schema(), &query, request.into_inner())
    }

    async fn do_get_tables(&self, query: CommandGetTables, _request: Request<Ticket>) -> Answer<Rows> {
        Ok(one(catalog::tables(&self.queries.trace, query).await?))
    }

    async fn get_flight_info_table_types(
        &self,
        query: CommandGetTableTypes,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        info(&query.into_builder().schema(), &query, request.into_inner())
    }

    async fn do_get_table_types(
        &self,
        query: CommandGetTableTypes,
        _request: Request<Ticket>,
    ) -> Answer<Rows> {
        Ok(one(catalog::table_types(query)?))
    }

    async fn get_flight_info_sql_info(
        &self,
        query: CommandGetSqlInfo,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        info(&query.clone().into_builder(&ABOUT).schema(), &query, request.into_inner())
    }

    async fn do_get_sql_info(&self, query: CommandGetSqlInfo, _request: Request<Ticket>) -> Answer<Rows> {
        Ok(one(query.into_builder(&ABOUT).build()?))
    }

    async fn register_sql_info(&self, _id: i32, _info: &SqlInfo) {}
}
