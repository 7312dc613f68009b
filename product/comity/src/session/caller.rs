//! The end that opens a connection.

use std::collections::VecDeque;
use std::net::SocketAddr;

use comity_transport::wire::header::{self, Answer, Packet, Retry};
use comity_transport::wire::limits::{MAX_PARAMETERS, VERSION};
use comity_transport::wire::parameters::Parameters;
use comity_units::{Span, Time};

use super::attempt::Attempt;
use super::call::{CallError, CallerConfig};
use super::handshake::{Accepted, Agreed, Verdict};
use super::protection::{Protection, Role};
use super::refusal::Refused;
use super::session::{Event, Names, Session};
use super::{
    Addresses, CallerCredentials, ConnectionId, Datagram, Ecn, Opener, Protocol, Randomness,
};

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

    /// Whether the call has failed or its connection is closed.
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
            // Before the keys are known, only the called address can send something useful.
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
                // Ignores an invalid message, since anybody could have sent it.
                let read = attempt.read_accept(now, accept.message, &mut self.randomness);
                let Some((agreed, verdict, round_trip)) = read else {
                    return;
                };
                let address = self.address;
                match verdict {
                    Verdict::Accepted(accepted) => {
                        self.on_accept(now, &agreed, &accepted, round_trip);
                    }
                    Verdict::Refused(Refused::Busy) => {
                        attempt.on_busy(&agreed, CallError::Busy { address });
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
        let secrets = agreed.secrets();
        if let (Some(log), Some(secrets)) = (&self.config.key_log, &secrets) {
            secrets.log(log, self.own, accepted.connection);
        }
        let protection = Protection::new(secrets, Role::Caller, self.config.key_limits);
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

/// The error of a call whose credentials the listener at `address` does not accept.
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
