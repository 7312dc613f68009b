//! The HTTP server of the metrics page.
//!
//! Anybody who reaches the address may connect, so time, memory and sockets are bounded. A client
//! that is slow on purpose delays nobody: each has a task, and a new client takes the place of the
//! oldest one if [`MAX_CLIENTS`] are open.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

const PLAIN: &str = "text/plain; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const ROOT: &str = "<!doctype html>\n<title>comity</title>\n<a href=\"/metrics\">metrics</a>\n";

/// Clients that may be connected at the same time.
const MAX_CLIENTS: usize = 16;
/// The time from a connection's beginning to the last byte of its answer; that of Prometheus is
/// 10 s too.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest head of a request; hyper's minimum.
const MAX_HEAD: usize = 8 * 1_024;
/// The pause after a failed accept: a process that has no descriptors left would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What bounds the clients.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    clients: usize,
    timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            clients: MAX_CLIENTS,
            timeout: REQUEST_TIMEOUT,
        }
    }
}

/// Answers until the thread ends.
pub(super) fn run(
    listener: std::net::TcpListener,
    registry: Registry,
    limits: Limits,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::from_std(listener)?;
        accept(&listener, &Arc::new(registry), limits).await
    })
}

async fn accept(listener: &TcpListener, registry: &Arc<Registry>, limits: Limits) -> ! {
    let mut clients: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        clients.retain(|client| !client.is_finished());
        if clients.len() >= limits.clients
            && let Some(oldest) = clients.pop_front()
        {
            oldest.abort();
        }
        let served = serve(stream, registry.clone());
        let client = tokio::spawn(timeout(limits.timeout, served));
        clients.push_back(client.abort_handle());
    }
}

/// Answers one request and closes.
async fn serve(stream: TcpStream, registry: Arc<Registry>) {
    let answered = service_fn(|request: Request<Incoming>| {
        let response = respond(request.method(), request.uri().path(), &registry);
        async { Ok::<_, Infallible>(response) }
    });
    let connection = http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(MAX_HEAD)
        .header_read_timeout(None)
        .serve_connection(TokioIo::new(stream), answered);
    // A scraper that goes away asks again.
    let _ = connection.await;
}

fn respond(method: &Method, path: &str, registry: &Registry) -> Response<String> {
    let (status, kind, body) = match (method, path) {
        (&Method::GET | &Method::HEAD, "/metrics") => {
            let mut body = String::new();
            match text::encode(&mut body, registry) {
                Ok(()) => (StatusCode::OK, OPEN_METRICS, body),
                Err(error) => (
                    StatusCode::INTERNAL_SERVER_ERROR,
                    PLAIN,
                    format!("the metrics could not be written: {error}\n"),
                ),
            }
        }
        (&Method::GET | &Method::HEAD, "/") => (StatusCode::OK, HTML, ROOT.into()),
        (_, "/metrics" | "/") => (
            StatusCode::METHOD_NOT_ALLOWED,
            PLAIN,
            "expected GET\n".into(),
        ),
        _ => (StatusCode::NOT_FOUND, PLAIN, "see /metrics\n".into()),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    response
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Shutdown, SocketAddr, TcpStream};
    use std::thread;

    use super::*;

    /// Far more than a test takes: a limit that must not act.
    const NEVER: Duration = Duration::from_secs(600);
    const SCRAPE: &str = "GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n";

    fn started(limits: Limits) -> SocketAddr {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let registry = Registry::with_prefix("comity");
        thread::spawn(move || run(listener, registry, limits));
        address
    }

    /// Sends `request` and reads until the server closes.
    fn answer(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        // The server may close before it has read everything.
        let _ = stream.write_all(request.as_bytes());
        rest(&mut stream)
    }

    fn rest(stream: &mut TcpStream) -> String {
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8(answer).unwrap()
    }

    fn status(answer: &str) -> &str {
        answer.split(' ').nth(1).unwrap_or_default()
    }

    #[test]
    fn a_client_that_sends_byte_by_byte_blocks_nobody_and_is_closed() {
        let address = started(Limits {
            clients: 16,
            timeout: Duration::from_millis(400),
        });
        let mut slow = TcpStream::connect(address).unwrap();
        slow.write_all(b"GET /metrics HTTP/1.1\r\nX: ").unwrap();
        assert_eq!(status(&answer(address, SCRAPE)), "200");
        let pause = Some(Duration::from_millis(20));
        slow.set_read_timeout(pause).unwrap();
        let waits = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
        // Each byte would begin a time-out for reads anew.
        let closed = loop {
            match slow.write_all(b"x").and_then(|()| slow.read(&mut [0])) {
                Err(error) if waits(&error) => {}
                closed => break closed,
            }
        };
        assert!(!matches!(closed, Ok(1..)), "an answer: {closed:?}");
        assert_eq!(status(&answer(address, SCRAPE)), "200");
    }

    #[test]
    fn a_client_beyond_the_bound_takes_the_place_of_the_oldest() {
        let clients = 4;
        let address = started(Limits {
            clients,
            timeout: NEVER,
        });
        let mut idle: Vec<_> = (0..clients)
            .map(|_| TcpStream::connect(address).unwrap())
            .collect();
        assert_eq!(status(&answer(address, SCRAPE)), "200");
        let mut kept = idle.split_off(1);
        assert_eq!(rest(&mut idle[0]), "", "closed without an answer");
        for client in &mut kept {
            client.write_all(SCRAPE.as_bytes()).unwrap();
            assert_eq!(status(&rest(client)), "200");
        }
    }

    #[test]
    fn half_a_request_has_no_answer_and_ends() {
        let timeout = Duration::from_millis(200);
        let address = started(Limits {
            clients: 16,
            timeout,
        });
        let half = SCRAPE.get(..20).unwrap();
        assert_eq!(answer(address, half), "", "after the time-out");
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(half.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        assert_ne!(status(&rest(&mut stream)), "200");
        assert_eq!(status(&answer(address, SCRAPE)), "200");
    }

    #[test]
    fn a_huge_head_is_refused() {
        let address = started(Limits {
            clients: 16,
            timeout: NEVER,
        });
        let value = "x".repeat(MAX_HEAD + 1_000);
        let huge = format!("GET /metrics HTTP/1.1\r\nX: {value}\r\n\r\n");
        // A reset may overtake the answer, since bytes are unread.
        assert!(matches!(status(&answer(address, &huge)), "431" | ""));
        let many: String = (0..200).map(|i| format!("X-{i}: x\r\n")).collect();
        let many = format!("GET /metrics HTTP/1.1\r\n{many}\r\n");
        assert_eq!(status(&answer(address, &many)), "431");
        assert_eq!(status(&answer(address, SCRAPE)), "200");
    }

    #[test]
    fn other_requests_are_refused() {
        let address = started(Limits::default());
        let request = |line: &str| answer(address, &format!("{line} HTTP/1.1\r\nHost: x\r\n\r\n"));
        let root = request("GET /");
        assert_eq!(status(&root), "200");
        assert!(root.contains("<a href=\"/metrics\">"), "{root}");
        assert_eq!(status(&request("GET /metrics?name=x")), "200");
        assert_eq!(status(&request("GET /other")), "404");
        let post = request("POST /metrics");
        assert_eq!(status(&post), "405");
        assert!(post.contains("allow: GET, HEAD"), "{post}");
        let head = request("HEAD /metrics");
        assert_eq!(status(&head), "200");
        assert!(head.ends_with("\r\n\r\n"), "{head}");
        assert_eq!(status(&answer(address, "no request\r\n\r\n")), "400");
    }
}
