//! The HTTP server of the metrics page.
//!
//! Anybody who reaches the address may connect, so time, memory and sockets are bounded. Clients
//! share one rendered page for [`FRESH`], whether they read it or not. Each client has a task, so a
//! slow client delays no other. If [`MAX_CLIENTS`] are connected, a new client replaces one of
//! them, drawn at random. An attacker who keeps all connections busy therefore rarely hits a slow
//! scraper.
//!
//! By DNS rebinding, a page can make a browser call this server under a host name of the page's
//! author. A request must therefore name an address or `localhost` as its host, or have the token.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use comity::credentials::Randomness;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{
    ALLOW, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, WWW_AUTHENTICATE,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};
use zeroize::Zeroizing;

use crate::clock::now;

const PLAIN: &str = "text/plain; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const ROOT: &str = "<!doctype html>\n<title>comity</title>\n<a href=\"/metrics\">metrics</a>\n";

/// The maximum number of connected clients. A scraper that takes 250 ms beside 1,000 idle
/// connections per second stays connected with probability (1 − 1/512)^250, or 0.6, and beside 100
/// per second always.
const MAX_CLIENTS: usize = 512;
/// The time from accepting a connection to the last byte of its answer. Prometheus also has a limit
/// of 10 s.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum length of a request's head: the minimum that hyper supports.
const MAX_HEAD: usize = 8 * 1_024;
/// How long a rendered page serves all clients. With a page of 700 kB, 256 viewers and
/// [`REQUEST_TIMEOUT`], clients that read nothing hold at most 41 pages, or 29 MB.
const FRESH: Duration = Duration::from_millis(250);
/// The pause after a failed accept. Without it, a process that has no free descriptors would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The page, and who may read it.
#[derive(Debug)]
pub(super) struct Page {
    registry: Registry,
    /// The bearer token that a request must have.
    token: Option<Zeroizing<String>>,
    /// The latest rendered page, and when it was rendered.
    rendered: Mutex<Option<(Instant, Bytes)>>,
}

impl Page {
    pub(super) const fn new(registry: Registry, token: Option<Zeroizing<String>>) -> Self {
        Self {
            registry,
            token,
            rendered: Mutex::new(None),
        }
    }

    /// The page as it is at `now`, or was at most [`FRESH`] before.
    fn render(&self, now: Instant) -> Result<Bytes, fmt::Error> {
        let mut rendered = self.rendered.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((when, page)) = &*rendered
            && now.saturating_duration_since(*when) < FRESH
        {
            return Ok(page.clone());
        }
        let mut body = String::new();
        text::encode(&mut body, &self.registry)?;
        let page = Bytes::from(body);
        *rendered = Some((now, page.clone()));
        Ok(page)
    }

    /// Why a request with these headers is refused; `None` if it is accepted.
    fn refuses(&self, headers: &HeaderMap) -> Option<(StatusCode, &'static str)> {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let Some(token) = &self.token else {
            let is_known = text(HOST).is_some_and(is_address);
            return (!is_known).then_some((
                StatusCode::MISDIRECTED_REQUEST,
                "expected an address or localhost as the host; --metrics-token admits other names\n",
            ));
        };
        let sent = text(AUTHORIZATION).and_then(|value| value.split_once(' '));
        let is_right = sent.is_some_and(|(scheme, sent)| {
            scheme.eq_ignore_ascii_case("bearer") && is_equal(sent.as_bytes(), token.as_bytes())
        });
        (!is_right).then_some((
            StatusCode::UNAUTHORIZED,
            "expected the token of --metrics-token as Authorization: Bearer\n",
        ))
    }
}

/// Whether a Host header names an address or this machine, with or without a port.
fn is_address(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => host,
    };
    let inner = name
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let is_ip = |text: &str| text.parse::<IpAddr>().is_ok();
    is_ip(inner.unwrap_or(name)) || name.eq_ignore_ascii_case("localhost")
}

/// Compares in a time that depends only on the lengths.
fn is_equal(a: &[u8], b: &[u8]) -> bool {
    let differences = a.iter().zip(b).fold(0, |all, (a, b)| all | (a ^ b));
    a.len() == b.len() && differences == 0
}

/// The limits on clients.
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

/// Answers clients until the thread ends.
pub(super) fn run(listener: std::net::TcpListener, page: Page, limits: Limits) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::from_std(listener)?;
        accept(&listener, &Arc::new(page), limits).await
    })
}

async fn accept(listener: &TcpListener, page: &Arc<Page>, limits: Limits) -> ! {
    let mut randomness = Randomness::system();
    let mut clients: Vec<AbortHandle> = Vec::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        clients.retain(|client| !client.is_finished());
        if clients.len() >= limits.clients {
            let drawn = u64::from_be_bytes(randomness.bytes()) % clients.len() as u64;
            clients.swap_remove(drawn as usize).abort();
        }
        let served = serve(stream, page.clone());
        let client = tokio::spawn(timeout(limits.timeout, served));
        clients.push(client.abort_handle());
    }
}

/// Answers one request and closes.
async fn serve(stream: TcpStream, page: Arc<Page>) {
    let answered = service_fn(|request: Request<Incoming>| {
        let response = respond(&request, &page);
        async { Ok::<_, Infallible>(response) }
    });
    let connection = http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(MAX_HEAD)
        .header_read_timeout(None)
        .serve_connection(TokioIo::new(stream), answered);
    // A disconnected scraper will ask again.
    let _ = connection.await;
}

fn respond(request: &Request<Incoming>, page: &Page) -> Response<Full<Bytes>> {
    let refused = page.refuses(request.headers());
    let resource = (request.method(), request.uri().path());
    let (status, kind, body) = match (refused, resource) {
        (Some((status, reason)), _) => (status, PLAIN, reason.into()),
        (None, (&Method::GET | &Method::HEAD, "/metrics")) => match page.render(now()) {
            Ok(body) => (StatusCode::OK, OPEN_METRICS, body),
            Err(error) => (
                StatusCode::INTERNAL_SERVER_ERROR,
                PLAIN,
                format!("the metrics could not be written: {error}\n").into(),
            ),
        },
        (None, (&Method::GET | &Method::HEAD, "/")) => (StatusCode::OK, HTML, ROOT.into()),
        (None, (_, "/metrics" | "/")) => (
            StatusCode::METHOD_NOT_ALLOWED,
            PLAIN,
            "expected GET\n".into(),
        ),
        (None, _) => (StatusCode::NOT_FOUND, PLAIN, "see /metrics\n".into()),
    };
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Shutdown, SocketAddr, TcpStream};
    use std::thread;

    use super::*;

    /// Much longer than a test, so the limit has no effect.
    const NEVER: Duration = Duration::from_secs(600);
    const SCRAPE: &str = "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";

    fn started(limits: Limits) -> SocketAddr {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        serving(listener, None, limits);
        address
    }

    fn serving(listener: std::net::TcpListener, token: Option<&str>, limits: Limits) {
        let registry = Registry::with_prefix("comity");
        let page = Page::new(registry, token.map(|token| Zeroizing::new(token.into())));
        thread::spawn(move || run(listener, page, limits));
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
        // A read time-out would restart with each byte.
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
    fn a_client_beyond_the_limit_replaces_another() {
        let clients = 4;
        let address = started(Limits {
            clients,
            timeout: NEVER,
        });
        let mut idle: Vec<_> = (0..clients)
            .map(|_| TcpStream::connect(address).unwrap())
            .collect();
        assert_eq!(status(&answer(address, SCRAPE)), "200");
        let answers = idle.iter_mut().map(|client| {
            // One of them was closed without an answer.
            let _ = client.write_all(SCRAPE.as_bytes());
            rest(client)
        });
        let answers: Vec<_> = answers.collect();
        let closed = answers.iter().filter(|answer| answer.is_empty()).count();
        let served = answers
            .iter()
            .filter(|answer| status(answer) == "200")
            .count();
        assert_eq!((closed, served), (1, clients - 1));
    }

    /// A scraper that takes 250 ms, beside 100 idle connections per second.
    #[test]
    fn idle_connections_do_not_displace_a_slow_scraper() {
        let address = started(Limits::default());
        let mut slow = TcpStream::connect(address).unwrap();
        let (head, tail) = SCRAPE.split_at(10);
        slow.write_all(head.as_bytes()).unwrap();
        let idle: Vec<_> = (0..25)
            .map(|_| TcpStream::connect(address).unwrap())
            .collect();
        // They were accepted before this client.
        assert_eq!(status(&answer(address, SCRAPE)), "200");
        slow.write_all(tail.as_bytes()).unwrap();
        assert_eq!(status(&rest(&mut slow)), "200");
        drop(idle);
    }

    /// DNS rebinding: the host is the name of an attacker's page.
    #[test]
    fn only_addresses_and_localhost_are_accepted_as_hosts() {
        let address = started(Limits::default());
        let host = |line: &str| answer(address, &format!("GET /metrics HTTP/1.1\r\n{line}\r\n"));
        for good in [
            "127.0.0.1",
            "192.0.2.7:9100",
            "localhost",
            "[::1]:9100",
            "LOCALHOST:1",
        ] {
            assert_eq!(status(&host(&format!("Host: {good}\r\n"))), "200", "{good}");
        }
        for bad in [
            "evil.example",
            "127.0.0.1.evil.example:9100",
            "localhost.evil.example",
            "",
        ] {
            assert_eq!(status(&host(&format!("Host: {bad}\r\n"))), "421", "{bad}");
        }
        assert_eq!(status(&host("")), "421");
    }

    #[test]
    fn a_request_with_the_token_gets_the_page() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        serving(listener, Some("a-long-enough-token"), Limits::default());
        let with = |line: &str| {
            let head = "GET /metrics HTTP/1.1\r\nHost: monitor.example\r\n";
            answer(address, &format!("{head}{line}\r\n"))
        };
        let right = with("Authorization: Bearer a-long-enough-token\r\n");
        assert_eq!(status(&right), "200");
        for wrong in [
            "",
            "Authorization: Bearer a-long-enough-toke\r\n",
            "Authorization: a-long-enough-token\r\n",
        ] {
            let refused = with(wrong);
            assert_eq!(status(&refused), "401", "{wrong}");
            assert!(refused.contains("www-authenticate: Bearer"), "{refused}");
        }
    }

    /// 512 clients that read nothing hold one page, not one each.
    #[test]
    fn clients_share_a_page_that_is_rendered_four_times_a_second() {
        let page = Page::new(Registry::with_prefix("comity"), None);
        let began = now();
        let at = |millis| page.render(began + Duration::from_millis(millis)).unwrap();
        let first = at(0);
        for millis in [0, 1, 100, 249] {
            assert_eq!(at(millis).as_ptr(), first.as_ptr(), "{millis}");
        }
        let second = at(250);
        assert_ne!(second.as_ptr(), first.as_ptr());
        assert_eq!(second, first, "nothing has changed meanwhile");
        assert_eq!(at(499).as_ptr(), second.as_ptr());
    }

    #[test]
    fn half_a_request_gets_no_answer_and_is_closed() {
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
        let request = |line: &str| {
            answer(
                address,
                &format!("{line} HTTP/1.1\r\nHost: localhost:9100\r\n\r\n"),
            )
        };
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
