//! The end that opens a connection.

use std::collections::VecDeque;
use std::net::SocketAddr;

use comity_transport::wire::header::{self, Answer, Initial, Packet, Retry};
use comity_transport::wire::limits::{MAX_PARAMETERS, VERSION};
use comity_units::{Span, Time};
use thiserror::Error;
use zeroize::Zeroizing;

use super::handshake::{Calling, described};
use super::protection::{Cipher, KeyLimits, Protection, Role};
use super::refusal::{NOBODY, Reason};
use super::session::{Event, Names, Session};
use super::{
    Addresses, CallerCredentials, ConnectionId, Datagram, Ecn, Opener, Pattern, Protocol,
    PublicKey, Randomness,
};

/// The time that a genuine answer may take after a refusal, which anybody on the path can forge.
const DOUBT: Span = Span::from_secs(1);
/// The number of Retries to answer at once; more wait for the timer.
const PROMPT_RETRIES: u32 = 8;

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
    /// The time after which the first message is retransmitted. Each further interval is half as
    /// long again.
    pub first_resend: Span,
    /// The longest interval between retransmissions.
    pub longest_resend: Span,
}

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
            first_resend: Span::from_millis(250),
            longest_resend: Span::from_millis(500),
        }
    }
}

/// Why no connection came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
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
    /// The listener does not accept the passphrase.
    #[error("{address}: wrong passphrase")]
    Passphrase {
        /// The called address.
        address: SocketAddr,
    },
    /// The listener does not accept this caller's key, or does not have the expected key.
    #[error(
        "{address}: refused the call; expected {own} on the listener's list, and {listener} as its key"
    )]
    StaticKey {
        /// The called address.
        address: SocketAddr,
        /// This caller's key.
        own: PublicKey,
        /// The expected key of the listener.
        listener: PublicKey,
    },
    /// The listener refuses this unprotected call.
    #[error("{address}: refused the first message, which was unprotected")]
    Refused {
        /// The called address.
        address: SocketAddr,
    },
    /// The listener requires other credentials.
    #[error(
        "{address}: was called with {ours}; expected {theirs}",
        ours = described(*ours),
        theirs = described(*theirs)
    )]
    Pattern {
        /// The called address.
        address: SocketAddr,
        /// This end's pattern.
        ours: Pattern,
        /// The listener's pattern.
        theirs: Pattern,
    },
    /// The listener speaks other versions.
    #[error("{address}: does not support protocol version {VERSION}; expected version {theirs}")]
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
    /// The parameters in the configuration are too long.
    #[error("parameters: {0} bytes; expected at most {MAX_PARAMETERS}")]
    ParametersLong(usize),
}

enum State<C> {
    Calling(Box<Handshake>),
    Open(Box<Session<C>>),
    Failed,
}

struct Handshake {
    calling: Calling,
    cookie: Vec<u8>,
    retries: u32,
    next_send: Time,
    wait: Span,
    deadline: Time,
    /// The reason in an unauthenticated packet, and when to believe it.
    doubt: Option<(CallError, Time)>,
}

/// A connection to a listener, from the first message on.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
        let calling = Calling::new(
            &config.credentials,
            own,
            config.cipher,
            &config.parameters,
            Zeroizing::new(randomness.bytes()),
        );
        let handshake = Handshake {
            calling,
            cookie: Vec::new(),
            retries: 0,
            next_send: now,
            wait: config.first_resend,
            deadline: now + config.timeout,
            doubt: None,
        };
        Ok(Self {
            config,
            address,
            own,
            opener,
            randomness,
            state: State::Calling(Box::new(handshake)),
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
            State::Open(session) => {
                let ours = matches!(
                    header::decode(datagram),
                    Ok(Packet::Data { header, .. }) if header.destination == self.own
                );
                if ours {
                    session.handle_datagram(now, from, ecn, datagram);
                }
            }
            // Before the keys are there, only the called address may answer.
            State::Calling(_) if from.peer == self.address => self.on_handshake(now, datagram),
            State::Calling(_) | State::Failed => {}
        }
    }

    fn on_handshake(&mut self, now: Time, datagram: &[u8]) {
        let State::Calling(handshake) = &mut self.state else {
            return;
        };
        match header::decode(datagram) {
            Ok(Packet::Retry(Retry {
                destination,
                cookie,
            })) if destination == self.own && cookie != handshake.cookie => {
                handshake.cookie = cookie.to_vec();
                handshake.retries += 1;
                if handshake.retries <= PROMPT_RETRIES {
                    handshake.next_send = now;
                }
            }
            Ok(Packet::VersionNegotiation {
                destination,
                versions,
            }) if destination == self.own && versions.iter().all(|version| version != VERSION) => {
                let theirs = versions.iter().max().unwrap_or(0);
                let address = self.address;
                handshake.doubt(now, CallError::Version { address, theirs });
            }
            Ok(Packet::Answer(Answer {
                destination,
                source,
                message,
            })) if destination == self.own => {
                if source != NOBODY {
                    self.on_answer(now, message);
                } else if let Some(reason) = Reason::read(message) {
                    let error = self.refused(reason);
                    if let State::Calling(handshake) = &mut self.state {
                        handshake.doubt(now, error);
                    }
                }
            }
            _ => {}
        }
    }

    fn refused(&self, reason: Reason) -> CallError {
        let address = self.address;
        match reason {
            Reason::NotAccepted => match &self.config.credentials {
                CallerCredentials::Insecure => CallError::Refused { address },
                CallerCredentials::Shared(_) => CallError::Passphrase { address },
                CallerCredentials::Static { own, listener } => CallError::StaticKey {
                    address,
                    own: own.public(),
                    listener: *listener,
                },
            },
            Reason::OtherPattern(theirs) => CallError::Pattern {
                address,
                ours: self.config.credentials.pattern(),
                theirs,
            },
            Reason::Busy => CallError::Busy { address },
            Reason::Parameters => CallError::Parameters { address },
        }
    }

    fn on_answer(&mut self, now: Time, message: &[u8]) {
        let State::Calling(handshake) = &mut self.state else {
            return;
        };
        let listener_key = match &self.config.credentials {
            CallerCredentials::Static { listener, .. } => Some(*listener),
            CallerCredentials::Insecure | CallerCredentials::Shared(_) => None,
        };
        // Anybody could have sent an invalid answer: the genuine one may be on its way.
        let Ok((listener, agreed)) = handshake.calling.on_answer(message, listener_key) else {
            return;
        };
        let protection = Protection::new(agreed.secrets, Role::Caller, self.config.key_limits);
        let opened = (self.opener)(now, Role::Caller, protection.overhead(), &agreed.parameters);
        let Ok(mut protocol) = opened else {
            let address = self.address;
            return self.fail(CallError::Parameters { address });
        };
        protocol.on_established(now);
        let names = Names {
            own: self.own,
            peer: listener,
        };
        let randomness = self.randomness.split();
        self.state = State::Open(Box::new(Session::new(
            Role::Caller,
            names,
            self.address.into(),
            agreed.peer_key,
            protection,
            protocol,
            randomness,
        )));
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
            State::Calling(handshake) => {
                if now < handshake.next_send || now >= handshake.deadline {
                    return None;
                }
                let start = out.len();
                let initial = Initial {
                    source: self.own,
                    pattern: handshake.calling.pattern(),
                    cookie: &handshake.cookie,
                    message: handshake.calling.message(),
                };
                initial
                    .encode(out)
                    .expect("cookie and message are within the limits of the format");
                handshake.next_send = now + handshake.wait;
                let longer = handshake.wait * 3 / 2;
                handshake.wait = longer.min(self.config.longest_resend);
                Some(Datagram {
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
            State::Calling(handshake) => {
                let believed = handshake.doubt.map_or(Time::MAX, |(_, until)| until);
                handshake.next_send.min(handshake.deadline).min(believed)
            }
        }
    }

    /// Handles the expiry of the timer.
    pub fn on_timer(&mut self, now: Time) {
        match &mut self.state {
            State::Open(session) => session.on_timer(now),
            State::Failed => {}
            State::Calling(handshake) => {
                let late = handshake.deadline <= now;
                match handshake.doubt {
                    Some((error, until)) if until <= now || late => self.fail(error),
                    None if late => {
                        let address = self.address;
                        let within = self.config.timeout;
                        self.fail(CallError::NoAnswer { address, within });
                    }
                    _ => {}
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

impl Handshake {
    /// Remembers the first reason of a refusal. A busy listener may become free, so the caller then
    /// waits until its time limit.
    fn doubt(&mut self, now: Time, error: CallError) {
        let until = match error {
            CallError::Busy { .. } => self.deadline,
            _ => now + DOUBT,
        };
        match &self.doubt {
            Some((CallError::Busy { .. }, _)) | None => self.doubt = Some((error, until)),
            Some(_) => {}
        }
    }
}
