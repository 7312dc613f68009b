//! How a listener admits callers: Initial and Confirm packets, and the limit of connections.

use std::net::SocketAddr;
use std::sync::Arc;

use comity_transport::wire::header::{self, Accept, Answer, Confirm, Initial};
use comity_transport::wire::limits::{MAX_TICKET, MIN_INITIAL, TAG};
use comity_units::Time;
use ring::aead::NONCE_LEN;
use zeroize::Zeroizing;

use super::{Entry, HalfOpen, Identity, Listener, ListenerEvent, RefusedCaller, make_ready};
use crate::session::call::MIN_RESEND;
use crate::session::cookie::SLOT;
use crate::session::exchange::Channel;
use crate::session::handshake::{self, Accepted, Refusal, Verdict};
use crate::session::ids::change_id;
use crate::session::protection::{Protection, Role};
use crate::session::protocol::BadParameters;
use crate::session::refusal::{NOT_ACCEPTED, Refused};
use crate::session::session::{Names, Session};
use crate::session::ticket::Ticket;
use crate::session::{Addresses, ConnectionId, ListenerCredentials, Protocol};

/// The maximum number of a caller's connections that get a challenge when it calls and there is no
/// room. This costs less than the key exchange of the call.
const MAX_CHALLENGED: usize = 64;

/// The length of an Accept packet that names no stream: kind, id, nonce, status and tag.
const REFUSAL: usize = 1 + 8 + NONCE_LEN + 1 + TAG;
/// The bytes of an Initial packet beyond those of the longest Answer: kind, version, id, length of
/// the ticket, ticket, and a message 2 of at most 64 bytes. A ticket shows that these came.
const UNANSWERED: usize = MIN_INITIAL - (1 + 4 + 8 + 1 + MAX_TICKET + 64);

/// The room of another connection.
enum Room {
    Free,
    /// This one has to end, because its caller has more than its share.
    InsteadOf(ConnectionId),
}

impl<C: Protocol> Listener<C> {
    pub(super) fn on_initial(&mut self, now: Time, addresses: Addresses, initial: &Initial<'_>) {
        if !self.answers {
            self.statistics.unknown += 1;
            return;
        }
        let from = addresses.peer;
        let caller = initial.source;
        if !self.cookies.accepts(now, from, caller, initial.cookie) {
            let cookie = self.cookies.make(now, from, caller, &mut self.randomness);
            let retry = header::Retry {
                destination: caller,
                cookie: &cookie,
            };
            let mut reply = Vec::new();
            retry
                .encode(&mut reply)
                .expect("cookies are within the limits of the format");
            self.statistics.retries += u64::from(self.reply(addresses, reply));
            return;
        }
        if !self.budget.take(now, from) {
            self.statistics.deferred += 1;
            return;
        }
        match self.answer(now, from, initial) {
            Ok(answer) => self.statistics.answers += u64::from(self.reply(addresses, answer)),
            // The caller has proved nothing and made no guess: it has cost only the granted key
            // exchange.
            Err(why) => {
                self.report_refused(from, why);
                self.refuse(addresses, caller);
            }
        }
    }

    /// Answers message 1. The listener keeps no state.
    fn answer(
        &mut self,
        now: Time,
        from: SocketAddr,
        initial: &Initial<'_>,
    ) -> Result<Vec<u8>, RefusedCaller> {
        if initial.pattern != self.config.credentials.pattern() {
            return Err(RefusedCaller::Pattern(initial.pattern));
        }
        let channel = Channel {
            caller: initial.source,
            cookie: initial.cookie,
        };
        let answered = handshake::answer(
            &self.config.credentials,
            channel,
            self.config.cipher,
            initial.message,
            Zeroizing::new(self.randomness.bytes()),
        )
        .map_err(|refusal| match refusal {
            Refusal::Unproven => RefusedCaller::Unproven,
            Refusal::UnknownKey(key) => RefusedCaller::UnknownKey(key),
            Refusal::Malformed => RefusedCaller::Malformed,
            Refusal::Downgrade => RefusedCaller::Downgrade,
        })?;
        let ticket = Ticket {
            caller: initial.source,
            own: self.randomness.connection_id(),
            agreed: answered.agreed,
            peer_key: answered.peer_key,
            made_at: now,
        };
        let ticket = self.tickets.seal(now, from, &ticket, &mut self.randomness);
        Ok(answer(initial.source, &ticket, &answered.message))
    }

    /// Refuses a caller that has not proved itself.
    fn refuse(&mut self, addresses: Addresses, caller: ConnectionId) {
        self.reply(addresses, answer(caller, &[], &NOT_ACCEPTED));
    }

    fn report_refused(&mut self, from: SocketAddr, why: RefusedCaller) {
        self.statistics.refused += 1;
        self.push_event(ListenerEvent::Refused { from, why });
    }

    /// Handles a Confirm packet of this length. Until the connection is open, the listener sends no
    /// more bytes than came: the packet may be a replay with a false address.
    pub(super) fn on_confirm(
        &mut self,
        now: Time,
        addresses: Addresses,
        confirm: &Confirm<'_>,
        length: usize,
    ) {
        let from = addresses.peer;
        let Some(ticket) = self.tickets.open(now, from, confirm.ticket) else {
            self.statistics.unknown += 1;
            return;
        };
        if let Some(entry) = self.sessions.get_mut(&ticket.own) {
            // The caller has not received the Accept packet, or this packet is a late duplicate.
            if let Some(half_open) = &mut entry.half_open {
                half_open.credit += length;
                if let Some(left) = half_open.credit.checked_sub(half_open.accept.len()) {
                    half_open.credit = left;
                    let accept = half_open.accept.clone();
                    self.reply(addresses, accept);
                }
            }
            return;
        }
        if !self.answers || self.spent.contains(ticket.own) {
            self.statistics.unknown += 1;
            return;
        }
        // A ticket allows one guess, however many Confirm packets carry it. So a forged one that
        // arrives first does not exclude the genuine one.
        let has_failed = self.failed.contains(ticket.own);
        let is_guess = matches!(self.config.credentials, ListenerCredentials::Passphrase(_));
        if is_guess && !has_failed && !self.budget.allows_proof(now, from, ticket.made_at) {
            self.statistics.deferred += 1;
            return;
        }
        let Some(parameters) = ticket.agreed.read_confirm(confirm.message) else {
            if !has_failed {
                self.failed.insert(ticket.own);
                if is_guess {
                    self.budget.on_failure(now, from, ticket.made_at);
                }
                self.report_refused(from, RefusedCaller::Unproven);
            }
            return self.refuse(addresses, ticket.caller);
        };
        if has_failed {
            self.failed.remove(ticket.own);
            if is_guess {
                self.budget.on_redeemed(now, from);
            }
        }
        let verdict = match self.open(now, addresses, &ticket, &parameters) {
            Ok(()) => Verdict::Accepted(Accepted {
                connection: ticket.own,
                reset_token: self.resets.token(ticket.own),
                parameters: self.config.parameters.clone(),
            }),
            Err(why) => {
                let refused = match &why {
                    RefusedCaller::Busy => Refused::Busy,
                    RefusedCaller::Stream { own, .. } => Refused::Stream {
                        own: shortened(own, length.saturating_sub(REFUSAL)),
                    },
                    _ => Refused::Parameters,
                };
                self.report_refused(from, why);
                Verdict::Refused(refused)
            }
        };
        let message = ticket.agreed.accept(&verdict, self.randomness.bytes());
        let accept = accept(ticket.caller, &message);
        if let Some(entry) = self.sessions.get_mut(&ticket.own) {
            let until = now + self.config.half_open_for;
            self.half_open.insert((until, ticket.own));
            entry.half_open = Some(HalfOpen {
                accept: accept.clone(),
                until,
                credit: (UNANSWERED + length).saturating_sub(accept.len()),
            });
        }
        self.reply(addresses, accept);
    }

    /// Opens the connection of a caller that has proved itself.
    fn open(
        &mut self,
        now: Time,
        addresses: Addresses,
        ticket: &Ticket,
        parameters: &[u8],
    ) -> Result<(), RefusedCaller> {
        let identity = match ticket.peer_key {
            Some(key) => Identity::Key(key),
            None => Identity::Host(addresses.peer.ip(), parameters.to_vec()),
        };
        let identity = Arc::new(identity);
        let room = self.room(now, &identity).ok_or(RefusedCaller::Busy)?;
        let config = &self.config;
        let secrets = ticket.agreed.secrets();
        if let (Some(log), Some(secrets)) = (&config.key_log, &secrets) {
            secrets.log(log, ticket.caller, ticket.own);
        }
        let protection = Protection::new(secrets, Role::Listener, config.key_limits);
        let protocol = (self.opener)(now, Role::Listener, protection.overhead(), parameters)
            .map_err(|error| match error {
                BadParameters::Unfit => RefusedCaller::Parameters,
                BadParameters::Stream { requested, own } => {
                    RefusedCaller::Stream { requested, own }
                }
            })?;
        if let Room::InsteadOf(id) = room
            && let Some(entry) = self.sessions.get_mut(&id)
        {
            entry.session.displace();
            make_ready(&mut self.ready, id, entry);
        }
        let names = Names {
            role: Role::Listener,
            own: ticket.own,
            peer: ticket.caller,
        };
        let randomness = self.randomness.split();
        let mut session = Session::new(
            now,
            names,
            addresses,
            ticket.peer_key,
            protection,
            protocol,
            randomness,
        );
        let round_trip = now.saturating_since(ticket.made_at);
        session.set_round_trip((round_trip < MIN_RESEND).then_some(round_trip));
        while let Some(change) = session.poll_id_change() {
            change_id(&mut self.later_ids, ticket.own, change);
        }
        self.callers.insert(identity.clone(), ticket.own);
        self.sessions.insert(
            ticket.own,
            Box::new(Entry {
                session,
                half_open: None,
                ticket_until: now + SLOT + SLOT,
                identity,
                timer: Time::MAX,
                is_ready: false,
            }),
        );
        Ok(())
    }

    /// The room for a caller; `None` if there is none. Then the other connections of the caller get
    /// a challenge. A connection that does not answer is replaced, since the caller was restarted.
    fn room(&mut self, now: Time, identity: &Arc<Identity>) -> Option<Room> {
        let most = self.config.max_connections.min(self.config.max_served);
        // A closed connection stays in the ready queue until it is settled.
        let is_over = |id: &&ConnectionId| {
            let entry = self.sessions.get(*id);
            entry.is_some_and(|entry| entry.session.closed().is_some())
        };
        if self.sessions.len() < most
            || self.sessions.len() - self.ready.iter().filter(is_over).count() < most
        {
            return Some(Room::Free);
        }
        let any = self.randomness.connection_id();
        let displaced = self.callers.displaceable(identity, any);
        let before: Vec<_> = { self.callers.connections(identity, any) }
            .take(MAX_CHALLENGED)
            .collect();
        for id in before {
            let Some(entry) = self.sessions.get_mut(&id) else {
                continue;
            };
            if entry.session.closed().is_some() {
                continue;
            }
            let is_gone = entry.session.replace(now);
            make_ready(&mut self.ready, id, entry);
            if is_gone {
                return Some(Room::Free);
            }
        }
        displaced.map(Room::InsteadOf)
    }
}

/// The first characters of a name, in at most `length` bytes.
fn shortened(name: &str, length: usize) -> String {
    let mut name = name.to_owned();
    while name.len() > length {
        name.pop();
    }
    name
}

fn answer(destination: ConnectionId, ticket: &[u8], message: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Answer {
        destination,
        ticket,
        message,
    }
    .encode(&mut out)
    .expect("tickets and messages without parameters are within the limits of the format");
    out
}

fn accept(destination: ConnectionId, message: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Accept {
        destination,
        message,
    }
    .encode(&mut out)
    .expect("messages with parameters of the allowed length are within the limits of the format");
    out
}
