//! The end that opens a connection.

use std::collections::VecDeque;
use std::net::SocketAddr;

use comity_transport::wire::header::{self, Answer, Confirm, Initial, Packet, Retry};
use comity_transport::wire::limits::{MAX_PARAMETERS, VERSION};
use comity_transport::wire::parameters::Parameters;
use comity_units::{Span, Time};
use thiserror::Error;
use zeroize::Zeroizing;

use super::cookie::SLOT;
use super::exchange::Channel;
use super::handshake::{Accepted, Agreed, Calling, Verdict};
use super::protection::{Cipher, KeyLimits, Protection, Role};
use super::refusal::Refused;
use super::session::{Event, Names, Session};
use super::{
    Addresses, CallerCredentials, ConnectionId, Datagram, Ecn, Opener, Protocol, PublicKey,
    Randomness,
};

/// A refusal, which anybody on the path can forge, is believed if it comes again after this time.
const DOUBT: Span = Span::from_secs(1);
/// The number of Retries to answer at once; more wait for the timer.
const PROMPT_RETRIES: u32 = 8;
/// The longest wait for the answer to a message for the first time: a path with longer round trips
/// has some packets twice.
const LONGEST_FIRST_WAIT: Span = Span::from_secs(1);
/// Answers that are taken for genuine until one of them proves to be. With a passphrase, message 2
/// proves nothing yet: whoever made another one up must not keep the genuine one out.
const MAX_ANSWERS: usize = 4;

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
    /// The listener has another passphrase, or none.
    #[error("{address}: wrong passphrase, or the listener expects a key or no protection")]
    Passphrase {
        /// The called address.
        address: SocketAddr,
    },
    /// The listener has another key, or none.
    #[error("{address}: wrong key, or the listener expects a passphrase or no protection")]
    SharedKey {
        /// Who was called.
        address: SocketAddr,
    },
    /// The listener does not accept this caller's key, or has another key than the one it is known
    /// by.
    #[error(
        "{address}: refused the call; expected {own} on the listener's list, {listener} as its key, and \
         a listener with static keys"
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
        "{address}: refused the call; expected a passphrase or a key, because the listener has one"
    )]
    Refused {
        /// The called address.
        address: SocketAddr,
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

enum State<C> {
    Calling(Box<Handshake>),
    Open(Box<Session<C>>),
    Failed,
}

struct Handshake {
    cookie: Vec<u8>,
    /// The key exchange for this cookie; none before it is sent for the first time.
    calling: Option<Calling>,
    answers: Vec<Candidate>,
    retries: u32,
    /// When the first Initial without a cookie left.
    begun_at: Time,
    next_send: Time,
    /// The departures of the message that awaits its answer.
    departures: Departures,
    /// The first wait for the answer to a message.
    first_wait: Span,
    wait: Span,
    /// The first wait if the Retry answered the first Initial; `None` once that is decided.
    longer_wait: Option<Span>,
    deadline: Time,
    /// When all begins anew, because the cookie and the tickets are too old by then.
    stale_at: Time,
    /// What an unauthenticated packet says is wrong, and since when.
    doubt: Option<(CallError, Time)>,
}

/// The departures of one message.
#[derive(Clone, Copy, Debug)]
enum Departures {
    None,
    One(Time),
    /// The answer may be to any of them.
    Several,
}

impl Departures {
    fn on_sent(&mut self, now: Time) {
        *self = match self {
            Self::None => Self::One(now),
            _ => Self::Several,
        };
    }

    /// The round trip that the answer ends, if it is certain which packet began it (Karn's rule).
    fn round_trip(self, now: Time) -> Option<Span> {
        match self {
            Self::One(sent_at) => Some(now.saturating_since(sent_at)),
            _ => None,
        }
    }
}

/// An Answer that may be genuine.
struct Candidate {
    ticket: Vec<u8>,
    /// Message 2.
    message: Vec<u8>,
    agreed: Agreed,
    /// Whether its Confirm packet has to leave.
    is_due: bool,
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
        let handshake = Handshake {
            cookie: Vec::new(),
            calling: None,
            answers: Vec::new(),
            retries: 0,
            begun_at: now,
            next_send: now,
            departures: Departures::None,
            first_wait: config.first_resend,
            wait: config.first_resend,
            longer_wait: None,
            deadline: now + config.timeout,
            stale_at: Time::MAX,
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
        let State::Calling(handshake) = &mut self.state else {
            return;
        };
        match header::decode(datagram) {
            Ok(Packet::Retry(Retry {
                destination,
                cookie,
            })) if destination == self.own => {
                if cookie == handshake.cookie {
                    handshake.on_same_retry(now);
                } else {
                    handshake.on_retry(now, cookie);
                }
            }
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
                handshake.on_answer(now, min_wait, ticket, message);
            }
            Ok(Packet::Answer(answer)) if answer.destination == self.own => {
                self.doubt(now, not_accepted(&self.config.credentials, self.address));
            }
            Ok(Packet::Accept(accept)) if accept.destination == self.own => {
                let genuine = handshake.answers.iter().find_map(|answer| {
                    let verdict = answer.agreed.read_accept(accept.message)?;
                    Some((answer.agreed.clone(), verdict))
                });
                // Anybody could have sent one that proves nothing.
                let Some((agreed, verdict)) = genuine else {
                    return;
                };
                let round_trip = handshake.departures.round_trip(now);
                let address = self.address;
                match verdict {
                    Verdict::Accepted(accepted) => {
                        self.on_accept(now, &agreed, &accepted, round_trip);
                    }
                    Verdict::Refused(Refused::Busy) => {
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
        if let State::Calling(handshake) = &mut self.state
            && handshake.is_believed(now, &error)
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
            State::Calling(handshake) => {
                if now < handshake.next_send || now >= handshake.deadline {
                    return None;
                }
                let start = out.len();
                handshake.write(self.own, &self.config, &mut self.randomness, out);
                handshake.departures.on_sent(now);
                if !handshake.answers.iter().any(|answer| answer.is_due) {
                    handshake.next_send = now + handshake.wait;
                    let longest = self.config.longest_resend.max(handshake.wait);
                    handshake.wait = (handshake.wait * 3 / 2).min(longest);
                    for answer in &mut handshake.answers {
                        answer.is_due = true;
                    }
                }
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
                let first = handshake.next_send.min(handshake.stale_at);
                first.min(handshake.deadline)
            }
        }
    }

    /// Handles the expiry of the timer.
    pub fn on_timer(&mut self, now: Time) {
        match &mut self.state {
            State::Open(session) => session.on_timer(now),
            State::Failed => {}
            State::Calling(handshake) => {
                if handshake.stale_at <= now {
                    handshake.begin_anew(now);
                }
                if handshake.deadline <= now {
                    let address = self.address;
                    let within = self.config.timeout;
                    let silence = CallError::NoAnswer { address, within };
                    let error = handshake.doubt.take().map_or(silence, |(error, _)| error);
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

/// The wait for an answer on a path of this round trip: a message that is retransmitted before its
/// answer can arrive costs the listener another key exchange.
fn wait_for(round_trip: Span) -> Span {
    (round_trip * 5 / 4).min(LONGEST_FIRST_WAIT)
}

impl Handshake {
    fn on_retry(&mut self, now: Time, cookie: &[u8]) {
        let is_first = self.cookie.is_empty();
        self.cookie = cookie.to_vec();
        self.calling = None;
        self.answers.clear();
        self.stale_at = now + SLOT;
        self.retries += 1;
        if self.retries <= PROMPT_RETRIES {
            self.next_send = now;
        }
        // A later Retry may answer an Initial with or without a cookie.
        if is_first {
            let known = self.departures.round_trip(now).map(wait_for);
            let longest = wait_for(now.saturating_since(self.begun_at));
            self.longer_wait = known.is_none().then_some(longest);
            // The Retry to the second Initial would follow within the time between the two.
            self.first_wait = self
                .first_wait
                .max(known.unwrap_or(wait_for(self.first_wait)));
        }
        self.on_next_message();
    }

    /// Another Initial was answered too. So the first one was probably not lost, and the Retry
    /// answered it: the path is long.
    fn on_same_retry(&mut self, now: Time) {
        if let Departures::One(sent_at) = self.departures
            && self.answers.is_empty()
            // The network may have duplicated the first Retry.
            && now.saturating_since(sent_at) >= MIN_RESEND / 2
            && let Some(wait) = self.longer_wait.take()
        {
            self.first_wait = self.first_wait.max(wait);
            self.wait = self.wait.max(self.first_wait);
            self.next_send = self.next_send.max(sent_at + self.first_wait);
        }
    }

    /// Another message awaits its answer.
    fn on_next_message(&mut self) {
        self.departures = Departures::None;
        self.wait = self.first_wait;
    }

    fn begin_anew(&mut self, now: Time) {
        self.cookie.clear();
        self.calling = None;
        self.answers.clear();
        self.stale_at = Time::MAX;
        self.begun_at = now;
        self.next_send = now;
        self.on_next_message();
    }

    fn on_answer(&mut self, now: Time, min_wait: Span, ticket: &[u8], message: &[u8]) {
        let known = self.answers.iter().find(|known| known.message == message);
        if self.answers.len() >= MAX_ANSWERS || known.is_some_and(|known| known.ticket == ticket) {
            return;
        }
        let read = match known {
            // Nothing protects the ticket: the genuine one may come behind a changed one.
            Some(known) => Ok(known.agreed.clone()),
            None => match &mut self.calling {
                Some(calling) => calling.on_answer(message),
                None => return,
            },
        };
        // Anybody could have sent an answer that proves nothing: the genuine one may be under way.
        let Ok(agreed) = read else {
            return;
        };
        let is_first = self.answers.is_empty();
        if !is_first && agreed.shared.is_none() {
            // Nothing could tell which one an Accept is for.
            return;
        }
        // Another one has its turn if the first is not accepted in time.
        self.answers.push(Candidate {
            ticket: ticket.to_vec(),
            message: message.to_vec(),
            agreed,
            is_due: is_first,
        });
        if is_first {
            self.next_send = now;
            if let Some(round_trip) = self.departures.round_trip(now) {
                self.first_wait = wait_for(round_trip).max(min_wait);
            }
            self.on_next_message();
        }
    }

    /// Appends the next packet: a Confirm if there is an Answer, else an Initial.
    fn write(
        &mut self,
        own: ConnectionId,
        config: &CallerConfig,
        randomness: &mut Randomness,
        out: &mut Vec<u8>,
    ) {
        const FITS: &str = "cookies, tickets and messages are within the limits of the format";
        if let Some(answer) = self.answers.iter_mut().find(|answer| answer.is_due) {
            answer.is_due = false;
            let confirm = Confirm {
                ticket: &answer.ticket,
                message: &answer.agreed.confirm(&config.parameters),
            };
            return confirm.encode(out).expect(FITS);
        }
        let message = if self.cookie.is_empty() {
            &[]
        } else {
            let channel = Channel {
                caller: own,
                cookie: &self.cookie,
            };
            self.calling
                .get_or_insert_with(|| {
                    let random = Zeroizing::new(randomness.bytes());
                    Calling::new(&config.credentials, channel, config.cipher, random)
                })
                .message()
        };
        let initial = Initial {
            source: own,
            pattern: config.credentials.pattern(),
            cookie: &self.cookie,
            message,
        };
        initial.encode(out).expect(FITS);
    }

    /// Remembers why somebody refused the call, and whether that is to be believed: the same reason
    /// came before the last [`DOUBT`]. Being busy passes, so that is waited for to the end.
    fn is_believed(&mut self, now: Time, error: &CallError) -> bool {
        let is_busy = |error: &CallError| matches!(error, CallError::Busy { .. });
        match &self.doubt {
            Some((known, since)) if known == error => !is_busy(error) && *since + DOUBT <= now,
            Some((known, _)) if is_busy(error) && !is_busy(known) => false,
            _ => {
                self.doubt = Some((error.clone(), now));
                false
            }
        }
    }
}
