//! One end, and a peer that sends arbitrary frames.

use bytes::Bytes;
use comity_congestion::Ecn;
use comity_congestion::table::{self, Parameters, Setup};
use comity_transport::datagram::{Config, Connection, Event, Violation};
use comity_transport::timeline::{Delivery, Importance, Outgoing, StreamId};
use comity_transport::wire::frame::{
    self, Ack, AckRange, AckRanges, Content, Frame, Framing, SectionHeader,
};
use comity_transport::wire::{CloseCode, Stamp};
use comity_units::{PacketNumber, Span, Time};

/// An end and its hostile peer.
pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) end: Connection<Bytes>,
    /// The number of the peer's next packet.
    pub(crate) next: u64,
    /// The packet numbers of the end, and whether each packet was ack-eliciting.
    pub(crate) sent: Vec<(u64, bool)>,
    pub(crate) deliveries: Vec<Delivery<Bytes>>,
    pub(crate) events: Vec<Event>,
    /// The code of the Close frame that the end sent.
    pub(crate) closed_with: Option<CloseCode>,
    payload: Vec<u8>,
}

impl World {
    pub(crate) fn new(config: Config) -> Self {
        let setup = Setup::new(comity_units::DataSize::new(u64::from(config.payload)));
        let row = table::find("reno").expect("a known controller");
        let controller = row.build(&setup, &Parameters::new()).expect("defaults");
        let now = Time::from_secs(1);
        let end = Connection::new(config, config.ack_delay, controller, None, now);
        Self {
            now,
            end: end.expect("a valid configuration"),
            next: 0,
            sent: Vec::new(),
            deliveries: Vec::new(),
            events: Vec::new(),
            closed_with: None,
            payload: Vec::new(),
        }
    }

    /// Delivers frames in one packet that left just now.
    pub(crate) fn say(&mut self, frames: &[Frame<'_>]) -> Result<(), Violation> {
        let departure = (self.now.as_nanos() / 1_000) as u32;
        self.say_at(departure, frames)
    }

    /// The same, with a chosen departure.
    pub(crate) fn say_at(&mut self, departure: u32, frames: &[Frame<'_>]) -> Result<(), Violation> {
        let mut payload = core::mem::take(&mut self.payload);
        payload.clear();
        frame::encode_departure(Stamp::from_micros(departure), &mut payload);
        for frame in frames {
            frame.encode(&mut payload).expect("within the format");
        }
        let result = self.give(&payload);
        self.payload = payload;
        result
    }

    /// Delivers a payload under the next number.
    pub(crate) fn give(&mut self, payload: &[u8]) -> Result<(), Violation> {
        let number = PacketNumber::new(self.next);
        self.next += 1;
        let result = self
            .end
            .on_packet(self.now, number, Ecn::NotCapable, payload);
        self.drain();
        result
    }

    /// Delivers a piece of a section: `length` bytes at `offset`.
    pub(crate) fn piece(&mut self, header: &SectionHeader, length: u32) -> Result<(), Violation> {
        let mut payload = core::mem::take(&mut self.payload);
        payload.clear();
        let departure = (self.now.as_nanos() / 1_000) as u32;
        frame::encode_departure(Stamp::from_micros(departure), &mut payload);
        header
            .encode(length, Framing::Length, Content::Present, &mut payload)
            .expect("within the format");
        payload.resize(payload.len() + length as usize, 0);
        let result = self.give(&payload);
        self.payload = payload;
        result
    }

    /// These numbers are acknowledged.
    pub(crate) fn acknowledge(&mut self, ranges: &[(u64, u64)]) -> Result<(), Violation> {
        let ranges: Vec<AckRange> = ranges
            .iter()
            .map(|&(first, last)| AckRange {
                first: PacketNumber::new(first),
                last: PacketNumber::new(last),
            })
            .collect();
        let ack = Ack {
            proof: None,
            ranges: AckRanges::new(&ranges).expect("ranges from the largest down"),
            delay: Span::ZERO,
            arrival: Stamp::from_micros(0),
            ecn: None,
        };
        self.say(&[Frame::Ack(ack)])
    }

    /// Lets time pass, with all timers at their times.
    pub(crate) fn pass(&mut self, span: Span) {
        let until = self.now + span;
        while self.end.next_timer() <= until {
            self.now = self.now.max(self.end.next_timer());
            self.end.on_timer(self.now);
            self.drain();
        }
        self.now = until;
    }

    /// Collects the departures and deliveries.
    pub(crate) fn drain(&mut self) {
        self.transmit();
        while let Some(delivery) = self.end.poll_delivery(self.now) {
            self.deliveries.push(delivery);
        }
        while let Some(event) = self.end.poll_event() {
            self.events.push(event);
        }
    }

    fn transmit(&mut self) {
        let mut out = Vec::new();
        while let Some(sent) = self.end.poll_transmit(self.now, &mut out) {
            let packet = frame::decode(&out, Content::Present).expect("our own");
            let mut asks = false;
            for frame in packet.frames {
                let frame = frame.expect("our own");
                asks |= frame.kind().is_ack_eliciting();
                if let Frame::Close(close) = frame {
                    self.closed_with = Some(close.code);
                }
            }
            self.sent.push((sent.number.get(), asks));
            out.clear();
        }
    }

    /// Submits a section to the end.
    pub(crate) fn submit(&mut self, length: usize) {
        let section = Outgoing {
            stream: StreamId(0),
            importance: Importance(1),
            source_time: self.now,
            deadline: Time::MAX,
            needs: None,
            payload: Bytes::from(vec![0; length]),
        };
        self.end.submit(self.now, section).expect("room");
        self.drain();
    }

    pub(crate) fn check_sums(&self) {
        let statistics = self.end.statistics();
        let bytes = &statistics.outbox.bytes;
        assert_eq!(bytes.submitted, bytes.sum());
        assert_eq!(statistics.inbox.received, statistics.inbox.sum());
        assert!(statistics.inbox.held <= self.end.config().receive_buffer);
    }
}

/// An ordinary section of stream 0.
pub(crate) fn header(section: u64, total: u32) -> SectionHeader {
    SectionHeader {
        stream: 0,
        section,
        floor: 0,
        offset: 0,
        total,
        source_time: Time::ZERO,
        deadline: Time::MAX,
        importance: 1,
        needs: None,
        is_retransmission: false,
    }
}
