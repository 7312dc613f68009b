//! QUIC by quinn: each frame is a unidirectional stream, which is reset at its deadline.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use quinn::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Connection, Endpoint, ServerConfig, TransportConfig, VarInt};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{Ended, Outgoing, any_port, nobody_called, udp_socket};
use crate::arguments::{QuicController, QuicOrder, Receive, Send};
use crate::chunk::{Cutter, Frame};
use crate::clock::{now_ns, sleep_until};
use crate::failure::{Context, Failure, Result};
use crate::sink::Sink;

const PROTOCOL: &[u8] = b"comity-compare";
const NAME: &str = "compare";
/// The error code of a stream reset at its deadline.
const TOO_LATE: VarInt = VarInt::from_u32(1);
const DONE: VarInt = VarInt::from_u32(0);
/// The maximum of open streams: more than frames within any latency.
const MAX_STREAMS: VarInt = VarInt::from_u32(10_000);

/// The step of priorities from one importance to the next: more frames than run at once.
const NEWER: i32 = 1 << 22;

/// The fate of one stream.
enum Fate {
    Acknowledged,
    /// Before, or after, all of it was written.
    ResetUnwritten,
    ResetWritten,
    Failed,
}

pub struct Sender {
    endpoint: Endpoint,
    connection: Connection,
    has_importance: bool,
    order: QuicOrder,
    streams: JoinSet<Fate>,
}

fn transport(controller: QuicController, order: QuicOrder) -> TransportConfig {
    let factory: Arc<dyn ControllerFactory + core::marker::Send + Sync> = match controller {
        QuicController::Cubic => Arc::new(CubicConfig::default()),
        QuicController::Newreno => Arc::new(NewRenoConfig::default()),
        QuicController::Bbr => Arc::new(BbrConfig::default()),
    };
    let mut transport = TransportConfig::default();
    transport
        .congestion_controller_factory(factory)
        .max_concurrent_uni_streams(MAX_STREAMS)
        .send_fairness(order == QuicOrder::Turns)
        .receive_window(VarInt::MAX);
    transport
}

fn endpoint(address: SocketAddr, server: Option<ServerConfig>) -> Result<Endpoint> {
    let socket = udp_socket(address)?
        .into_std()
        .context("cannot use a UDP socket")?;
    Endpoint::new(
        quinn::EndpointConfig::default(),
        server,
        socket,
        Arc::new(quinn::TokioRuntime),
    )
    .context(format!("cannot start QUIC at {address}"))
}

fn client(protocol: &[u8], transport: TransportConfig) -> Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut crypto = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .context("cannot configure TLS")?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        .with_no_client_auth();
    crypto.alpn_protocols = vec![protocol.to_vec()];
    let crypto = QuicClientConfig::try_from(crypto).context("cannot configure QUIC")?;
    let mut config = ClientConfig::new(Arc::new(crypto));
    config.transport_config(Arc::new(transport));
    Ok(config)
}

pub async fn connect(arguments: &Send) -> Result<Sender> {
    let (peer, wait) = (arguments.connect, arguments.common.wait);
    let config = client(PROTOCOL, transport(arguments.quic_cc, arguments.quic_order))?;
    let endpoint = endpoint(any_port(peer), None)?;
    let give_up = now_ns() + wait.as_nanos() as u64;
    let connection = loop {
        let connecting = endpoint
            .connect_with(config.clone(), peer, NAME)
            .context(format!("cannot call {peer}; give another address"))?;
        match timeout(Duration::from_secs(1), connecting).await {
            Ok(Ok(connection)) => break connection,
            _ if now_ns() >= give_up => {
                return Err(Failure(format!(
                    "nobody at {peer} answered within {wait:?}; start `compare receive --transport quic` there first"
                )));
            }
            _ => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    };
    Ok(Sender {
        endpoint,
        connection,
        has_importance: arguments.importance,
        order: arguments.quic_order,
        streams: JoinSet::new(),
    })
}

async fn send_frame(
    connection: Connection,
    payload: Bytes,
    priority: i32,
    deadline_ns: u64,
) -> Fate {
    let Ok(mut stream) = connection.open_uni().await else {
        return Fate::Failed;
    };
    let _ = stream.set_priority(priority);
    let mut is_written = false;
    let sent = async {
        stream.write_chunk(payload).await.map_err(drop)?;
        stream.finish().map_err(drop)?;
        is_written = true;
        // Until everything is acknowledged, or the receiver stops reading.
        stream.stopped().await.map_err(drop)
    };
    let left = Duration::from_nanos(deadline_ns.saturating_sub(now_ns()));
    match timeout(left, sent).await {
        Ok(Ok(_)) => Fate::Acknowledged,
        Ok(Err(())) => Fate::Failed,
        Err(_) => {
            let _ = stream.reset(TOO_LATE);
            match is_written {
                true => Fate::ResetWritten,
                false => Fate::ResetUnwritten,
            }
        }
    }
}

impl Outgoing for Sender {
    fn give(&mut self, frame: &Frame, payload: Bytes, deadline_ns: u64) -> Result<()> {
        let importance = match self.has_importance {
            true => i32::from(frame.importance),
            false => 0,
        };
        let priority = match self.order {
            QuicOrder::Newest => importance * NEWER + frame.number as i32 % NEWER,
            QuicOrder::Turns | QuicOrder::Oldest => importance,
        };
        self.streams.spawn(send_frame(
            self.connection.clone(),
            payload,
            priority,
            deadline_ns,
        ));
        Ok(())
    }

    fn broken(&self) -> Option<String> {
        self.connection
            .close_reason()
            .map(|reason| reason.to_string())
    }

    async fn finish(mut self, until_ns: u64) -> Result<Value> {
        let mut fates = [0_u64; 4];
        let collect = async {
            while let Some(fate) = self.streams.join_next().await {
                fates[fate.map_or(Fate::Failed as usize, |fate| fate as usize)] += 1;
            }
        };
        tokio::select! {
            () = collect => {}
            () = sleep_until(until_ns) => {}
        }
        let statistics = self.connection.stats();
        self.connection.close(DONE, b"done");
        let _ = timeout(Duration::from_secs(1), self.endpoint.wait_idle()).await;
        let [acknowledged, reset_unwritten, reset_written, failed] = fates;
        Ok(json!({
            "streams_acknowledged": acknowledged,
            "streams_reset_before_all_was_written": reset_unwritten,
            "streams_reset_after_all_was_written": reset_written,
            "streams_failed": failed,
            "packets_sent": statistics.path.sent_packets,
            "packets_lost": statistics.path.lost_packets,
            "bytes_lost": statistics.path.lost_bytes,
            "congestion_events": statistics.path.congestion_events,
            "congestion_window": statistics.path.cwnd,
            "rtt_ms": statistics.path.rtt.as_secs_f64() * 1e3,
            "datagram_bytes": statistics.path.current_mtu,
            "udp_bytes_sent": statistics.udp_tx.bytes,
        }))
    }
}

/// The first caller whose handshake succeeds.
///
/// A caller that lost a handshake packet calls again, and the first call may linger until its idle
/// timeout: calls are accepted in parallel.
async fn accept(endpoint: &Endpoint) -> Result<Connection> {
    let mut handshakes = JoinSet::new();
    loop {
        tokio::select! {
            incoming = endpoint.accept() => {
                let incoming = incoming.ok_or_else(|| Failure("the endpoint was closed".into()))?;
                handshakes.spawn(incoming.into_future());
            }
            Some(Ok(Ok(connection))) = handshakes.join_next() => return Ok(connection),
        }
    }
}

fn server() -> Result<ServerConfig> {
    let key = rcgen::generate_simple_self_signed([NAME.to_owned()])
        .context("cannot make a certificate")?;
    let private = PrivatePkcs8KeyDer::from(key.signing_key.serialize_der());
    let mut crypto = rustls::ServerConfig::builder_with_provider(Arc::new(
        rustls::crypto::ring::default_provider(),
    ))
    .with_protocol_versions(&[&rustls::version::TLS13])
    .context("cannot configure TLS")?
    .with_no_client_auth()
    .with_single_cert(vec![key.cert.into()], private.into())
    .context("cannot use the certificate")?;
    crypto.alpn_protocols = vec![PROTOCOL.to_vec()];
    let crypto = QuicServerConfig::try_from(crypto).context("cannot configure QUIC")?;
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(Arc::new(transport(QuicController::Cubic, QuicOrder::Turns)));
    Ok(config)
}

pub async fn receive(arguments: &Receive, sink: &Sink) -> Result<Ended> {
    let endpoint = endpoint(arguments.listen, Some(server()?))?;
    let accepted = timeout(arguments.common.wait, accept(&endpoint)).await;
    let connection = accepted.map_err(|_| nobody_called(&arguments.common))??;
    // Readers of streams end with this channel's receiver.
    let (done, _all_done) = mpsc::channel::<()>(1);
    let over = sink.over();
    tokio::pin!(over);
    let why = loop {
        let mut stream = tokio::select! {
            stream = connection.accept_uni() => match stream {
                Ok(stream) => stream,
                Err(error) => break error.to_string(),
            },
            () = &mut over => break "the source had ended".to_owned(),
        };
        let (sink, done) = (sink.clone(), done.clone());
        tokio::spawn(async move {
            let mut cutter = Cutter::default();
            let read = async {
                while let Ok(Some(part)) = stream.read_chunk(usize::MAX, true).await {
                    if !sink.stream(&mut cutter, &part.bytes) {
                        break;
                    }
                }
            };
            tokio::select! {
                () = read => {}
                () = done.closed() => {}
            }
        });
    };
    let statistics = connection.stats();
    connection.close(DONE, b"done");
    let _ = timeout(Duration::from_secs(1), endpoint.wait_idle()).await;
    Ok(Ended {
        why,
        statistics: json!({ "udp_bytes_received": statistics.udp_rx.bytes }),
    })
}

/// Both ends belong to one measurement: any listener is the receiver.
#[derive(Debug)]
struct AnyCertificate(Arc<rustls::crypto::CryptoProvider>);

impl rustls::client::danger::ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> std::result::Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &rustls::DigitallySignedStruct,
    ) -> std::result::Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &rustls::DigitallySignedStruct,
    ) -> std::result::Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_call_that_fails_does_not_keep_the_next_one_out() {
        let receiver = endpoint(([127, 0, 0, 1], 0).into(), server().ok()).expect("a free port");
        let address = receiver.local_addr().expect("it is bound");
        let caller = endpoint(any_port(address), None).expect("a free port");
        let call = async |protocol: &[u8]| {
            let transport = transport(QuicController::Cubic, QuicOrder::Newest);
            let config = client(protocol, transport).expect("a configuration");
            let connecting = caller.connect_with(config, address, NAME);
            connecting.expect("an address").await
        };
        let calls = async {
            // The handshake fails at both ends, because they share no protocol.
            let stranger = call(b"another protocol").await;
            (stranger.is_err(), call(PROTOCOL).await)
        };
        let (accepted, (is_refused, called)) = tokio::join!(accept(&receiver), calls);
        let (accepted, called) = (accepted.expect("accepted"), called.expect("connected"));
        assert!(is_refused);
        let own = caller.local_addr().expect("it is bound");
        assert_eq!(accepted.remote_address().port(), own.port());
        assert_eq!(called.remote_address(), address);
    }
}
