//! Received packets: acknowledgements, losses, sections.

use comity_congestion::{
    Ack as AckEvent, Arrival, Ecn, Feedback, InOrderAck, LossCause, RateSample, Report, Tag,
};
use comity_units::{DataSize, PacketNumber, Span, Time};

use super::carried::Passage;
use super::congestion::Signal;
use super::connection::Connection;
use super::events::{PathFrame, Violation};
use super::parts::Contents;
use super::proof::token_of;
use super::statistics::PeerReport;
use crate::timeline::{Importance, Meta, Payload, SectionId, StreamId, inbox};
use crate::wire::Stamp;
use crate::wire::frame::{self, Ack, Credit, EcnCounts, Frame, Frames, ReceiverReport, Section};

/// The properties of a received packet, from its frames.
#[derive(Default)]
struct Reading {
    wants_answer: bool,
    section_bytes: u64,
    /// The elided bytes of its sections.
    elided: u64,
    tag: Tag,
    /// Whether there was no room for a section. The packet then counts as lost.
    is_refused: bool,
    /// Whether the peer requests credit.
    asks_for_room: bool,
    has_ack: bool,
    has_report: bool,
}

impl<P: Payload> Connection<P> {
    /// A packet arrived, with this number, this mark on its IP header, and this protected payload,
    /// already opened.
    ///
    /// Ignores packets that arrived before, and packets whose numbers are too old for their arrival
    /// to be known. The latter still count as missing.
    ///
    /// # Errors
    /// [`Violation`] if the peer violated the protocol. The connection is then closing.
    pub fn on_packet(
        &mut self,
        now: Time,
        number: PacketNumber,
        ecn: Ecn,
        payload: &[u8],
    ) -> Result<(), Violation> {
        if !self.lifecycle.on_packet() {
            return Ok(());
        }
        if self.reception.is_duplicate(number) {
            self.statistics.received.duplicates += 1;
            return Ok(());
        }
        if self.reception.is_forgotten(number) {
            return Ok(());
        }
        let result = self.read(now, number, ecn, payload);
        if let Err(violation) = result {
            self.fail(now, violation);
        }
        result
    }

    /// A packet arrived again. The owner of the connection detects this by the packet number,
    /// before it opens the packet.
    pub fn on_duplicate(&mut self) {
        self.statistics.received.duplicates += 1;
    }

    fn read(
        &mut self,
        now: Time,
        number: PacketNumber,
        ecn: Ecn,
        payload: &[u8],
    ) -> Result<(), Violation> {
        let packet = frame::decode(payload, Self::CONTENT).map_err(Violation::Malformed)?;
        if let Some(least) = self.loss.min() {
            self.clock.set_base_one_way(least / 2);
        }
        self.clock.on_arrival(now, packet.departure.as_micros());
        self.reception.on_packet(now, number);
        let reading = self.read_frames(now, number, packet.frames)?;
        let kind = (reading.section_bytes > 0, reading.wants_answer);
        let token = token_of(packet.departure);
        if (reading.is_refused || reading.asks_for_room) && !self.reception.refuses_sections() {
            self.advertised.on_shortage();
        }
        if reading.is_refused {
            return Ok(());
        }
        if !self.reception.acknowledge(now, number, token, ecn, kind) {
            return Ok(());
        }
        if reading.section_bytes > 0 {
            self.reports.on_sections();
        }
        let size = payload.len() as u64 + reading.elided;
        let wire = size + u64::from(self.config.overhead);
        self.statistics.received.packets += 1;
        self.statistics.received.wire_bytes += wire;
        let marked = ecn == Ecn::CongestionExperienced;
        self.statistics.received.marked_packets += u64::from(marked);
        if reading.wants_answer {
            let is_due = self.reports.on_arrival(&Arrival {
                now,
                number,
                payload: DataSize::new(size),
                wire: DataSize::new(wire),
                marked,
                tag: reading.tag,
            });
            if is_due {
                self.reception.demand_ack(now);
            }
        }
        Ok(())
    }

    fn read_frames(
        &mut self,
        now: Time,
        number: PacketNumber,
        frames: Frames<'_>,
    ) -> Result<Reading, Violation> {
        let mut reading = Reading::default();
        self.notifications.on_packet();
        for frame in frames {
            let frame = frame.map_err(Violation::Malformed)?;
            reading.wants_answer |= frame.kind().is_ack_eliciting();
            match frame {
                Frame::Padding { .. } | Frame::Ping => {}
                Frame::Blocked => reading.asks_for_room = true,
                // A second one could only add work.
                Frame::Ack(_) if reading.has_ack => {}
                Frame::Ack(ack) => {
                    reading.has_ack = true;
                    let answered = self.outbox.answered();
                    self.on_ack(now, number, &ack)?;
                    if self.outbox.answered() != answered {
                        self.credit.on_answer(number);
                    }
                }
                // An end without room for sections keeps nothing of them.
                Frame::Section(_) if !self.config.takes_sections() => reading.is_refused = true,
                Frame::Floor(_) | Frame::Dropped(_) | Frame::End(_)
                    if !self.config.takes_sections() => {}
                Frame::Section(section) => self.on_section(now, &section, &mut reading)?,
                Frame::Floor(floor) => self
                    .inbox
                    .on_floor(StreamId(floor.stream), SectionId(floor.floor))
                    .map_err(Violation::Sections)?,
                Frame::Dropped(dropped) => {
                    let result = self.inbox.on_drop(
                        StreamId(dropped.stream),
                        SectionId(dropped.section),
                        dropped.reason,
                    );
                    Self::take_or_refuse(result, &mut reading)?;
                }
                Frame::End(end) => self
                    .inbox
                    .on_end(StreamId(end.stream), end.sections)
                    .map_err(Violation::Sections)?,
                Frame::Credit(credit) => self.on_credit(number, &credit),
                Frame::Tag(tag) => reading.tag = tag,
                // As with a second Ack frame.
                Frame::Feedback(_) if reading.has_report => {}
                Frame::Feedback(report) => {
                    reading.has_report = true;
                    self.on_report(now, number, &report)?;
                }
                Frame::ReceiverReport(report) => {
                    if self.evidence.is_some() && report.packets > self.statistics.sent.packets {
                        return Err(Violation::FalseReport);
                    }
                    // Its counters only grow: one that was overtaken has lower ones.
                    let known = self.statistics.peer.as_ref();
                    let known = known.map(|known| (known.packets, known.complete));
                    if known <= Some((report.packets, report.complete)) {
                        self.statistics.peer = Some(self.peer(&report));
                    }
                }
                Frame::PathChallenge(token) => {
                    let frame = PathFrame::Challenge(token);
                    self.notifications.on_path_frame(frame);
                }
                Frame::PathResponse(token) => {
                    let frame = PathFrame::Response(token);
                    self.notifications.on_path_frame(frame);
                }
                Frame::Close(close) => {
                    self.play_out(now);
                    let timeout = self.loss.base_timeout();
                    self.lifecycle.on_close(now, timeout, &close);
                    // Everything is settled: whatever stands behind it in the packet comes too
                    // late.
                    break;
                }
            }
        }
        Ok(reading)
    }

    fn on_section(
        &mut self,
        now: Time,
        section: &Section<'_>,
        reading: &mut Reading,
    ) -> Result<(), Violation> {
        let header = &section.header;
        let meta = Meta {
            stream: StreamId(header.stream),
            section: SectionId(header.section),
            length: header.total,
            importance: Importance(header.importance),
            source_time: header.source_time,
            deadline: header.deadline,
            needs: header.needs.map(SectionId),
        };
        self.inbox
            .on_floor(meta.stream, SectionId(header.floor))
            .map_err(Violation::Sections)?;
        let (length, bytes) = match section.data {
            frame::Data::Bytes(bytes) => (bytes.len() as u32, bytes),
            frame::Data::Elided(length) => {
                reading.elided += section.framing.elided(length) as u64;
                (length, [].as_slice())
            }
        };
        reading.section_bytes += u64::from(length);
        if self.reception.refuses_sections() {
            reading.is_refused = true;
            return self
                .inbox
                .on_refused(meta.stream, meta.section)
                .map_err(Violation::Sections);
        }
        let (inbox, clock) = (&mut self.inbox, &self.clock);
        let result = inbox.on_chunk(now, clock, &meta, header.offset, length, bytes);
        Self::take_or_refuse(result, reading)
    }

    /// Turns a lack of room into a refusal of the packet: it is no violation, but the packet is not
    /// acknowledged.
    fn take_or_refuse(
        result: Result<(), inbox::Violation>,
        reading: &mut Reading,
    ) -> Result<(), Violation> {
        match result {
            Ok(()) => Ok(()),
            Err(
                inbox::Violation::TooManyBytes { .. }
                | inbox::Violation::TooManyFragments { .. }
                | inbox::Violation::TooManyRecords { .. },
            ) => {
                // What was under way when the room ran out. Unacknowledged, it counts as lost.
                reading.is_refused = true;
                Ok(())
            }
            Err(violation) => Err(Violation::Sections(violation)),
        }
    }

    /// The report of the peer, with each counter limited to what this end sent.
    fn peer(&self, report: &ReceiverReport) -> PeerReport {
        let sent = &self.statistics.sent;
        let sections = self.outbox.counters().sections.submitted;
        let complete = report.complete.min(sections);
        let on_time = report.on_time.min(complete);
        PeerReport {
            complete,
            on_time,
            late: report.late.min(complete - on_time),
            gaps: report.with_gaps.min(sections - complete),
            bytes: report.bytes.min(sent.section_bytes),
            packets: report.packets.min(sent.packets),
            duplicates: report.duplicates.min(sent.packets),
            one_way_latest_us: report.one_way_latest_us,
            one_way_least_us: report.one_way_least_us,
            jitter: report.jitter,
            buffered: report.buffered,
            drift_ppb: report.drift_ppb,
        }
    }

    /// The peer's meter reported in the packet `number`.
    fn on_report(
        &mut self,
        now: Time,
        number: PacketNumber,
        report: &Report,
    ) -> Result<(), Violation> {
        let acknowledged = self.sent.largest_acknowledged();
        if self.feedback.accepts(number, report, acknowledged) {
            let report = match &mut self.evidence {
                None => *report,
                Some(evidence) => match evidence.admit(number, report) {
                    Some(report) => report,
                    None => return Err(Violation::FalseReport),
                },
            };
            self.congestion.on_feedback(&Feedback {
                now,
                report: &report,
                rtt: self.loss.latest(),
            });
        }
        Ok(())
    }

    fn on_credit(&mut self, number: PacketNumber, credit: &Credit) {
        let answered = self.outbox.answered();
        if self.credit.on_report(number, credit.bytes, answered) {
            self.outbox.set_max_open(u64::from(credit.sections));
        }
    }

    // ---------------------------------------------------------------- acknowledgements

    /// The packet `by` has this Ack frame.
    fn on_ack(&mut self, now: Time, by: PacketNumber, ack: &Ack<'_>) -> Result<(), Violation> {
        let was_in_flight = self.sent.in_flight();
        let news = self
            .sent
            .on_ack(now, ack.ranges.iter())
            .map_err(|unsent| Violation::AcknowledgedUnsent { number: unsent.0 })?;
        if let Some(tokens) = &self.tokens
            && ack.proof != Some(tokens.proof(ack.ranges.iter()))
        {
            let number = ack.ranges.largest();
            return Err(Violation::AcknowledgedUnseen { number });
        }
        if let Some(evidence) = &mut self.evidence {
            evidence.on_ack(now, by, ack.ranges.iter());
        }
        if let Some(number) = news.largest_above_base {
            self.size.on_arrived(number);
        }
        if let Some(number) = self.size.tried()
            && ack
                .ranges
                .iter()
                .any(|range| range.first <= number && number <= range.last)
        {
            self.size.on_success(now);
            self.tell_size();
        }
        let mut rtt = None;
        if let Some(sent_at) = news.timed {
            let sample = self.loss.on_sample(sent_at, now, ack.delay);
            rtt = Some(sample);
            self.clock.on_round_trip(now, now.saturating_since(sent_at));
            self.reports.on_round_trip(now);
            let departure = Stamp::of(self.since_epoch(sent_at));
            self.path
                .on_arrival(now, i64::from(ack.arrival.since(departure)));
        }
        let chunks = news.contents.iter().flat_map(Contents::chunks);
        self.outbox.on_all_acked(chunks);
        for contents in &news.contents {
            if let Some(largest) = contents.acknowledged {
                self.reception.on_ack_seen(largest);
            }
            if contents.tells_room() {
                self.advertised.on_acked();
            }
        }
        let chunks = news.late_contents.iter().flat_map(Contents::chunks);
        self.outbox.on_all_acked(chunks);
        if let Some(&oldest) = news.late_sent_at.first() {
            self.loss.on_reordering(now, news.reordering, oldest);
            self.statistics.sent.spurious_losses += news.late_sent_at.len() as u64;
            self.congestion.on_late(now, &news.late_sent_at);
        }
        if news.packets > 0 {
            self.loss.on_progress(self.sent.in_flight_packets() > 0);
            self.departures.on_answer();
        }
        // Counts are left out when all are zero.
        let marks = self.on_marks(ack.ecn.unwrap_or_default(), news.packets);
        self.target.on_fates(now, news.bytes, 0);
        let newest_sent_at = news.largest.map_or(Time::ZERO, |(_, sent_at)| sent_at);
        if marks > 0 {
            let signal = Signal {
                sent_at: newest_sent_at,
                lost: 0,
                in_flight: was_in_flight,
                cause: LossCause::Mark,
            };
            self.on_signal(now, &signal);
        }
        let before = self.congestion.on_acknowledged(newest_sent_at);
        self.detect_losses_with(now, was_in_flight.saturating_sub(news.bytes), before);
        let arrived = self.congestion.arrival(ack.arrival);
        let largest = ack.ranges.largest();
        self.congestion
            .on_packets_acked(now, &news.numbers, (largest, arrived));
        if news.packets == 0 {
            self.congestion.obey();
            return Ok(());
        }
        let sample = self.measure_delivery(now, news.prior_in_flight, ack.delay);
        if let Some(number) = news.answered {
            self.congestion.on_in_order_ack(&InOrderAck {
                now,
                number,
                arrived_at: Some(arrived),
            });
        }
        let in_recovery = self.congestion.on_progress(newest_sent_at);
        let needs_sample = self.congestion.needs().rate_samples;
        self.congestion.on_ack(&AckEvent {
            now,
            acked: DataSize::new(news.bytes),
            rtt,
            in_flight: DataSize::new(self.sent.in_flight()),
            app_limited: self.congestion.was_app_limited(news.least),
            in_recovery,
            marked: u32::try_from(marks).unwrap_or(u32::MAX),
            packets: news.packets,
            sample: needs_sample.then_some(sample),
        });
        self.check_app_limited();
        self.update_target(now);
        Ok(())
    }

    /// The delivery rate over the flight of the newest acknowledged packet. The round trip excludes
    /// the peer's delay.
    fn measure_delivery(&mut self, now: Time, prior_in_flight: u64, delay: Span) -> RateSample {
        let sample = self.sent.sample(now, prior_in_flight);
        let least = self.loss.min().unwrap_or(Span::ZERO);
        // A queue of the reverse path delays acknowledgements, not data.
        let queued = { sample.rtt }.map_or(Span::ZERO, |rtt| rtt.saturating_sub(delay + least));
        let queued = queued.min(self.path.queueing());
        self.target.on_queued(now, queued);
        if let Some(sending) = sample.sending {
            let passage = Passage {
                delivered: sample.delivered,
                sending,
                interval: sample.interval,
                delay,
                queued,
                packet: DataSize::new(u64::from(self.size.current())),
            };
            self.target.on_passage(now, &passage, least);
        }
        RateSample {
            rtt: sample
                .rtt
                .map(|rtt| rtt.saturating_sub(delay).max(least.min(rtt))),
            ..sample.without_rate_below(least)
        }
    }

    /// The peer reports these counts of marked packets. Returns the number of new marks.
    fn on_marks(&mut self, counts: EcnCounts, packets: u32) -> u64 {
        let new_marks = self.ecn.on_counts(counts, packets);
        self.statistics.sent.marked_packets += new_marks;
        new_marks
    }

    // ---------------------------------------------------------------- losses

    /// The loss timer expired.
    pub(super) fn detect_losses(&mut self, now: Time) {
        let before = self.congestion.acknowledged_sent_at();
        self.detect_losses_with(now, self.sent.in_flight(), before);
    }

    /// Declares packets lost. `in_flight` bytes were in flight before, and the newest packet
    /// acknowledged before had left at `acknowledged`.
    fn detect_losses_with(&mut self, now: Time, in_flight: u64, acknowledged: Time) {
        let (lost, due_at) = self
            .sent
            .detect_losses(now, self.loss.threshold(), self.loss.delay());
        self.loss.due_at = due_at.unwrap_or(Time::MAX);
        self.sent
            .forget_missing(now.saturating_sub(self.loss.memory()));
        if lost.contents.is_empty() {
            return;
        }
        let losses = lost.packets.iter().zip(&lost.contents);
        let losses = losses.filter(|(_, contents)| !contents.tries_size);
        let losses = losses.map(|(packet, _)| *packet);
        self.statistics.sent.lost_packets += losses.clone().count() as u64;
        let silence = lost.silence(acknowledged);
        let sizes = lost.packets.iter().map(|lost| (lost.number, lost.payload));
        self.statistics.sent.black_holes += u64::from(self.size.on_lost(sizes));
        self.congestion.on_queue_changed();
        if let Some(evidence) = &mut self.evidence {
            evidence.on_lost(lost.packets.iter().map(|packet| packet.number));
        }
        self.notifications.on_losses(losses);
        for contents in lost.contents {
            self.requeue(now, contents);
        }
        self.congestion.on_packets_lost(now, &lost.losses);
        let Some(newest) = lost.newest_sent_at else {
            return;
        };
        if silence <= self.loss.smoothed().unwrap_or(Span::MAX) {
            self.target.on_fates(now, 0, lost.bytes);
        }
        let signal = Signal {
            sent_at: newest,
            lost: lost.bytes,
            in_flight,
            cause: match lost.by_delay {
                true => LossCause::Delay,
                false => LossCause::Reordering,
            },
        };
        self.on_signal(now, &signal);
        self.congestion.on_lost(&lost.sent_at);
        let has_samples = self.loss.smoothed().is_some();
        if has_samples && silence > self.loss.memory() {
            self.statistics.sent.persistent_congestions += 1;
            self.congestion.on_persistent_congestion(now, in_flight);
        }
    }

    /// The path lost or marked packets.
    fn on_signal(&mut self, now: Time, signal: &Signal) {
        let begins_episode = self.congestion.on_signal(now, signal);
        self.statistics.sent.loss_events += u64::from(begins_episode);
    }
}
