//! Builds packets: when one may leave, and its contents.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::Cell;

use comity_congestion::{Ecn, Report, Sent, Tag};
use comity_units::{DataSize, PacketNumber, Span, Time};

use super::connection::Connection;
use super::events::PathFrame;
use super::parts::{Contents, SentControl};
use crate::timeline::outbox::Notice;
use crate::timeline::{Chunk, Meta, Payload, SectionId};
use crate::wire::Stamp;
use crate::wire::frame::{
    self, Content, Credit, Dropped, End, Floor, Frame, Framing, ReceiverReport, SectionHeader,
};
use crate::wire::limits::{DEPARTURE, MAX_OPEN_SECTIONS, MAX_TIME_US};

/// A packet to send. Its payload was appended to the caller's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Its number, unique in the connection.
    pub number: PacketNumber,
    /// The ECN mark for its IP header.
    pub ecn: Ecn,
    /// The size of its protected payload in bytes. With elided sections it exceeds the appended
    /// bytes.
    pub payload: u32,
    /// The first enforced deadline among its sections; `Time::MAX` if there is none. If a host
    /// still holds the packet back at this time, it must drop the packet, so that no byte leaves
    /// after its deadline. The connection counts such a packet as lost.
    pub leave_by: Time,
}

/// A payload under construction.
struct Builder<'a> {
    out: &'a mut Vec<u8>,
    /// Where it begins in `out`.
    start: usize,
    /// Bytes that elided sections would take.
    elided: usize,
    /// Its maximum length.
    limit: usize,
    /// Whether it is ACK-eliciting.
    is_eliciting: bool,
    section_bytes: u64,
    /// The first deadline among its contents.
    leave_by: Time,
}

impl<'a> Builder<'a> {
    const fn new(out: &'a mut Vec<u8>, start: usize, limit: usize) -> Self {
        Self {
            out,
            start,
            elided: 0,
            limit,
            is_eliciting: false,
            section_bytes: 0,
            leave_by: Time::MAX,
        }
    }

    fn size(&self) -> usize {
        self.out.len() - self.start + self.elided
    }

    fn room(&self) -> usize {
        self.limit.saturating_sub(self.size())
    }

    /// Whether it contains only the departure.
    fn is_empty(&self) -> bool {
        self.size() == DEPARTURE
    }

    /// Appends a frame if it fits. Returns whether it did. The frames of this end are within the
    /// limits of the codec, so a frame that the codec refuses is one that the peer does not need.
    fn push(&mut self, frame: &Frame<'_>) -> bool {
        let fits = frame.size() <= self.room() && frame.encode(self.out).is_ok();
        self.is_eliciting |= fits && frame.kind().is_ack_eliciting();
        fits
    }

    /// Appends padding of this length.
    fn pad(&mut self, length: usize) {
        // A frame of padding cannot be empty.
        if length > 0 {
            self.push(&Frame::Padding { length });
        }
    }
}

impl<P: Payload> Connection<P> {
    /// Whether packets contain the bytes of sections.
    pub(super) const CONTENT: Content = if P::ELIDED {
        Content::Elided
    } else {
        Content::Present
    };

    /// The next packet that may leave at `now`, if any. Appends its payload to `out`.
    pub fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        if !self.is_open() {
            return self.transmit_close(now, out);
        }
        if self.outbox.backlog() > 0
            && let Some(size) = self.size.next_try(now)
        {
            return self.transmit_size(now, size, out);
        }
        let is_probe = self.departures.owes_probe();
        // A probe needs no window, but a peer that accepts no more sections gets none.
        let may_send_data = match is_probe {
            true => !self.credit.is_refused(),
            false => self.may_send_data(now),
        };
        let report_is_due = self.report_at() <= now;
        let has_control =
            self.control.is_pending() || self.credit.owes_request() || self.advertised.is_due();
        let is_urgent = self.reception.ack_due_at() <= now || has_control || report_is_due;
        let news_is_due = self.has_news() && self.news_leave_at() <= now;
        let may_report = news_is_due || is_probe || self.has_window();
        if !may_send_data && !is_probe && !is_urgent && !news_is_due {
            return None;
        }
        let start = out.len();
        let mut builder = Builder::new(out, start, self.max_payload() as usize);
        frame::encode_departure(self.departure(now), builder.out);
        let mut contents = Contents::default();
        // The credit already accounts for the acknowledged sections, so the peer must receive both
        // together.
        let reports_credit = self.advertised.is_due();
        if self.reception.has_news() || self.reception.ack_due_at() <= now || reports_credit {
            self.push_acknowledgement(now, &mut builder, &mut contents);
        }
        let has_acknowledgement = contents.acknowledged.is_some();
        // The peer receives the final counts with the acknowledgement of its last section.
        let reports = report_is_due || has_acknowledgement && self.inbox.has_ended();
        if reports {
            self.push_report(&mut builder);
        }
        self.push_control(&mut builder, &mut contents);
        if may_report {
            self.push_news(&mut builder, &mut contents);
        }
        if may_send_data {
            self.push_sections(now, &mut builder, &mut contents);
            // The search for data to send may have given up all sections.
            if contents.chunk.is_none() && self.has_news() && self.news_leave_at() <= now {
                self.push_news(&mut builder, &mut contents);
            }
        }
        if contents.chunk.is_none() && contents.reports_news() {
            self.departures.on_news_sent(now);
        }
        if is_probe && !builder.is_eliciting {
            builder.push(&Frame::Ping);
        }
        if builder.is_empty() {
            builder.out.truncate(start);
            return None;
        }
        // An acknowledgement alone is sent only when it is due; with other frames it is sent at
        // once.
        let is_ack_alone = has_acknowledgement && !builder.is_eliciting && !report_is_due;
        if is_ack_alone && self.reception.ack_due_at() > now {
            builder.out.truncate(start);
            return None;
        }
        if reports {
            self.reports.on_report_sent(now);
        }
        if has_acknowledgement {
            self.reception.on_ack_sent();
            let is_asked = builder.is_eliciting || self.sent.in_flight_packets() > 0;
            if !is_asked && self.reports.takes_measurement(now) {
                builder.push(&Frame::Ping);
            }
        }
        if contents.chunk.is_some() {
            self.push_tag(now, &mut builder);
            if self.config.pad {
                builder.pad(builder.room());
            }
        }
        let (is_eliciting, section_bytes) = (builder.is_eliciting, builder.section_bytes);
        let leave_by = builder.leave_by;
        let size = u32::try_from(builder.size()).unwrap_or(u32::MAX);
        Some(Transmit {
            leave_by,
            ..self.commit(now, size, is_eliciting, section_bytes, contents)
        })
    }

    /// Whether window and pacer allow data to leave now. Records if only they prevent it.
    fn may_send_data(&mut self, now: Time) -> bool {
        if self.outbox.backlog() == 0 || !self.has_credit() {
            return false;
        }
        let has_window = self.has_window();
        self.find_pace(now);
        // Data that only the ceiling holds back is not held back by the controller: it must not
        // grow without being tested.
        let released_at = self.controller_releases_at();
        let next = self.sent.next_number();
        self.congestion
            .on_attempt(next, has_window, released_at > now);
        has_window && self.ceiling.release_at(released_at) <= now
    }

    /// Records a complete packet.
    fn commit(
        &mut self,
        now: Time,
        size: u32,
        is_eliciting: bool,
        section_bytes: u64,
        contents: Contents,
    ) -> Transmit {
        let number = self.sent.next_number();
        let wire = u64::from(size + self.config.overhead);
        let app_limited = self.outbox.backlog() == 0;
        let counted = if is_eliciting { size } else { 0 };
        self.sent.on_sent(now, counted, contents);
        if let Some(evidence) = &mut self.evidence {
            evidence.on_sent(now, number, size);
        }
        self.congestion.on_flight(now, self.sent.in_flight());
        if self.departures.on_sent(now, self.sent.next_number()) {
            self.sent.skip();
        }
        let statistics = &mut self.statistics.sent;
        statistics.packets += 1;
        statistics.wire_bytes += wire;
        statistics.section_bytes += section_bytes;
        self.target.on_sent(section_bytes, wire);
        self.ceiling.on_sent(now, wire);
        if is_eliciting {
            self.departures.on_eliciting();
            self.loss.on_sent(now);
            let sent = Sent {
                now,
                payload: DataSize::new(u64::from(size)),
                wire: DataSize::new(wire),
                number,
                in_flight: DataSize::new(self.sent.in_flight()),
                app_limited,
            };
            self.congestion
                .on_sent(&sent, self.loss.smoothed(), self.full_packet());
            self.check_app_limited();
        }
        let ecn = match is_eliciting && self.ecn.mark() {
            true => Ecn::Capable0,
            false => Ecn::NotCapable,
        };
        Transmit {
            number,
            ecn,
            payload: size,
            leave_by: Time::MAX,
        }
    }

    /// The wire size of a full packet.
    pub(super) fn full_packet(&self) -> DataSize {
        DataSize::new(u64::from(self.size.current() + self.config.overhead))
    }

    /// The stamp of `now` on this end's clock.
    fn stamp(&self, now: Time) -> Stamp {
        Stamp::of(self.since_epoch(now))
    }

    /// The departure of the next packet, with its token.
    fn departure(&self, now: Time) -> Stamp {
        let stamp = self.stamp(now);
        match &self.tokens {
            Some(tokens) => tokens.stamp(stamp, self.sent.next_number()),
            None => stamp,
        }
    }

    /// The time for use in packets: since the beginning of the connection.
    pub(super) fn since_epoch(&self, time: Time) -> Time {
        if time.is_never() {
            return time;
        }
        Time::ZERO + time.saturating_since(self.epoch)
    }

    // ---------------------------------------------------------------- frames

    fn push_acknowledgement(
        &mut self,
        now: Time,
        builder: &mut Builder<'_>,
        contents: &mut Contents,
    ) {
        let room = builder.room();
        let room = room.saturating_sub(self.reports.feedback_room());
        let proves = self.tokens.is_some();
        let ack = self
            .reception
            .ack(now, room, proves, |time| self.stamp(time));
        let Some(ack) = ack else {
            return;
        };
        if !builder.push(&Frame::Ack(ack)) {
            return;
        }
        contents.acknowledged = Some(ack.ranges.largest());
        // An end that accepts nothing yet has not acknowledged the packets that its meter would
        // report on.
        let report = match self.awaits_taker() {
            true => Report::None,
            false => self.reports.feedback(now),
        };
        if report != Report::None {
            builder.push(&Frame::Feedback(report));
        }
        let (room, admitted) = (self.room(), self.inbox.admitted());
        if self.advertised.is_worth_reporting(room, admitted) {
            self.push_credit(builder, contents);
        }
    }

    fn push_credit(&mut self, builder: &mut Builder<'_>, contents: &mut Contents) {
        let room = self.room();
        let sections = self.config.receive_sections.min(MAX_OPEN_SECTIONS as u32);
        let credit = Credit {
            bytes: room,
            sections,
        };
        if builder.push(&Frame::Credit(credit)) {
            self.advertised.on_sent(room, self.inbox.admitted());
            contents.control.get_or_insert_default().credit = true;
        }
    }

    fn push_report(&self, builder: &mut Builder<'_>) {
        let counters = self.inbox.counters();
        let (on_time, late) = match self.awaits_taker() {
            // No application has received them yet.
            true => (0, 0),
            false => self.inbox.complete(),
        };
        let received = &self.statistics.received;
        let report = ReceiverReport {
            complete: on_time + late,
            on_time,
            late,
            with_gaps: self.inbox.gaps(),
            bytes: counters.received - counters.duplicate,
            packets: received.packets,
            duplicates: received.duplicates,
            one_way_latest_us: micros(self.clock.one_way()),
            one_way_least_us: micros(self.clock.one_way().saturating_sub(self.clock.queueing())),
            jitter: self.clock.jitter(),
            buffered: self.config.receive_buffer - self.inbox.free_bytes(),
            drift_ppb: (self.clock.drift_ppm() * 1_000.0) as i64,
        };
        builder.push(&Frame::ReceiverReport(report));
    }

    fn push_control(&mut self, builder: &mut Builder<'_>, contents: &mut Contents) {
        if self.control.ping && builder.push(&Frame::Ping) {
            self.control.ping = false;
        }
        if self.credit.owes_request() && builder.push(&Frame::Blocked) {
            self.credit.on_request_sent();
        }
        if self.advertised.is_due() {
            self.push_credit(builder, contents);
        }
        while let Some(&(stream, sections)) = self.control.ends.last()
            && builder.push(&Frame::End(End {
                stream: stream.0,
                sections,
            }))
        {
            let sent: &mut Box<SentControl> = contents.control.get_or_insert_default();
            sent.ends.extend(self.control.ends.pop());
        }
    }

    /// Adds the drops and floors that report abandoned sections.
    fn push_news(&mut self, builder: &mut Builder<'_>, contents: &mut Contents) {
        while let Some(notice) = self.outbox.notice_to_tell()
            && builder.push(&Frame::Dropped(dropped(notice)))
        {
            self.outbox.on_notice_told();
            let sent: &mut Box<SentControl> = contents.control.get_or_insert_default();
            sent.notices.push(notice);
        }
        while let Some((stream, floor)) = self.outbox.floor_to_tell()
            && builder.push(&Frame::Floor(Floor {
                stream: stream.0,
                floor: floor.0,
            }))
        {
            self.outbox.on_floor_told(stream);
            let sent: &mut Box<SentControl> = contents.control.get_or_insert_default();
            sent.floors.push(stream);
        }
    }

    /// Whether a floor or a notice waits to be reported.
    fn has_news(&mut self) -> bool {
        self.outbox.notice_to_tell().is_some() || self.outbox.floor_to_tell().is_some()
    }

    /// When a packet with only notices of abandoned sections may leave. The packet is
    /// ACK-eliciting, so the controller limits it like data, and later notices wait for the next
    /// packet. If the window is full, one packet may leave after a probe timeout without
    /// departures. Otherwise no packet would report abandoned sections on a path that carries
    /// nothing, and the peer's gaps would grow. The first packet that arrives reopens the window.
    pub(super) fn news_leave_at(&self) -> Time {
        if !self.has_window() {
            return self.departures.last_at() + self.loss.base_timeout();
        }
        self.departures.news_at().max(self.released_at())
    }

    /// Fills the packet with pieces of sections.
    fn push_sections(&mut self, now: Time, builder: &mut Builder<'_>, contents: &mut Contents) {
        let estimate = self.estimate(now);
        let epoch = self.epoch;
        // A tag follows the sections. Only without one can data extend to the end of the packet.
        let tag_room = match self.congestion.upcoming_tag() {
            Tag::None => 0,
            tag => Frame::Tag(tag).size(),
        };
        let may_end = tag_room == 0;
        let tightest = if may_end {
            Framing::ToEnd
        } else {
            Framing::Length
        };
        let mut is_over = false;
        while !is_over {
            let room = builder.room().saturating_sub(tag_room);
            if room < MIN_PIECE && contents.chunk.is_some() {
                break;
            }
            // Writing the header shows how much fits after it. The last written one is sent.
            let begun = Cell::new(None);
            let fits = |meta: &Meta, floor: SectionId, offset: u32| {
                let header = header(epoch, meta, floor, offset).begin().ok();
                begun.set(header.map(|header| (header, meta.deadline)));
                header.map_or(0, |header| header.fitting(room, tightest).unwrap_or(0))
            };
            // A copy is never in the packet of its original, whose piece is first in it.
            let copy = match contents.chunk {
                None => self.outbox.next_copy(now, &estimate, fits),
                Some(_) => None,
            };
            let next = copy.or_else(|| self.outbox.next_chunk_with(now, &estimate, fits));
            let Some(chunk) = next else {
                break;
            };
            let Some((header, deadline)) = begun.take() else {
                break;
            };
            let header = header.retransmitted(chunk.is_retransmission);
            let length = chunk.length as usize;
            let behind = room.saturating_sub(length);
            let leaves_nothing = behind < MIN_PIECE
                || behind < header.size(chunk.length, Framing::Length) + MIN_PIECE
                || self.outbox.backlog() == 0;
            is_over = may_end && leaves_nothing;
            let framing = if is_over {
                Framing::ToEnd
            } else {
                Framing::Length
            };
            if is_over && self.config.pad {
                // No frame can follow these data.
                let size = header.size(chunk.length, framing) + length;
                builder.pad(room.saturating_sub(size));
            }
            if header
                .encode(chunk.length, framing, Self::CONTENT, builder.out)
                .is_err()
            {
                // Unreachable for sections that the outbox accepted; the piece counts as lost.
                self.outbox.on_lost(now, &chunk);
                break;
            }
            if self.outbox.on_floor_told(chunk.stream) {
                // The piece itself may not be worth a retransmission.
                let sent: &mut Box<SentControl> = contents.control.get_or_insert_default();
                sent.floors.push(chunk.stream);
            }
            self.outbox.write(&chunk, builder.out);
            if P::ELIDED {
                builder.elided += framing.elided(chunk.length);
            }
            builder.is_eliciting = true;
            let length = u64::from(chunk.length);
            builder.section_bytes += length;
            if chunk.is_retransmission {
                self.statistics.sent.retransmitted_bytes += length;
            }
            if deadline <= now {
                self.statistics.sent.late_bytes += length;
            }
            if self.config.enforces_deadlines() {
                builder.leave_by = builder.leave_by.min(deadline);
            }
            put(contents, chunk);
        }
    }

    fn push_tag(&mut self, now: Time, builder: &mut Builder<'_>) {
        if self.outbox.backlog() == 0 || !self.has_credit() {
            self.congestion.on_app_limited();
        }
        let tag = self.congestion.tag(now);
        if tag == Tag::None {
            return;
        }
        self.feedback.on_tag(tag);
        if builder.push(&Frame::Tag(tag)) {
            if let Some(evidence) = &mut self.evidence {
                evidence.on_tag(tag);
            }
            self.feedback.on_tag_sent(self.sent.next_number());
        }
    }

    /// Appends a payload of this frame and padding, with `length` bytes in total, or more if the
    /// frame needs more. It leaves at once, possibly to another address. Neither window nor pacer
    /// holds it back, and it does not count as in flight.
    pub fn write_path_frame(
        &mut self,
        now: Time,
        frame: PathFrame,
        length: usize,
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        if !self.is_open() {
            return None;
        }
        let start = out.len();
        frame::encode_departure(self.departure(now), out);
        let frame = match frame {
            PathFrame::Challenge(token) => Frame::PathChallenge(token),
            PathFrame::Response(token) => Frame::PathResponse(token),
        };
        if frame.encode(out).is_err() {
            out.truncate(start);
            return None;
        }
        let length = length.min(self.config.payload as usize);
        out.resize(out.len().max(start + length), 0);
        let size = u32::try_from(out.len() - start).unwrap_or(u32::MAX);
        Some(self.commit(now, size, false, 0, Contents::default()))
    }

    /// The maximum payload of the next packet. After two probes without an acknowledgement, it is
    /// the base size. The path may no longer carry larger packets, and their loss shows only when a
    /// later packet arrives.
    fn max_payload(&self) -> u32 {
        match self.departures.owes_probe() && self.loss.expiries >= 2 {
            true => self.size.base(),
            false => self.size.current(),
        }
    }

    /// A packet that tests whether the path carries `size` bytes. It is ACK-eliciting, and has no
    /// contents to retransmit.
    fn transmit_size(&mut self, now: Time, size: u32, out: &mut Vec<u8>) -> Option<Transmit> {
        let start = out.len();
        frame::encode_departure(self.departure(now), out);
        if Frame::Ping.encode(out).is_err() {
            out.truncate(start);
            return None;
        }
        out.resize(start + size as usize, 0);
        self.size.on_tried(now, self.sent.next_number(), size);
        let contents = Contents {
            tries_size: true,
            ..Contents::default()
        };
        Some(self.commit(now, size, false, 0, contents))
    }

    /// The packet with the close, if it is due. The number of sections of each stream precedes the
    /// close, as far as there is room, so that the peer knows of sections that never arrived.
    fn transmit_close(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        let departure = self.departure(now);
        let close = Frame::Close(self.lifecycle.take_close()?);
        let start = out.len();
        frame::encode_departure(departure, out);
        let most = self.size.base() as usize;
        let mut builder = Builder::new(out, start, most.saturating_sub(close.size()));
        for (stream, sections) in self.outbox.counts() {
            builder.push(&Frame::End(End {
                stream: stream.0,
                sections,
            }));
        }
        if close.encode(out).is_err() {
            out.truncate(start);
            return None;
        }
        let size = u32::try_from(out.len() - start).unwrap_or(u32::MAX);
        Some(self.commit(now, size, false, 0, Contents::default()))
    }
}

fn put(contents: &mut Contents, chunk: Chunk) {
    match &contents.chunk {
        None => contents.chunk = Some(chunk),
        Some(_) => contents.more.push(chunk),
    }
}

/// The header of a piece of a section, with times since `epoch`.
fn header(epoch: Time, meta: &Meta, floor: SectionId, offset: u32) -> SectionHeader {
    let since = |time: Time| {
        if time.is_never() {
            time
        } else {
            Time::ZERO + time.saturating_since(epoch)
        }
    };
    // Later times than a frame can express are written as the maximum source time, and as no
    // deadline.
    const FURTHEST: Span = Span::from_micros(MAX_TIME_US - 1);
    let source_time = since(meta.source_time.min(meta.deadline)).min(Time::ZERO + FURTHEST);
    let deadline = since(meta.deadline);
    let is_near = deadline.saturating_since(source_time) <= FURTHEST;
    SectionHeader {
        stream: meta.stream.0,
        section: meta.section.0,
        floor: floor.0,
        offset,
        total: meta.length,
        source_time,
        deadline: if is_near { deadline } else { Time::MAX },
        importance: meta.importance.0,
        needs: meta.needs.map(|section| section.0),
        is_retransmission: false,
    }
}

fn dropped(notice: Notice) -> Dropped {
    Dropped {
        stream: notice.stream.0,
        section: notice.section.0,
        reason: notice.reason,
    }
}

fn micros(span: Span) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

/// The minimum room for the bytes of a piece in the rest of a packet, without the header of the
/// piece.
const MIN_PIECE: usize = 64;
