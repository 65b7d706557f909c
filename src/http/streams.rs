//! What a subscription is, whichever way it is asked for: judged by the guard, run for whoever asks, until its token ends.

use super::graphql::{Asked, code_of, prepare, with_code};
use super::viewer;
use crate::app::App;
use crate::auth::Claims;
use crate::graphql::guard;
use async_graphql::parser::types::OperationType;
use async_graphql::{Data, Response, ServerError};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use parterre_schema::TopLevelCode;
use sea_orm::DbErr;
use std::sync::Arc;
use std::time::Duration;

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
        let seconds = u64::try_from(claims.exp - crate::clock::now().timestamp()).unwrap_or(0);
        let account = Some(claims.sub.clone());
        Ok(Self { data: Arc::new(data), account, good_for: Some(Duration::from_secs(seconds)) })
    }
}

/// Begins a subscription, or says why not.
pub(super) fn subscribe(
    app: &App,
    session: &Session,
    asked: Asked,
) -> Result<BoxStream<'static, Response>, ServerError> {
    let asked = asked.check().map_err(|message| refusal(TopLevelCode::BadUserInput, message))?;
    let Some(query) = asked.query else { return Err(refusal(TopLevelCode::BadUserInput, "a query is needed")) };
    let operation_name = asked.operation_name.filter(|name| !name.is_empty());
    let accepted = guard::accept(&query, operation_name.as_deref(), asked.variables.as_ref())
        .map_err(|error| refusal(code_of(&error), error.to_string()))?;
    if accepted.kind != OperationType::Subscription {
        return Err(refusal(TopLevelCode::BadUserInput, "send queries and mutations over HTTP, to /graphql"));
    }
    let request = prepare(query, accepted, asked.variables);
    let stream = app.schema.execute_stream_with_session_data(request, Arc::clone(&session.data));
    let coded = |mut response: Response| {
        response.errors = response.errors.into_iter().map(with_code).collect();
        response
    };
    Ok(stream.map(coded).boxed())
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
