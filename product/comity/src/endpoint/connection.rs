//! The application's handle to a connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use comity_transport::timeline::outbox::SubmitError;
use comity_transport::wire::CloseCode;
use comity_units::{Span, Time};

use super::connection_shared::ConnectionShared;
use super::events::{Events, PathSizes, TargetBitrate};
use super::shared::Handle;
use crate::error::{CloseReason, SendError};
use crate::section::{Item, Reason, Section, SectionId, StreamId};
use crate::session::{Cipher, Protocol as _, PublicKey, lock, use_locked};
use crate::statistics::Statistics;
use crate::transport::{Outgoing, Transport};

/// The hidden beginning of an example with two connected ends.
macro_rules! pair {
    () => {
        r#"# use comity::{Config, Connection, Deliver, Endpoint, connect};
# type Failure = Box<dyn std::error::Error>;
# async fn pair() -> Result<(Connection, Connection), Failure> {
#     let config = Config::builder().insecure().deliver(Deliver::Early).build()?;
#     let endpoint = Endpoint::bind("127.0.0.1:0".parse()?, config.clone())?;
#     let call = connect(endpoint.local_address(), config);
#     let (caller, accepted) = tokio::join!(call, endpoint.accept());
#     Ok((caller?, accepted.ok_or("closed")?))
# }
# #[tokio::main(flavor = "current_thread")]
# async fn main() -> Result<(), Failure> {"#
    };
}

/// A connection to a peer: sections in both directions, over encrypted datagrams.
///
/// Clones are handles to the same connection, so one task may send while another receives. Dropping
/// the last one closes the connection with [`CloseCode::DONE`] at once: call
/// [`finish`](Self::finish) first to deliver everything.
#[derive(Clone, Debug)]
pub struct Connection(Arc<Inner>);

/// The state that all clones share; dropped with the last one.
#[derive(Debug)]
struct Inner {
    shared: Arc<ConnectionShared>,
    /// Keeps the endpoint alive.
    handle: Arc<Handle>,
}

impl Connection {
    pub(super) fn new(shared: Arc<ConnectionShared>, handle: Arc<Handle>) -> Self {
        Self(Arc::new(Inner { shared, handle }))
    }

    // ---------------------------------------------------------------- sending

    /// Submits a section; waits while the send buffer is full, or the endpoint lacks memory.
    ///
    /// Returns its number in its stream: 0, 1, 2, .. in the order of the calls.
    /// [`events`](Self::events) reports its fate, and [`stats`](Self::stats) counts it.
    ///
    /// A call that is dropped before it is ready has sent nothing and used no number.
    ///
    /// ```
    #[doc = pair!()]
    /// # let (sender, _receiver) = pair().await?;
    /// use comity::{Importance, Section};
    /// use std::time::Duration;
    ///
    /// let key_frame = Section::new(vec![1; 30_000]).importance(Importance(200));
    /// let key_frame = sender.send(key_frame).await?;
    /// let next_frame = Section::new(vec![2; 4_000])
    ///     .needs(key_frame)
    ///     .deadline(Duration::from_millis(200));
    /// sender.send(next_frame).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SendError`]
    pub async fn send(&self, section: Section) -> Result<SectionId, SendError> {
        let section = self.outgoing(section);
        let submit = || match self.submit(section.clone(), true) {
            Err(SendError::Full { .. }) => None,
            submitted => Some(submitted),
        };
        self.0.shared.room.wait(submit).await
    }

    /// As [`send`](Self::send), but fails instead of waiting for room. Live sources should drop a
    /// section that finds no room.
    ///
    /// # Errors
    ///
    /// [`SendError`]
    pub fn try_send(&self, section: Section) -> Result<SectionId, SendError> {
        self.submit(self.outgoing(section), false)
    }

    /// Waits until the send buffer has room and the endpoint has memory for a section of `length`
    /// bytes, or the connection can never carry such a section.
    ///
    /// A task that sends to several peers waits for room at all of them at once, then calls
    /// [`try_send`](Self::try_send) for those with room. A call that is dropped before it is ready
    /// loses nothing. If several tasks wait, all wake up, and the first one to send takes the room.
    pub async fn room(&self, length: usize) {
        let room = &self.0.shared.room;
        let look = || {
            let has_room = self.0.with(|transport, _| {
                let has_room = transport.has_room(length);
                if !has_room {
                    room.want();
                }
                has_room
            });
            if !has_room {
                // The driver looks for memory that has become free meanwhile.
                self.0.schedule();
            }
            has_room.then_some(())
        };
        room.wait(look).await;
    }

    /// The section with times on the endpoint's clock.
    fn outgoing(&self, section: Section) -> Outgoing<Bytes> {
        let clock = self.0.handle.shared.clock;
        let source_time = section
            .source_time
            .map_or_else(|| clock.now(), |instant| clock.time(instant));
        let deadline = match section.deadline {
            None => source_time + self.0.shared.facts.latency,
            Some(Duration::MAX) => Time::MAX,
            Some(deadline) => source_time
                .checked_add(Span::from(deadline))
                .unwrap_or(Time::MAX),
        };
        Outgoing {
            stream: section.stream,
            importance: section.importance,
            source_time,
            deadline,
            needs: section.needs,
            payload: section.payload,
        }
    }

    /// Submits a section. `waits` says whether the caller waits for room.
    fn submit(&self, section: Outgoing<Bytes>, waits: bool) -> Result<SectionId, SendError> {
        let mut section = Some(section);
        self.send_with(|transport, now| {
            let submitted = match section.take() {
                Some(section) => transport.submit(now, section),
                // The first attempt has panicked.
                None => Err(transport.refused(SubmitError::Closed, 0)),
            };
            if waits && matches!(submitted, Err(SendError::Full { .. })) {
                self.0.shared.room.want();
            }
            submitted
        })
    }

    /// Calls `send`. If the driver has reported why the connection is closed, the error says it.
    fn send_with<T>(
        &self,
        send: impl FnMut(&mut Transport, Time) -> Result<T, SendError>,
    ) -> Result<T, SendError> {
        self.act(send)
            .map_err(|error| match (error, self.close_reason()) {
                (SendError::Closed(_), Some(reason)) => SendError::Closed(reason),
                (error, _) => error,
            })
    }

    /// Changes the transport, and schedules the connection with the driver.
    fn act<T>(&self, act: impl FnMut(&mut Transport, Time) -> T) -> T {
        self.0.act(act)
    }

    /// Uses up the next number of a stream without a section, and never waits.
    ///
    /// The peer gets a gap with this reason. Later sections that need this number become gaps with
    /// [`Reason::Dependency`]. A sender skips sections that it sheds ([`Reason::Shed`]); a relay
    /// skips those that it did not receive ([`Reason::Cancelled`]). Statistics count a section
    /// without bytes. No [`Event::Outcome`](super::Event::Outcome) follows.
    ///
    /// # Errors
    ///
    /// [`SendError`]
    pub fn skip(&self, stream: StreamId, reason: Reason) -> Result<SectionId, SendError> {
        self.skip_run(stream, 1, reason)
    }

    /// Uses up the next `count` numbers of a stream, as [`skip`](Self::skip) does with one. Returns
    /// the first.
    ///
    /// The cost does not depend on the length of the run. For a run of more than 64, the peer does
    /// not receive the reason.
    ///
    /// # Errors
    ///
    /// [`SendError`]
    pub fn skip_run(
        &self,
        stream: StreamId,
        count: u64,
        reason: Reason,
    ) -> Result<SectionId, SendError> {
        self.send_with(|transport, now| transport.skip_run(now, stream, count, reason))
    }

    /// Finishes a stream: no more sections follow. The peer learns the number of its sections.
    ///
    /// # Errors
    ///
    /// [`SendError`]
    pub fn finish_stream(&self, stream: StreamId) -> Result<(), SendError> {
        self.send_with(|transport, _| transport.finish_stream(stream))
    }

    /// Withdraws a submitted section and all that depend on it, unless they have arrived. Returns
    /// whether it withdrew anything.
    pub fn cancel(&self, stream: StreamId, section: SectionId) -> bool {
        self.act(|transport, _| transport.cancel(stream, section))
    }

    // ---------------------------------------------------------------- receiving

    /// Waits for the next section or gap; `None` when the connection is over and the application
    /// has received everything.
    ///
    /// A call that is dropped before it is ready loses nothing. If several tasks wait, each item
    /// reaches one of them.
    ///
    /// ```
    #[doc = pair!()]
    /// # let (sender, receiver) = pair().await?;
    /// # sender.send(comity::Section::new("a frame")).await?;
    /// # sender.skip(comity::StreamId(0), comity::Reason::Shed)?;
    /// # let (finished, shown) = tokio::join!(sender.finish(), async move {
    /// use comity::Item;
    ///
    /// let (mut whole, mut missing) = (0, 0);
    /// while let Some(item) = receiver.recv().await {
    ///     match item {
    ///         Item::Section(section) => whole += section.payload.len(),
    ///         Item::Gap(gap) => {
    ///             println!("{}, {}: missing: {:?}", gap.stream, gap.id, gap.reason);
    ///             missing += 1;
    ///         }
    ///     }
    /// }
    /// # (whole, missing)
    /// # });
    /// # finished?;
    /// # assert_eq!(shown, (7, 1));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A relay receives with [`Deliver::Early`](crate::Deliver::Early), before the deadline, and
    /// sends to another connection. It skips the numbers of missing sections, so that numbers and
    /// dependencies stay the same:
    ///
    /// ```
    #[doc = pair!()]
    /// # let (sender, input) = pair().await?;
    /// # let (output, receiver) = pair().await?;
    /// # sender.send(comity::Section::new("a frame")).await?;
    /// # sender.skip(comity::StreamId(0), comity::Reason::Shed)?;
    /// # let relay = async move {
    /// use comity::{Item, Reason, Section};
    ///
    /// while let Some(item) = input.recv().await {
    ///     match item {
    ///         Item::Gap(gap) => {
    ///             output.skip(gap.stream, Reason::Cancelled)?;
    ///         }
    ///         Item::Section(received) => {
    ///             let mut section = Section::new(received.payload)
    ///                 .stream(received.stream)
    ///                 .importance(received.about.importance)
    ///                 .source_time(received.about.source_time);
    ///             section.needs = received.about.needs;
    ///             output.send(section).await?;
    ///         }
    ///     }
    /// }
    /// output.finish().await?;
    /// # Ok::<_, Failure>(())
    /// # };
    /// # let receive = async move {
    /// #     let mut items = Vec::new();
    /// #     while let Some(item) = receiver.recv().await {
    /// #         items.push((item.id().0, item.into_section().is_some()));
    /// #     }
    /// #     items
    /// # };
    /// # let (finished, relayed, items) = tokio::join!(sender.finish(), relay, receive);
    /// # finished?;
    /// # relayed?;
    /// # assert_eq!(items, [(0, true), (1, false)]);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn recv(&self) -> Option<Item> {
        let inbound = &self.0.shared.inbound;
        inbound.recv(|| self.0.schedule()).await
    }

    /// The next section or gap, if one waits.
    pub fn try_recv(&self) -> Option<Item> {
        self.0.shared.inbound.try_recv(|| self.0.schedule())
    }

    /// Accepts no more sections: from now on this end acknowledges none, and reports to the peer
    /// that it has no room. [`recv`](Self::recv) still returns the sections that had arrived. After
    /// [`close`](Self::close), an application that receives until `None` has every section that the
    /// peer counts as arrived.
    pub fn stop_receiving(&self) {
        self.act(|transport, _| transport.refuse_sections());
    }

    /// Starts to acknowledge sections: the application has accepted the connection.
    pub(super) fn take_over(&self) {
        self.act(|transport, now| transport.take_sections(now));
    }

    // ---------------------------------------------------------------- watching

    /// The events of the connection from now on. At most 1,024 wait for a slow receiver.
    pub fn events(&self) -> Events {
        Events::new(self.0.shared.subscribe())
    }

    /// The bitrate at which the application should submit, as it changes. It is smoothed, steady
    /// enough for an encoder, and at most the measured capacity of the path.
    ///
    /// ```
    #[doc = pair!()]
    /// # let (sender, receiver) = pair().await?;
    /// # let drain = tokio::spawn(async move { while receiver.recv().await.is_some() {} });
    /// use comity::{Rate, Section};
    ///
    /// let target = sender.target_bitrate();
    /// let mut bitrate = Rate::from_mbps(1);
    /// for _frame in 0..10 {
    ///     // Set the encoder before each frame. This frame has the length for 25 frames a second.
    ///     bitrate = target.current().unwrap_or(bitrate);
    ///     let frame = vec![0; bitrate.as_bps() as usize / 8 / 25];
    ///     sender.send(Section::new(frame)).await?;
    /// }
    /// # sender.finish().await?;
    /// # drain.await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn target_bitrate(&self) -> TargetBitrate {
        TargetBitrate(self.0.shared.target.subscribe())
    }

    /// The sizes of datagrams that the path carries, if they are smaller than both ends accept.
    pub fn path_sizes(&self) -> PathSizes {
        let mut sizes = self.0.shared.size.subscribe();
        sizes.mark_changed();
        PathSizes(sizes)
    }

    /// The counters of both directions, without waiting. They do not change after the connection is
    /// closed.
    pub fn stats(&self) -> Statistics {
        let shared = &self.0.shared;
        if let Some(last) = shared.last.get() {
            return last.clone();
        }
        let session = *lock(&shared.session);
        self.0.with(|transport, now| transport.stats(now, &session))
    }

    /// The peer's address, which may change.
    pub fn peer_address(&self) -> SocketAddr {
        *self.0.shared.address.borrow()
    }

    /// This end's address, as the socket reports it.
    pub fn local_address(&self) -> SocketAddr {
        self.0.handle.shared.address
    }

    /// The key that the peer has proved to own, if static keys are used.
    pub fn peer_key(&self) -> Option<PublicKey> {
        self.0.shared.facts.peer_key
    }

    /// The cipher of packets; `None` without protection.
    pub fn cipher(&self) -> Option<Cipher> {
        self.0.shared.facts.cipher
    }

    /// The name of the stream that the caller requests or sends.
    pub fn stream_name(&self) -> Option<&str> {
        self.0.shared.facts.stream_name.as_deref()
    }

    /// What the peer's application can receive: its [`features`](crate::ConfigBuilder::features).
    pub fn peer_features(&self) -> u64 {
        self.0.shared.facts.peer_features
    }

    /// The deadline of sections that set none: the larger latency of both ends.
    pub fn latency(&self) -> Duration {
        self.0.shared.facts.latency.into()
    }

    /// The minimum round-trip time; `None` before the first measurement.
    pub fn min_rtt(&self) -> Option<Duration> {
        lock(&self.0.shared.transport).min_rtt().map(Into::into)
    }

    /// When the connection was opened.
    pub fn opened_at(&self) -> Instant {
        let opened_at = lock(&self.0.shared.transport).opened_at();
        self.0.handle.shared.clock.instant_or_origin(opened_at)
    }

    // ---------------------------------------------------------------- ending

    /// Ends all streams, waits until every section has its outcome and the peer knows it, and
    /// closes the connection.
    ///
    /// This takes until the last deadline. Without deadlines, it takes until the peer has
    /// everything or the [idle timeout](crate::ConfigBuilder::idle_timeout) expires. A call that is
    /// dropped before it is ready has already begun to end the connection. Another call waits for
    /// the rest.
    ///
    /// # Errors
    ///
    /// [`CloseReason`] if the connection ends in another way first. If the peer closed it and
    /// [`CloseReason::is_clean`] holds, the peer had finished, too.
    pub async fn finish(&self) -> Result<(), CloseReason> {
        self.act(|transport, _| transport.finish());
        match self.closed().await {
            CloseReason::Local { code, .. } if code == CloseCode::DONE => Ok(()),
            end => Err(end),
        }
    }

    /// Ends the connection now. Sections that have not arrived become gaps at the peer, which
    /// receives at most 255 bytes of `reason`. Codes of the application begin at
    /// [`CloseCode::APPLICATION`].
    pub fn close(&self, code: CloseCode, reason: &str) {
        // After an end by the peer, a close would deliver its sections before their deadlines.
        if self.close_reason().is_none() {
            self.act(|transport, now| transport.close(now, code, reason));
        }
    }

    /// After the end of the connection, makes [`recv`](Self::recv) return the arrived sections at
    /// once, and not at their deadlines. Ends an open connection as [`close`](Self::close) does.
    pub fn deliver_at_once(&self) {
        self.act(|transport, now| transport.close(now, CloseCode::DONE, ""));
    }

    /// Waits for the end and returns the reason. A dropped call may be repeated.
    pub async fn closed(&self) -> CloseReason {
        let mut end = self.0.shared.end.subscribe();
        match end.wait_for(Option::is_some).await {
            Ok(end) => end.clone().unwrap_or(CloseReason::EndpointClosed),
            Err(_) => CloseReason::EndpointClosed,
        }
    }

    /// Why the connection is closed; `None` while it is open.
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.0.shared.close_reason()
    }
}

impl Inner {
    /// Calls `work` with the transport. If it panics, the connection ends, and `work` runs once
    /// more with a closed transport.
    fn with<T>(&self, mut work: impl FnMut(&mut Transport, Time) -> T) -> T {
        let now = self.handle.shared.clock.now();
        use_locked(
            &self.shared.transport,
            |broken| broken.fail(now),
            // The driver finds the lock poisoned.
            || self.schedule(),
            |transport| work(transport, now),
        )
    }

    fn act<T>(&self, act: impl FnMut(&mut Transport, Time) -> T) -> T {
        let done = self.with(act);
        self.schedule();
        done
    }

    fn schedule(&self) {
        self.shared.schedule(&self.handle.shared);
    }
}

#[cfg(test)]
impl Connection {
    pub(super) fn with_transport<T>(&self, act: impl FnMut(&mut Transport, Time) -> T) -> T {
        self.act(act)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shared.is_abandoned.store(true, Ordering::SeqCst);
        self.act(|transport, now| transport.close(now, CloseCode::DONE, ""));
    }
}
