//! The connections that an endpoint opens: by id, with a queue of connections to serve and an
//! ordered list of timers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};

use comity_units::{Span, Time};

use super::calls::Waiting;
use super::connection_shared::SharedTransport;
use super::routes::{self, Routes};
use crate::session::{Caller, ConnectionId, IdChange, IdMap, LaterIds, change_id};

/// How long after a network error a packet from the called address can refute it. Then the error is
/// final. Anybody on the path can forge such an error.
const COMPLAINT: Span = Span::from_secs(1);

pub(super) struct Call {
    pub(super) caller: Caller<SharedTransport>,
    pub(super) address: SocketAddr,
    pub(super) waiting: Option<Waiting>,
    /// The source address of its packets, as last reported by the system.
    pub(super) source: Option<IpAddr>,
    /// The time at which the network error becomes final, and the error. A packet from the called
    /// address refutes it.
    complaint: Option<(Time, io::Error)>,
    timer: Time,
    is_ready: bool,
}

impl Call {
    /// Discards the network error, since a packet from the called address arrived.
    pub(super) fn on_received(&mut self) {
        self.complaint = None;
    }

    /// The network error, if it is final.
    pub(super) fn believed(&mut self, now: Time) -> Option<io::Error> {
        let complaint = self.complaint.take_if(|(at, _)| *at <= now);
        complaint.map(|(_, reason)| reason)
    }

    /// The network error, at the end of the call.
    pub(super) fn take_complaint(&mut self) -> Option<io::Error> {
        self.complaint.take().map(|(_, reason)| reason)
    }
}

/// All calls, answered or not.
#[derive(Default)]
pub(super) struct Callers {
    /// Boxed: entries are large, and a map of them by value would waste memory and move them.
    calls: IdMap<Box<Call>>,
    /// The calls by their later ids: at most three for each.
    later_ids: LaterIds,
    /// The open calls by the listener's address and its id of the connection.
    by_peer: BTreeMap<(SocketAddr, ConnectionId), ConnectionId>,
    timers: BTreeSet<(Time, ConnectionId)>,
    ready: VecDeque<ConnectionId>,
}

impl Callers {
    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    pub(super) fn contains(&self, id: ConnectionId) -> bool {
        self.calls.contains_key(&id)
    }

    pub(super) fn insert(
        &mut self,
        caller: Caller<SharedTransport>,
        address: SocketAddr,
        waiting: Waiting,
        source: Option<IpAddr>,
    ) {
        let id = caller.id();
        self.calls.insert(
            id,
            Box::new(Call {
                caller,
                address,
                waiting: Some(waiting),
                source,
                complaint: None,
                timer: Time::MAX,
                is_ready: false,
            }),
        );
        self.make_ready(id);
    }

    pub(super) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Call> {
        self.calls.get_mut(&id).map(Box::as_mut)
    }

    /// The call whose packets have this id.
    pub(super) fn receiver(&self, id: ConnectionId) -> Option<ConnectionId> {
        match self.calls.contains_key(&id) {
            true => Some(id),
            false => self.later_ids.get(&id).copied(),
        }
    }

    /// Updates the ids of a call after a datagram arrived for it.
    pub(super) fn learn_ids(&mut self, id: ConnectionId) {
        let call = self.calls.get_mut(&id);
        let Some(session) = call.and_then(|call| call.caller.session_mut()) else {
            return;
        };
        while let Some(change) = session.poll_id_change() {
            change_id(&mut self.later_ids, id, change);
        }
    }

    /// Changes the ids of the calls whose source address has changed, so that the ids do not link
    /// the two addresses for an observer.
    pub(super) fn follow(&mut self, routes: &Routes) {
        if self.calls.is_empty() || !routes.have_changed() {
            return;
        }
        // Each look-up takes four system calls, and many connections go to one address.
        let mut sources = BTreeMap::new();
        for call in self.calls.values_mut() {
            let address = call.address;
            let source = *sources
                .entry(address)
                .or_insert_with(|| routes::source(address));
            if source.is_none() || source == call.source {
                continue;
            }
            let had_one = call.source.is_some();
            call.source = source;
            if let Some(session) = call.caller.session_mut()
                && had_one
            {
                session.on_moved();
            }
        }
    }

    /// Records the listener's id of a connection that has opened.
    pub(super) fn on_open(&mut self, id: ConnectionId) {
        if let Some(call) = self.calls.get(&id)
            && let Some(session) = call.caller.session()
        {
            self.by_peer.insert((call.address, session.peer_id()), id);
        }
    }

    /// The connection to this address whose packets have the id `peer`. Anybody can cause this
    /// look-up with a forged Reset.
    pub(super) fn to_peer(&self, address: SocketAddr, peer: ConnectionId) -> Option<ConnectionId> {
        self.by_peer.get(&(address, peer)).copied()
    }

    pub(super) fn make_ready(&mut self, id: ConnectionId) {
        if let Some(call) = self.calls.get_mut(&id)
            && !call.is_ready
        {
            call.is_ready = true;
            self.ready.push_back(id);
        }
    }

    pub(super) fn next_ready(&mut self) -> Option<ConnectionId> {
        while let Some(id) = self.ready.pop_front() {
            if let Some(call) = self.calls.get_mut(&id) {
                call.is_ready = false;
                return Some(id);
            }
        }
        None
    }

    pub(super) fn is_busy(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Arms the timer of a served call, and forgets a call that is over. Returns whether the call
    /// is over.
    pub(super) fn settle(&mut self, id: ConnectionId) -> bool {
        let Some(call) = self.calls.get_mut(&id) else {
            return true;
        };
        let is_over = call.caller.is_over();
        let timer = if is_over {
            Time::MAX
        } else {
            let believed_at = call.complaint.as_ref().map_or(Time::MAX, |&(at, _)| at);
            call.caller.next_timer().min(believed_at)
        };
        if timer != call.timer {
            self.timers.remove(&(call.timer, id));
            if !timer.is_never() {
                self.timers.insert((timer, id));
            }
            call.timer = timer;
        }
        if is_over {
            self.forget(id);
        }
        is_over
    }

    pub(super) fn next_timer(&self) -> Time {
        self.timers.first().map_or(Time::MAX, |&(timer, _)| timer)
    }

    pub(super) fn on_timer(&mut self, now: Time) {
        while let Some(&(timer, id)) = self.timers.first()
            && timer <= now
        {
            self.timers.remove(&(timer, id));
            if let Some(call) = self.calls.get_mut(&id) {
                call.timer = Time::MAX;
                if call.caller.next_timer() <= now {
                    call.caller.on_timer(now);
                }
            }
            self.make_ready(id);
        }
    }

    /// Handles the system's failure to send to this address.
    pub(super) fn on_unsent(&mut self, now: Time, to: SocketAddr, reason: &io::Error) {
        let about = { self.calls.iter() }.filter(|(_, call)| call.address == to);
        let about = about.map(|(id, _)| *id).collect();
        self.complain(now, about, reason);
    }

    /// Handles an error that a host reports. It concerns the waiting calls to that host. If there
    /// are none, the host may be a router on the path: the error then concerns the only waiting
    /// call. Visits all calls, which is acceptable for rare events.
    pub(super) fn on_complaint(&mut self, now: Time, complainer: IpAddr, reason: &io::Error) {
        let all = || self.calls.iter().filter(|(_, call)| call.waiting.is_some());
        let of_host = |call: &Call| call.address.ip().to_canonical() == complainer.to_canonical();
        let mut about: Vec<_> = { all() }
            .filter(|(_, call)| of_host(call))
            .map(|(id, _)| *id)
            .collect();
        if about.is_empty() && all().count() == 1 {
            about.extend(all().map(|(id, _)| *id));
        }
        self.complain(now, about, reason);
    }

    fn complain(&mut self, now: Time, about: Vec<ConnectionId>, reason: &io::Error) {
        for id in about {
            if let Some(call) = self.calls.get_mut(&id)
                && call.waiting.is_some()
            {
                call.complaint
                    .get_or_insert_with(|| (now + COMPLAINT, again(reason)));
                self.make_ready(id);
            }
        }
    }

    fn forget(&mut self, id: ConnectionId) -> Option<Box<Call>> {
        let mut call = self.calls.swap_remove(&id)?;
        if let Some(session) = call.caller.session_mut() {
            for later in session.later_ids() {
                change_id(&mut self.later_ids, id, IdChange::Remove(later));
            }
            let peer = (call.address, session.peer_id());
            if self.by_peer.get(&peer) == Some(&id) {
                self.by_peer.remove(&peer);
            }
        }
        Some(call)
    }

    /// Forgets a call and its timer.
    pub(super) fn remove(&mut self, id: ConnectionId) -> Option<Call> {
        let call = self.forget(id)?;
        self.timers.remove(&(call.timer, id));
        Some(*call)
    }
}

/// A copy of the error.
fn again(reason: &io::Error) -> io::Error {
    match reason.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => reason.kind().into(),
    }
}
