//! Connections: accepted, bounded in time, ended in order.
//!
//! Invariants: headers that do not arrive, and bytes that are not taken, end a connection; when the process ends, running
//! requests are answered and then their connections closed.

use super::router;
use crate::app::App;
use axum::body::Body;
use axum::extract::ConnectInfo;
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use socket2::SockRef;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tower::ServiceExt as _;

/// How long a request's headers may take, and a connection may rest between two requests: longer than proxies keep one,
/// so that a request does not meet a close on its way.
const HEADERS_WITHIN: Duration = Duration::from_secs(75);
/// How often a sign of life is asked for on HTTP/2, and how long it may take.
const ALIVE_WITHIN: Duration = Duration::from_secs(30);
/// How long bytes that we sent may stay unacknowledged, or the other side take nothing.
const TAKEN_WITHIN: Duration = Duration::from_secs(30);
/// Bytes that wait in the system for one who does not take them: it would keep some megabytes for each. (It counts its own
/// bookkeeping too, and so doubles this.)
const SEND_BUFFER: usize = 256 * 1024;
/// Requests at once on one HTTP/2 connection.
const HTTP2_STREAMS_MAX: u32 = 100;
/// Bytes of headers.
const HEADER_BYTES_MAX: u32 = 32 * 1024;
/// A pause after a connection could not be accepted, for example because too many files are open.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Serves until the app's shutdown token is cancelled, and then until the last request is answered.
pub async fn serve(app: App, listener: TcpListener) -> std::io::Result<()> {
    let shutdown = app.shutdown.clone();
    let router = router(app);
    let connections = GracefulShutdown::new();
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADERS_WITHIN);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(HTTP2_STREAMS_MAX)
        .max_header_list_size(HEADER_BYTES_MAX)
        .keep_alive_interval(ALIVE_WITHIN)
        .keep_alive_timeout(ALIVE_WITHIN);
    loop {
        let (stream, peer) = tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_AGAIN).await;
                    continue;
                }
            },
        };
        bound(&stream);
        let router = router.clone();
        let begun = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&begun);
        let service = service_fn(move |mut request: Request<Incoming>| {
            seen.store(true, Ordering::Relaxed);
            request.extensions_mut().insert(ConnectInfo(peer));
            router.clone().oneshot(request.map(Body::new))
        });
        let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service).into_owned();
        let watched = connections.watch(connection);
        tokio::spawn(async move {
            let mut watched = pin!(watched);
            // How a connection ends is the other side's business. One that asks for nothing is not kept.
            let nothing = tokio::time::timeout(HEADERS_WITHIN, watched.as_mut()).await.is_err();
            if nothing && begun.load(Ordering::Relaxed) {
                drop(watched.await);
            }
        });
    }
    drop(listener);
    connections.shutdown().await;
    Ok(())
}

/// One who takes nothing is not waited for. What can't be set is how the system has it.
fn bound(stream: &TcpStream) {
    stream.set_nodelay(true).ok();
    let socket = SockRef::from(stream);
    socket.set_tcp_user_timeout(Some(TAKEN_WITHIN)).ok();
    socket.set_send_buffer_size(SEND_BUFFER).ok();
}
