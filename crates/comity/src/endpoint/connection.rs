//! A connection, as the application holds it.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use comity_transport::timeline::{MAX_STREAMS, Outgoing};
use comity_transport::wire::CloseCode;
use comity_units::{Rate, Span, Time};
use tokio::sync::{broadcast, watch};

use super::Handle;
use super::shared::{Advice, Command, ConnectionShared, Outbound, lock};
use crate::error::{CloseReason, SendError, StreamError, TrySendError};
use crate::section::{Item, Outcome, Reason, Section, SectionId, StreamId};
use crate::session::{Cipher, PublicKey};
use crate::statistics::Statistics;

/// One connection to a peer: sections in both directions, over encrypted datagrams.
///
/// Clones are handles to the same connection, so that one task may send while another receives.
/// Dropping the last one closes the connection with [`CloseCode::DONE`] at once: call
/// [`finish`](Self::finish) to have everything delivered first.
#[derive(Clone, Debug)]
pub struct Connection(Arc<Inner>);

/// What all clones share; dropped with the last one.
#[derive(Debug)]
struct Inner {
    shared: Arc<ConnectionShared>,
    /// Keeps the endpoint alive.
    handle: Arc<Handle>,
}

/// What happens to a connection while it is open.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// What became of a section that was sent.
    Outcome(Outcome),
    /// The peer has moved to another address, and proved it.
    PathChanged {
        /// The old address.
        from: SocketAddr,
        /// The new one.
        to: SocketAddr,
    },
    /// It was found out how large datagrams may be on the path, and that is not what it was: at
    /// first, as large as both ends take.
    PathSize(PathSize),
    /// So many events were not kept, because nobody asked for so long.
    Missed(u64),
    /// The connection is closed. The last event.
    Closed(CloseReason),
}

/// How large datagrams may be on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathSize {
    /// The bytes of a full datagram from now on, without the headers of UDP and IP.
    pub datagram: u32,
    /// As large as both ends take.
    pub most: u32,
}

/// What a path is found to carry, as it changes.
#[derive(Debug)]
pub struct PathSizes(watch::Receiver<Option<PathSize>>);

impl PathSizes {
    /// Waits for the next finding; `None` when the connection is forgotten. That the path carries
    /// what both ends take is none, but after a narrower one.
    pub async fn next(&mut self) -> Option<PathSize> {
        loop {
            self.0.changed().await.ok()?;
            let size = *self.0.borrow_and_update();
            if size.is_some() {
                return size;
            }
        }
    }
}

/// The events of a connection, from the call of [`Connection::events`] on.
#[derive(Debug)]
pub struct Events {
    receiver: broadcast::Receiver<Event>,
    is_over: bool,
}

impl Events {
    /// The next event; `None` after the last one.
    pub async fn next(&mut self) -> Option<Event> {
        if self.is_over {
            return None;
        }
        let event = match self.receiver.recv().await {
            Ok(event) => event,
            Err(broadcast::error::RecvError::Lagged(missed)) => Event::Missed(missed),
            Err(broadcast::error::RecvError::Closed) => return None,
        };
        self.is_over = matches!(event, Event::Closed(_));
        Some(event)
    }

    /// The next event, if there is one already.
    pub fn try_next(&mut self) -> Option<Event> {
        let event = match self.receiver.try_recv() {
            Ok(event) => event,
            Err(broadcast::error::TryRecvError::Lagged(missed)) => Event::Missed(missed),
            Err(_) => return None,
        };
        self.is_over = matches!(event, Event::Closed(_));
        Some(event)
    }
}

/// What an encoder should be set to, as it changes.
#[derive(Clone, Debug)]
pub struct TargetBitrate(watch::Receiver<Advice>);

impl TargetBitrate {
    /// What the application may send now; `None` before anything is known of the path.
    pub fn current(&self) -> Option<Rate> {
        self.0.borrow().target.map(|target| target.rate)
    }

    /// Up to which rate it is worth giving sections some of which may be left out, for who sheds
    /// frames: no less than [`current`](Self::current), and no more than the path was seen to
    /// carry. What the congestion controller allows beside others goes up and down by more than
    /// half of it within seconds. What does not fit when it is less, the connection leaves out
    /// itself, the least important first; what was never given is missing when it is more. `None`
    /// before anything is known of the path.
    pub fn offer(&self) -> Option<Rate> {
        self.0.borrow().target.map(|target| target.offer)
    }

    /// Waits until one of the two has changed, and gives what an encoder should be set to; `None`
    /// when the connection is over.
    pub async fn changed(&mut self) -> Option<Rate> {
        loop {
            if self.0.borrow().is_over {
                return None;
            }
            self.0.changed().await.ok()?;
            let Advice { target, is_over } = *self.0.borrow_and_update();
            if let (false, Some(target)) = (is_over, target) {
                return Some(target.rate);
            }
        }
    }
}

impl Connection {
    pub(super) fn new(shared: Arc<ConnectionShared>, handle: Arc<Handle>) -> Self {
        Self(Arc::new(Inner { shared, handle }))
    }

    // ------------------------------------------------------------------------------------------------ sending

    /// Gives a section to be sent; waits while the send buffer is full.
    ///
    /// Its number in its stream: 0, 1, 2, .. in the order of the calls. What becomes of it is told
    /// by [`events`](Self::events) and counted in the [`stats`](Self::stats).
    ///
    /// A call that is dropped before it is ready has sent nothing, and used up no number.
    ///
    /// # Errors
    ///
    /// [`SendError`]
    pub async fn send(&self, section: Section) -> Result<SectionId, SendError> {
        let source_time = self.source_time(&section);
        loop {
            let mut room = pin!(self.0.shared.room.notified());
            room.as_mut().enable();
            match self.give(section.clone(), source_time, true) {
                Err(TrySendError::Full { .. }) => room.await,
                Err(TrySendError::Refused(error)) => return Err(error),
                Ok(id) => return Ok(id),
            }
        }
    }

    /// As [`send`](Self::send), without waiting: live media had better leave out what there is no
    /// room for.
    ///
    /// # Errors
    ///
    /// [`TrySendError`]
    pub fn try_send(&self, section: Section) -> Result<SectionId, TrySendError> {
        let source_time = self.source_time(&section);
        self.give(section, source_time, false)
    }

    /// Waits until the send buffer has room for a section of `length` bytes, or such a section
    /// cannot be sent at all.
    ///
    /// For whoever sends the same to several peers and is not to wait for one of them: the room of
    /// each is waited for, and whoever has some is given what is next by
    /// [`try_send`](Self::try_send). A call that is dropped before it is ready loses nothing. Of
    /// several tasks that wait, all are told; the first one to send takes the room.
    pub async fn room(&self, length: usize) {
        loop {
            let mut room = pin!(self.0.shared.room.notified());
            room.as_mut().enable();
            {
                let mut outbound = lock(&self.0.shared.outbound);
                let is_hopeless =
                    check_open(&outbound).is_err() || length as u64 > self.0.shared.facts.longest;
                if is_hopeless || self.has_room(&outbound, length) {
                    return;
                }
                outbound.is_waited_for = true;
            }
            room.await;
        }
    }

    fn has_room(&self, outbound: &Outbound, length: usize) -> bool {
        let facts = &self.0.shared.facts;
        outbound.held_sections < facts.send_sections
            && outbound.held_bytes + length as u64 <= facts.send_buffer
    }

    fn source_time(&self, section: &Section) -> Time {
        let clock = self.0.handle.shared.clock;
        section
            .source_time
            .map_or_else(|| clock.now(), |instant| clock.time(instant))
    }

    fn give(
        &self,
        section: Section,
        source_time: Time,
        waits: bool,
    ) -> Result<SectionId, TrySendError> {
        let facts = &self.0.shared.facts;
        let length = section.payload.len();
        let stream = section.stream;
        let max = facts.longest;
        if length == 0 {
            return Err(SendError::Empty { stream }.into());
        }
        if length as u64 > max {
            return Err(SendError::TooLong {
                stream,
                length,
                max,
            }
            .into());
        }
        let deadline = match section.deadline {
            None => source_time + facts.latency,
            Some(Duration::MAX) => Time::MAX,
            Some(deadline) => source_time
                .checked_add(Span::from(deadline))
                .unwrap_or(Time::MAX),
        };
        let needs = section.needs;
        self.enter(stream, length, needs, waits, || {
            Command::Submit(Outgoing {
                stream,
                importance: section.importance,
                source_time,
                deadline,
                needs,
                payload: section.payload,
            })
        })
    }

    /// Uses up the next number of a stream without a section, and never waits.
    ///
    /// The peer gets a gap with this reason. Later sections that need this number become gaps with
    /// [`Reason::Dependency`]. A sender skips sections that it sheds ([`Reason::Shed`]); a relay
    /// skips those that it did not receive ([`Reason::Cancelled`]). Statistics count a section
    /// without bytes. No [`Event::Outcome`] follows.
    ///
    /// # Errors
    ///
    /// [`StreamError`]
    pub fn skip(&self, stream: StreamId, reason: Reason) -> Result<SectionId, StreamError> {
        let mut outbound = lock(&self.0.shared.outbound);
        let id = next_number(&outbound, stream)?;
        outbound.streams.entry(stream).or_default().next += 1;
        outbound.commands.push(Command::Skip(stream, reason));
        drop(outbound);
        self.0.shared.schedule(&self.0.handle.shared);
        Ok(id)
    }

    /// Takes in `length` bytes as the next section of a stream, if there is room for it.
    fn enter(
        &self,
        stream: StreamId,
        length: usize,
        needs: Option<SectionId>,
        waits: bool,
        command: impl FnOnce() -> Command,
    ) -> Result<SectionId, TrySendError> {
        let mut outbound = lock(&self.0.shared.outbound);
        let id = next_number(&outbound, stream).map_err(SendError::from)?;
        if let Some(needs) = needs.filter(|needs| *needs >= id) {
            return Err(SendError::NeedsLater {
                stream,
                section: id,
                needs,
            }
            .into());
        }
        if !self.has_room(&outbound, length) {
            outbound.is_waited_for |= waits;
            return Err(TrySendError::Full {
                held_bytes: outbound.held_bytes,
                held_sections: outbound.held_sections,
                length,
            });
        }
        outbound.streams.entry(stream).or_default().next += 1;
        outbound.held_sections += 1;
        outbound.held_bytes += length as u64;
        outbound.commands.push(command());
        drop(outbound);
        self.0.shared.schedule(&self.0.handle.shared);
        Ok(id)
    }

    /// Finishes a stream: no more sections come. The peer learns how many there were.
    ///
    /// # Errors
    ///
    /// [`StreamError`]
    pub fn finish_stream(&self, stream: StreamId) -> Result<(), StreamError> {
        let mut outbound = lock(&self.0.shared.outbound);
        next_number(&outbound, stream)?;
        outbound.streams.entry(stream).or_default().has_ended = true;
        outbound.commands.push(Command::End(stream));
        drop(outbound);
        self.0.shared.schedule(&self.0.handle.shared);
        Ok(())
    }

    /// Withdraws a section that was sent, and what needs it, as far as it has not arrived.
    pub fn cancel(&self, stream: StreamId, section: SectionId) {
        self.command(Command::Cancel(stream, section));
    }

    fn command(&self, command: Command) {
        let mut outbound = lock(&self.0.shared.outbound);
        if outbound.end.is_some() {
            return;
        }
        outbound.commands.push(command);
        drop(outbound);
        self.0.shared.schedule(&self.0.handle.shared);
    }

    // ---------------------------------------------------------------------------------------------- receiving

    /// The next section or gap, waiting for it; `None` when the connection is over and all was
    /// received.
    ///
    /// A call that is dropped before it is ready loses nothing. Of several tasks that wait, each
    /// item reaches one.
    pub async fn recv(&self) -> Option<Item> {
        loop {
            let mut arrived = pin!(self.0.shared.arrived.notified());
            arrived.as_mut().enable();
            if let Some(item) = self.take()? {
                return Some(item);
            }
            arrived.await;
        }
    }

    /// The next section or gap, if there is one already.
    pub fn try_recv(&self) -> Option<Item> {
        self.take().flatten()
    }

    /// `None` when nothing will come any more.
    fn take(&self) -> Option<Option<Item>> {
        let mut inbound = lock(&self.0.shared.inbound);
        let Some(item) = inbound.items.pop_front() else {
            if !inbound.is_over {
                return Some(None);
            }
            drop(inbound);
            // Other tasks that wait are to know as well, one after the other.
            self.0.shared.arrived.notify_one();
            return None;
        };
        inbound.bytes -= item.size();
        let has_more = !inbound.items.is_empty();
        let resumes = inbound.is_stalled && !has_more;
        if resumes {
            inbound.is_stalled = false;
        }
        drop(inbound);
        if resumes {
            self.0.shared.schedule(&self.0.handle.shared);
        }
        if has_more {
            // Another task may be waiting for the next one.
            self.0.shared.arrived.notify_one();
        }
        Some(Some(item))
    }

    /// Takes no more sections: from now on none is acknowledged, and the peer is told that there is
    /// no room. What had arrived still comes from [`recv`](Self::recv) in its time, and after
    /// [`close`](Self::close) the rest of it, so that whoever receives until `None` has every
    /// section that the peer counts as arrived.
    pub fn stop_receiving(&self) {
        self.command(Command::Refuse);
    }

    /// The connection has an owner now, who takes what comes.
    pub(super) fn take_over(&self) {
        self.command(Command::Take);
    }

    // ----------------------------------------------------------------------------------------------- watching

    /// What happens to the connection from now on. Events that nobody asks for are not kept: at
    /// most 1,024 wait.
    pub fn events(&self) -> Events {
        Events {
            receiver: self.0.shared.subscribe(),
            is_over: false,
        }
    }

    /// What the application may send, as it changes: smoothed, steady enough for an encoder, and no
    /// more than the path was seen to carry.
    pub fn target_bitrate(&self) -> TargetBitrate {
        TargetBitrate(self.0.shared.target.subscribe())
    }

    /// What the path to the peer is found to carry, where that is less than both ends take.
    pub fn path_sizes(&self) -> PathSizes {
        let mut sizes = self.0.shared.size.subscribe();
        sizes.mark_changed();
        PathSizes(sizes)
    }

    /// Both ends' counters, without waiting. Once the connection is closed, they do not change.
    pub fn stats(&self) -> Statistics {
        lock(&self.0.shared.statistics).clone()
    }

    /// The peer's address, which may change.
    pub fn peer_address(&self) -> SocketAddr {
        *self.0.shared.address.borrow()
    }

    /// This end's address, as the socket knows it.
    pub fn local_address(&self) -> SocketAddr {
        self.0.handle.shared.address
    }

    /// The key that the peer has proved to own, where static keys are used.
    pub fn peer_key(&self) -> Option<PublicKey> {
        self.0.shared.facts.peer_key
    }

    /// What packets are sealed with; `None` without protection.
    pub fn cipher(&self) -> Option<Cipher> {
        self.0.shared.facts.cipher
    }

    /// What the peer says the connection is about.
    pub fn stream_name(&self) -> Option<&str> {
        self.0.shared.facts.stream_name.as_deref()
    }

    /// The deadline of sections that name none: the larger latency of both ends.
    pub fn latency(&self) -> Duration {
        self.0.shared.facts.latency.into()
    }

    /// When the connection was opened.
    pub fn opened_at(&self) -> Instant {
        let clock = self.0.handle.shared.clock;
        clock.instant_or_origin(self.0.shared.facts.opened_at)
    }

    // ------------------------------------------------------------------------------------------------- ending

    /// Ends all streams, waits until every section has its outcome and the peer knows, and closes.
    ///
    /// That takes as long as the last deadline is away, and without deadlines until the peer has
    /// everything or is [given up](crate::ConfigBuilder::idle_timeout). A call that is dropped
    /// before it is ready has begun to end the connection all the same; another one waits for the
    /// rest.
    ///
    /// # Errors
    ///
    /// [`CloseReason`] when the connection ended otherwise meanwhile; [`CloseReason::is_clean`] of
    /// the peer's means that it was done as well.
    pub async fn finish(&self) -> Result<(), CloseReason> {
        {
            let mut outbound = lock(&self.0.shared.outbound);
            if outbound.end.is_none() && !outbound.is_finishing {
                outbound.is_finishing = true;
                outbound.commands.push(Command::Finish);
            }
        }
        self.0.shared.schedule(&self.0.handle.shared);
        match self.closed().await {
            CloseReason::Local { code, .. } if code == CloseCode::DONE => Ok(()),
            end => Err(end),
        }
    }

    /// Ends the connection now. What has not arrived becomes a gap at the peer, which is told the
    /// reason: at most 255 bytes of it. Codes of the application begin at
    /// [`CloseCode::APPLICATION`].
    pub fn close(&self, code: CloseCode, reason: &str) {
        self.command(Command::Close(code, reason.to_owned()));
    }

    /// Waits for the end, and says why. A call may be dropped and made again.
    pub async fn closed(&self) -> CloseReason {
        let mut end = self.0.shared.end.subscribe();
        match end.wait_for(Option::is_some).await {
            Ok(end) => end.clone().unwrap_or(CloseReason::EndpointClosed),
            Err(_) => CloseReason::EndpointClosed,
        }
    }

    /// Why the connection is closed; `None` while it is open.
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.0.shared.ended()
    }
}

/// The number that the next section of a stream gets.
fn next_number(outbound: &Outbound, stream: StreamId) -> Result<SectionId, StreamError> {
    check_open(outbound)?;
    match outbound.streams.get(&stream) {
        Some(known) if known.has_ended => Err(StreamError::Finished { stream }),
        Some(known) => Ok(SectionId(known.next)),
        None if outbound.streams.len() >= MAX_STREAMS => {
            let max = MAX_STREAMS;
            Err(StreamError::TooManyStreams { stream, max })
        }
        None => Ok(SectionId(0)),
    }
}

fn check_open(outbound: &Outbound) -> Result<(), StreamError> {
    if let Some(end) = &outbound.end {
        return Err(StreamError::Closed(end.clone()));
    }
    if outbound.is_finishing {
        return Err(StreamError::Finishing);
    }
    Ok(())
}

impl Drop for Inner {
    fn drop(&mut self) {
        let mut outbound = lock(&self.shared.outbound);
        outbound.is_abandoned = true;
        if outbound.end.is_none() {
            outbound
                .commands
                .push(Command::Close(CloseCode::DONE, String::new()));
        }
        drop(outbound);
        self.shared.schedule(&self.handle.shared);
    }
}
