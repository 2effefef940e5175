//! A request and its answer.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Body, Incoming},
    header::{self, HeaderValue},
};
use serde_json::{Value, json};
use tokio::{runtime::Handle, sync::Semaphore, task::JoinSet};

use super::{assets, guard::Guard};
use crate::{
    api::{Answer, Query, Refusal, RefusalKind},
    live::Stage,
};

/// The largest size of a question's body, in bytes.
const BODY: usize = 1 << 20;

/// The content that the page may load, and from where.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The headers of all answers.
const HEADERS: [(&str, &str); 6] = [
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
];

/// The data that is needed to answer requests.
pub(super) struct Site {
    pub(super) stage: Arc<Stage>,
    pub(super) guard: Guard,
    /// One permit for each question that may run at the same time.
    pub(super) places: Arc<Semaphore>,
    pub(super) time: Duration,
    /// The threads of questions.
    pub(super) threads: Handle,
}

type Reply = Response<Full<Bytes>>;

impl Site {
    pub(super) async fn respond(&self, request: Request<Incoming>) -> Reply {
        let mut reply = self.reply(request).await;
        for (name, value) in HEADERS {
            reply.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        reply
    }

    async fn reply(&self, request: Request<Incoming>) -> Reply {
        if let Some(reason) = self.guard.refuses(request.headers()) {
            return refusal(StatusCode::FORBIDDEN, reason);
        }
        let path = request.uri().path();
        let Some(question) = path.strip_prefix("/api/") else {
            return match *request.method() {
                Method::GET | Method::HEAD => file(path),
                _ => refusal(StatusCode::METHOD_NOT_ALLOWED, "expected GET"),
            };
        };
        if !self.guard.knows(request.headers()) {
            let message = "expected the token of the URL that the server has printed";
            return refusal(StatusCode::FORBIDDEN, message);
        }
        let question = question.to_string();
        let query = match self.query(request).await {
            Ok(query) => query,
            Err(reply) => return reply,
        };
        self.answer(question, query).await
    }

    async fn query(&self, request: Request<Incoming>) -> Result<Query, Reply> {
        let (head, body) = request.into_parts();
        let body = match head.method {
            Method::GET => Value::Null,
            Method::POST => {
                let too_long = || {
                    refusal(
                        StatusCode::PAYLOAD_TOO_LARGE,
                        &format!("expected a body of at most {BODY} bytes"),
                    )
                };
                if body.size_hint().lower() > BODY as u64 {
                    return Err(too_long());
                }
                let body = Limited::new(body, BODY).collect();
                let body = tokio::time::timeout(self.time, body).await.map_err(|_| self.late())?;
                let bytes = body.map_err(|_| too_long())?.to_bytes();
                serde_json::from_slice(&bytes)
                    .map_err(|error| refusal(StatusCode::BAD_REQUEST, &format!("expected JSON: {error}")))?
            }
            _ => return Err(refusal(StatusCode::METHOD_NOT_ALLOWED, "expected GET or POST")),
        };
        Ok(Query::new(head.uri.query().unwrap_or_default(), body))
    }

    /// Answers a question. If the client disconnects, the future is dropped, which ends the work.
    async fn answer(&self, question: String, query: Query) -> Reply {
        let (stage, places) = (Arc::clone(&self.stage), Arc::clone(&self.places));
        let mut task = JoinSet::new();
        task.spawn_on(
            async move {
                // The semaphore is never closed.
                let _place = places.acquire_owned().await;
                stage.answer(&question, &query).await
            },
            &self.threads,
        );
        match tokio::time::timeout(self.time, task.join_next()).await {
            Err(_) => self.late(),
            Ok(Some(Ok(Ok(Answer::Json(value))))) => {
                content("application/json", Bytes::from(value.to_string()))
            }
            Ok(Some(Ok(Ok(Answer::Binary(bytes))))) => content("application/octet-stream", bytes.into()),
            Ok(Some(Ok(Err(Refusal { kind, message })))) => refusal(status(kind), &message),
            Ok(_) => {
                let message = "the question ended without an answer: this is a defect of sigmund";
                refusal(StatusCode::INTERNAL_SERVER_ERROR, message)
            }
        }
    }

    fn late(&self) -> Reply {
        let message =
            format!("expected a question of at most {:?}, the limit of this server (--time)", self.time);
        refusal(StatusCode::REQUEST_TIMEOUT, &message)
    }
}

fn status(kind: RefusalKind) -> StatusCode {
    match kind {
        RefusalKind::Wrong => StatusCode::BAD_REQUEST,
        RefusalKind::Forbidden => StatusCode::FORBIDDEN,
        RefusalKind::Missing => StatusCode::NOT_FOUND,
        RefusalKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        RefusalKind::Failed => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

fn file(path: &str) -> Reply {
    match assets::find(path) {
        Some((ty, bytes)) => content(ty, Bytes::from_static(bytes)),
        None => refusal(StatusCode::NOT_FOUND, "there is no such page"),
    }
}

fn content(ty: &'static str, bytes: Bytes) -> Reply {
    let mut reply = Response::new(Full::new(bytes));
    reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(ty));
    reply
}

fn refusal(status: StatusCode, message: &str) -> Reply {
    let mut reply = content("application/json", Bytes::from(json!({ "error": message }).to_string()));
    *reply.status_mut() = status;
    reply
}
