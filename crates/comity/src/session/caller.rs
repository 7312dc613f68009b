//! The end that opens a connection.

use std::collections::VecDeque;
use std::net::SocketAddr;

use comity_transport::wire::header::{self, Answer, Packet, Retry};
use comity_transport::wire::limits::{MAX_PARAMETERS, VERSION};
use comity_transport::wire::parameters::Parameters;
use comity_units::{Span, Time};
use thiserror::Error;

use super::attempt::Attempt;
use super::handshake::{Accepted, Agreed, Verdict};
use super::protection::{Cipher, KeyLimits, Protection, Role};
use super::refusal::Refused;
use super::session::{Event, Names, Session};
use super::{
    Addresses, CallerCredentials, ConnectionId, Datagram, Ecn, Opener, Protocol, PublicKey,
    Randomness,
};

/// The configuration of a caller.
#[derive(Clone, Debug)]
pub struct CallerConfig {
    /// The caller's credentials, and how it recognises the listener.
    pub credentials: CallerCredentials,
    /// The transport's parameters, at most [`MAX_PARAMETERS`] bytes.
    pub parameters: Vec<u8>,
    /// The cipher that this machine is fast with.
    pub cipher: Cipher,
    /// When keys change.
    pub key_limits: KeyLimits,
    /// The time without an answer after which the caller gives up.
    pub timeout: Span,
    /// After how long a message is retransmitted; every further time after half as long again.
    pub first_resend: Span,
    /// The longest interval between retransmissions.
    pub longest_resend: Span,
}

/// The minimum time without an answer after which a message is retransmitted. An answer within it
/// ends a round trip for certain.
pub(super) const MIN_RESEND: Span = Span::from_millis(250);

/// The default time without an answer after which a caller gives up.
pub(crate) const CALL_TIMEOUT: Span = Span::from_secs(3);

impl CallerConfig {
    /// Gives up after 3 s; retransmits after 250 ms, then 375 ms, then every 500 ms.
    pub fn new(credentials: CallerCredentials, parameters: Vec<u8>) -> Self {
        Self {
            credentials,
            parameters,
            cipher: Cipher::of_this_machine(),
            key_limits: KeyLimits::default(),
            timeout: CALL_TIMEOUT,
            first_resend: MIN_RESEND,
            longest_resend: Span::from_millis(500),
        }
    }
}

/// Why no connection came about.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CallError {
    /// No answer came, or none that the listener could have sent.
    #[error(
        "{address}: no answer within {within}; expected a listener there, and UDP to pass in both directions"
    )]
    NoAnswer {
        /// The called address.
        address: SocketAddr,
        /// The time limit.
        within: Span,
    },
    /// A refusal came, as from a listener with another passphrase, or with none.
    #[error(
        "{address}: refused the call, as with a wrong passphrase; or the listener expects a key or no protection, \
         or somebody on the path forged the refusal"
    )]
    Passphrase {
        /// The called address.
        address: SocketAddr,
    },
    /// A refusal came, as from a listener with another key, or with none.
    #[error(
        "{address}: refused the call, as with a wrong key; or the listener expects a passphrase or no protection, \
         or somebody on the path forged the refusal"
    )]
    SharedKey {
        /// Who was called.
        address: SocketAddr,
    },
    /// The listener does not accept this caller's key, or has another key than the one it is known
    /// by.
    #[error(
        "{address}: refused the call; expected {own} on the listener's list, {listener} as its key, \
         a listener with static keys, and nobody on the path who forges refusals"
    )]
    StaticKey {
        /// The called address.
        address: SocketAddr,
        /// This caller's key.
        own: PublicKey,
        /// The expected key of the listener.
        listener: PublicKey,
    },
    /// The listener does not take unprotected connections.
    #[error(
        "{address}: refused the call; expected a passphrase or a key, because the listener has one, \
         or nobody on the path who forges refusals"
    )]
    Refused {
        /// The called address.
        address: SocketAddr,
    },
    /// The listener speaks other versions.
    #[error(
        "{address}: does not support protocol version {VERSION}; expected version {theirs}, or nobody on the path \
         who forges that answer"
    )]
    Version {
        /// The called address.
        address: SocketAddr,
        /// The highest version that it supports.
        theirs: u32,
    },
    /// The listener has no room for more connections.
    #[error("{address}: has reached its limit of connections")]
    Busy {
        /// The called address.
        address: SocketAddr,
    },
    /// One end does not understand or accept the other's transport parameters.
    #[error("{address}: one end did not accept the other's transport parameters")]
    Parameters {
        /// The called address.
        address: SocketAddr,
    },
    /// The listener has another stream than the requested one, or none with a name.
    #[error("{address}: {}", other_stream(.requested, .own))]
    Stream {
        /// The called address.
        address: SocketAddr,
        /// The stream that this end requested.
        requested: String,
        /// The stream of the listener; empty if it has no name.
        own: String,
    },
    /// The parameters in the configuration are too long.
    #[error("parameters: {0} bytes; expected at most {MAX_PARAMETERS}")]
    ParametersLong(usize),
}

impl CallError {
    /// Whether the listener has proved itself before it said so, or nobody had to say it. Anybody
    /// on the path can cause the other errors.
    pub const fn is_proven(&self) -> bool {
        match self {
            Self::Busy { .. }
            | Self::Parameters { .. }
            | Self::Stream { .. }
            | Self::ParametersLong(_) => true,
            Self::NoAnswer { .. }
            | Self::Passphrase { .. }
            | Self::SharedKey { .. }
            | Self::StaticKey { .. }
            | Self::Refused { .. }
            | Self::Version { .. } => false,
        }
    }
}

enum State<C> {
    Calling(Box<Attempt>),
    Open(Box<Session<C>>),
    Failed,
}

/// One connection to a listener, from the first message on.
///
/// See [`super`] for the order of calls. The caller ignores datagrams of other connections.
pub struct Caller<C> {
    config: CallerConfig,
    address: SocketAddr,
    own: ConnectionId,
    opener: Opener<C>,
    randomness: Randomness,
    state: State<C>,
    failed: VecDeque<CallError>,
}

/// An event of a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallerEvent {
    /// An event of the open connection.
    Session(Event),
    /// The call failed. The last event.
    Failed(CallError),
}

impl<C: Protocol> Caller<C> {
    /// Calls the listener at `address`: poll for the first datagram afterwards.
    ///
    /// # Errors
    ///
    /// [`CallError::ParametersLong`].
    pub fn new(
        now: Time,
        address: SocketAddr,
        config: CallerConfig,
        opener: Opener<C>,
        mut randomness: Randomness,
    ) -> Result<Self, CallError> {
        if config.parameters.len() > MAX_PARAMETERS {
            return Err(CallError::ParametersLong(config.parameters.len()));
        }
        let own = randomness.connection_id();
        let attempt = Attempt::new(now, &config);
        Ok(Self {
            config,
            address,
            own,
            opener,
            randomness,
            state: State::Calling(Box::new(attempt)),
            failed: VecDeque::new(),
        })
    }

    /// The connection id in packets to this end.
    pub fn id(&self) -> ConnectionId {
        self.own
    }

    /// The open connection; `None` before the answer and after a failure.
    pub fn session(&self) -> Option<&Session<C>> {
        match &self.state {
            State::Open(session) => Some(session),
            State::Calling(_) | State::Failed => None,
        }
    }

    /// The open connection, to use its transport; `None` before the answer and after a failure.
    pub fn session_mut(&mut self) -> Option<&mut Session<C>> {
        match &mut self.state {
            State::Open(session) => Some(session),
            State::Calling(_) | State::Failed => None,
        }
    }

    /// Whether nothing more will happen.
    pub fn is_over(&self) -> bool {
        match &self.state {
            State::Calling(_) => false,
            State::Open(session) => session.closed().is_some(),
            State::Failed => true,
        }
    }

    /// Handles a datagram.
    pub fn handle_datagram(
        &mut self,
        now: Time,
        from: impl Into<Addresses>,
        ecn: Ecn,
        datagram: &mut [u8],
    ) {
        let from = from.into();
        match &mut self.state {
            State::Open(session) => match header::decode(datagram) {
                Ok(Packet::Data { header, .. }) if session.accepts(header.destination) => {
                    session.handle_datagram(now, from, ecn, datagram);
                }
                Ok(Packet::Reset(reset)) => session.on_reset(&reset),
                _ => {}
            },
            // Until the keys are there, only who was called can have something to say.
            State::Calling(_) if from.peer == self.address => self.on_handshake(now, datagram),
            State::Calling(_) | State::Failed => {}
        }
    }

    fn on_handshake(&mut self, now: Time, datagram: &[u8]) {
        let State::Calling(attempt) = &mut self.state else {
            return;
        };
        match header::decode(datagram) {
            Ok(Packet::Retry(Retry {
                destination,
                cookie,
            })) if destination == self.own => attempt.on_retry(now, cookie),
            Ok(Packet::VersionNegotiation {
                destination,
                versions,
            }) if destination == self.own && versions.iter().all(|version| version != VERSION) => {
                let theirs = versions.iter().max().unwrap_or(0);
                let address = self.address;
                self.doubt(now, CallError::Version { address, theirs });
            }
            Ok(Packet::Answer(Answer {
                destination,
                ticket,
                message,
            })) if destination == self.own && !ticket.is_empty() => {
                let min_wait = self.config.first_resend;
                attempt.on_answer(now, min_wait, ticket, message, &mut self.randomness);
            }
            Ok(Packet::Answer(answer)) if answer.destination == self.own => {
                self.doubt(now, not_accepted(&self.config.credentials, self.address));
            }
            Ok(Packet::Accept(accept)) if accept.destination == self.own => {
                // Anybody could have sent one that proves nothing.
                let Some((agreed, verdict, round_trip)) = attempt.read_accept(now, accept.message)
                else {
                    return;
                };
                let address = self.address;
                match verdict {
                    Verdict::Accepted(accepted) => {
                        self.on_accept(now, &agreed, &accepted, round_trip);
                    }
                    Verdict::Refused(Refused::Busy) => {
                        attempt.on_busy();
                        self.doubt(now, CallError::Busy { address });
                    }
                    Verdict::Refused(Refused::Parameters) => {
                        self.fail(CallError::Parameters { address });
                    }
                    Verdict::Refused(Refused::Stream { own }) => {
                        let parameters = Parameters::decode(&self.config.parameters).ok();
                        let requested = parameters.and_then(|parameters| parameters.stream_name);
                        self.fail(CallError::Stream {
                            address,
                            requested: requested.unwrap_or_default(),
                            own,
                        });
                    }
                }
            }
            _ => {}
        }
    }

    fn on_accept(
        &mut self,
        now: Time,
        agreed: &Agreed,
        accepted: &Accepted,
        round_trip: Option<Span>,
    ) {
        let protection = Protection::new(agreed.secrets(), Role::Caller, self.config.key_limits);
        let opened = (self.opener)(
            now,
            Role::Caller,
            protection.overhead(),
            &accepted.parameters,
        );
        let Ok(mut protocol) = opened else {
            let address = self.address;
            return self.fail(CallError::Parameters { address });
        };
        protocol.on_established(now, round_trip);
        let names = Names {
            role: Role::Caller,
            own: self.own,
            peer: accepted.connection,
        };
        let peer_key = match &self.config.credentials {
            CallerCredentials::Static { listener, .. } => Some(*listener),
            _ => None,
        };
        let randomness = self.randomness.split();
        let mut session = Session::new(
            now,
            names,
            self.address.into(),
            peer_key,
            protection,
            protocol,
            randomness,
        );
        session.set_reset_token(accepted.reset_token.clone());
        self.state = State::Open(Box::new(session));
    }

    fn doubt(&mut self, now: Time, error: CallError) {
        if let State::Calling(attempt) = &mut self.state
            && attempt.is_believed(now, &error)
        {
            self.fail(error);
        }
    }

    fn fail(&mut self, error: CallError) {
        self.state = State::Failed;
        self.failed.push_back(error);
    }

    /// Appends the next datagram that may leave now.
    pub fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Datagram> {
        match &mut self.state {
            State::Open(session) => session.poll_transmit(now, out),
            State::Failed => None,
            State::Calling(attempt) => {
                let start = out.len();
                let is_sent = attempt.poll(now, self.own, &self.config, &mut self.randomness, out);
                is_sent.then(|| Datagram {
                    to: self.address,
                    source: None,
                    ecn: Ecn::NotCapable,
                    length: out.len() - start,
                    leave_by: Time::MAX,
                })
            }
        }
    }

    /// When [`Self::on_timer`] is due; `Time::MAX` for never.
    pub fn next_timer(&self) -> Time {
        match &self.state {
            State::Open(session) => session.next_timer(),
            State::Failed => Time::MAX,
            State::Calling(attempt) => attempt.next_timer(),
        }
    }

    /// Handles the expiry of the timer.
    pub fn on_timer(&mut self, now: Time) {
        match &mut self.state {
            State::Open(session) => session.on_timer(now),
            State::Failed => {}
            State::Calling(attempt) => {
                if attempt.on_timer(now) {
                    let address = self.address;
                    let within = self.config.timeout;
                    let silence = CallError::NoAnswer { address, within };
                    let error = attempt.take_doubt().unwrap_or(silence);
                    self.fail(error);
                }
            }
        }
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<CallerEvent> {
        if let Some(error) = self.failed.pop_front() {
            return Some(CallerEvent::Failed(error));
        }
        self.session_mut()?.poll_event().map(CallerEvent::Session)
    }
}

fn other_stream(requested: &str, own: &str) -> String {
    match own {
        "" => format!("has no stream {requested:?}; it has no streamid"),
        own => format!("has no stream {requested:?}; its streamid is {own:?}"),
    }
}

/// What it means that the listener at `address` does not accept these credentials.
fn not_accepted(credentials: &CallerCredentials, address: SocketAddr) -> CallError {
    match credentials {
        CallerCredentials::Insecure => CallError::Refused { address },
        CallerCredentials::Passphrase(_) => CallError::Passphrase { address },
        CallerCredentials::Shared(_) => CallError::SharedKey { address },
        CallerCredentials::Static { own, listener } => CallError::StaticKey {
            address,
            own: own.public(),
            listener: *listener,
        },
    }
}
