//! What a subscription is, whichever way it is asked for: judged by the guard, run for whoever asks, until its token ends.

use super::graphql::{Asked, Refusal, judge, prepare, with_code};
use super::viewer;
use crate::app::App;
use crate::auth::Claims;
use crate::graphql::ApiSchema;
use crate::graphql::guard::Flaw;
use crate::graphql::watch::{Handover, Next, Render};
use crate::limit::{TooOften, household};
use crate::seatmap::Wording;
use async_graphql::parser::types::{ExecutableDocument, OperationType, Selection};
use async_graphql::{Data, Name, Pos, Response, ServerError};
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt};
use parterre_schema::TopLevelCode;
use sea_orm::DbErr;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::any::Any;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How many sockets and event streams each account and each address has open in this process.
#[derive(Clone, Debug, Default)]
pub struct OpenStreams {
    open: Arc<Mutex<HashMap<Of, usize>>>,
}

/// Whose are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Of {
    Account(String),
    /// A school or an office may be one.
    Address(IpAddr),
}

/// One of them, counted until it is dropped.
pub(super) struct Counted {
    all: OpenStreams,
    of: Of,
}

/// Open at once of one account, in one process.
const ACCOUNT_MAX: usize = 50;
/// Open at once of one address, in one process.
const ADDRESS_MAX: usize = 500;

/// When one who has too many open may try again.
pub(super) const FULL: TooOften = TooOften { retry_after: Duration::from_secs(5) };

impl OpenStreams {
    pub(super) fn count(&self, of: Of) -> Option<Counted> {
        let of = match of {
            Of::Address(address) => Of::Address(household(address)),
            of @ Of::Account(_) => of,
        };
        let max = match of {
            Of::Account(_) => ACCOUNT_MAX,
            Of::Address(_) => ADDRESS_MAX,
        };
        let mut all = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let open = all.entry(of.clone()).or_default();
        if *open >= max {
            return None;
        }
        *open += 1;
        Some(Counted { all: self.clone(), of })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut all = self.all.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = all.get_mut(&self.of) {
            *open -= 1;
            if *open == 0 {
                all.remove(&self.of);
            }
        }
    }
}

/// Who asks, and until when.
#[derive(Clone)]
pub(super) struct Session {
    data: Arc<Data>,
    /// Whose sockets are counted together; nobody's without a token.
    pub(super) account: Option<String>,
    /// How long the token is still good.
    pub(super) good_for: Option<Duration>,
}

impl Session {
    /// Of somebody with a valid token, or of anybody: maps are public.
    pub(super) async fn of(app: &App, claims: Option<&Claims>) -> Result<Self, DbErr> {
        let mut data = Data::default();
        let Some(claims) = claims else { return Ok(Self { data: Arc::new(data), account: None, good_for: None }) };
        data.insert(viewer(app, claims).await?);
        let seconds = u64::try_from(claims.exp.saturating_sub(crate::clock::now().timestamp())).unwrap_or(0);
        let account = Some(claims.sub.clone());
        Ok(Self { data: Arc::new(data), account, good_for: Some(Duration::from_secs(seconds)) })
    }
}

/// Begins a subscription, or says why not.
pub(super) async fn subscribe(
    app: &App,
    session: &Session,
    asked: Asked,
) -> Result<BoxStream<'static, Payload>, Vec<ServerError>> {
    let mut asked = asked.check().map_err(|message| vec![refusal(TopLevelCode::BadUserInput, message)])?;
    let (query, accepted) = judge(app, &mut asked).await.map_err(|refused| server_errors(&refused))?;
    if accepted.kind != OperationType::Subscription {
        return Err(vec![refusal(TopLevelCode::BadUserInput, "send queries and mutations over HTTP, to /graphql")]);
    }
    let operation = Operation {
        schema: app.schema.clone(),
        wording: digest(&query, &asked, after(&accepted.document)),
        query: query.into(),
        document: accepted.document,
        variables: asked.variables,
        data: Arc::clone(&session.data),
    };
    Ok(operation.run().take_until(app.shutdown.clone().cancelled_owned()).boxed())
}

/// What a stream brings.
pub(super) enum Payload {
    /// The executor's answer.
    Response(Box<Response>),
    /// An answer as JSON, shared by all who asked the same.
    Encoded(Arc<str>),
}

/// A subscription as it was asked for.
struct Operation {
    schema: ApiSchema,
    wording: Wording,
    query: Box<str>,
    document: Arc<ExecutableDocument>,
    variables: Option<Value>,
    data: Arc<Data>,
}

impl Operation {
    /// The executor's answers; for a seat map the first of them, and then what is shared.
    fn run(self) -> impl Stream<Item = Payload> {
        async_stream::stream! {
            let _running = Running::more();
            let handover = Arc::<Handover>::default();
            let mut answers = self.execute(Arc::clone(&handover));
            while let Some(response) = answers.next().await {
                yield Payload::Response(Box::new(coded(response)));
            }
            drop(answers);
            let Some(mut watch) = handover.take() else { return };
            while let Some(next) = watch.next().await {
                match next {
                    Next::Moved { from, told } => {
                        let rendered = self.render(watch.delta(&from, &told));
                        yield Payload::Encoded(told.shared.get(self.wording, &from.0, rendered).await);
                    }
                    Next::TooSlow(resync) => {
                        yield Payload::Encoded(self.render(resync).await);
                        return;
                    }
                }
            }
        }
    }

    fn execute(&self, with: impl Any + Send + Sync) -> BoxStream<'static, Response> {
        let request = prepare(self.query.to_string(), &self.document, self.variables.clone()).data(with);
        self.schema.execute_stream_with_session_data(request, Arc::clone(&self.data))
    }

    /// An update as it was asked for.
    async fn render(&self, update: Render) -> Arc<str> {
        let response = self.execute(update).next().await.map(coded).unwrap_or_default();
        serde_json::to_string(&response).unwrap_or_default().into()
    }
}

/// The variable that says where to go on from, which makes no difference after the first answer.
fn after(document: &ExecutableDocument) -> Option<Name> {
    let (_, operation) = document.operations.iter().next()?;
    let Selection::Field(root) = &operation.node.selection_set.node.items.first()?.node else { return None };
    match &root.node.get_argument("afterVersion")?.node {
        async_graphql_value::Value::Variable(name) => Some(name.clone()),
        _ => None,
    }
}

/// Names what is asked for, but for who asks and where they go on from.
fn digest(query: &str, asked: &Asked, after: Option<Name>) -> Wording {
    let mut variables = asked.variables.clone().unwrap_or_default();
    if let (Some(variables), Some(after)) = (variables.as_object_mut(), after) {
        variables.remove(after.as_str());
    }
    let variables = variables.to_string();
    let mut digest = Sha256::new();
    for part in [query, asked.operation_name.as_deref().unwrap_or_default(), &variables] {
        digest.update(part.len().to_le_bytes());
        digest.update(part);
    }
    digest.finalize().into()
}

fn coded(mut response: Response) -> Response {
    response.errors = response.errors.into_iter().map(with_code).collect();
    response
}

/// A subscription that is running, for the metrics.
struct Running;

impl Running {
    fn more() -> Self {
        metrics::gauge!("parterre_subscriptions_running").increment(1.0);
        Self
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        metrics::gauge!("parterre_subscriptions_running").decrement(1.0);
    }
}

/// Errors as streams carry them.
pub(super) fn server_errors(refused: &Refusal) -> Vec<ServerError> {
    let error = |flaw: &Flaw| {
        let mut error = refusal(refused.code, flaw.message.clone());
        error.locations = flaw.locations.iter().map(|(line, column)| Pos { line: *line, column: *column }).collect();
        error
    };
    refused.flaws.iter().map(error).collect()
}

/// An error with its code.
pub(super) fn refusal(code: TopLevelCode, message: impl Into<String>) -> ServerError {
    let mut error = ServerError::new(message, None);
    error.extensions.get_or_insert_default().set("code", code.as_str());
    error
}

/// Whether a first response says that the operation did not begin: then it is refused, and not an event.
pub(super) fn did_not_begin(response: &Response) -> bool {
    !response.errors.is_empty() && response.data == async_graphql::Value::Null
}
