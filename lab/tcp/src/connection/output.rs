//! The output of a connection: segments built from the decisions of its two halves.

use comity_congestion::Ecn;
use comity_units::{SeqNo, Time};

use super::super::codec::sack_room;
use super::super::segment::{Flags, Options, Segment, Timestamps};
use super::super::sender::Outgoing;
use super::super::state::State;
use super::super::timeline::SeqUpdate;
use super::timestamps::timestamp;
use super::{Connection, Refusal};

impl Connection {
    /// Returns the next segment to send now, if any.
    #[inline]
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        // The short path: most calls find nothing to send.
        let is_idle =
            self.state == State::Established && !self.receiver.ack_now && self.sender.is_idle();
        if is_idle {
            None
        } else {
            self.next_segment(now)
        }
    }

    #[inline(never)]
    fn next_segment(&mut self, now: Time) -> Option<Segment> {
        match self.state {
            State::Closed | State::Listen | State::SynSent | State::SynReceived
                if self.refusal.is_some() =>
            {
                self.refusal.take().map(Refusal::into_segment)
            }
            State::Closed if self.receiver.ack_now && !(self.was_reset || self.was_deceived) => {
                Some(self.pure_ack(now))
            }
            State::Closed | State::Listen => None,
            State::SynSent | State::SynReceived => self.poll_syn(now),
            _ => {
                if let Some(outgoing) = self.sender.poll(now, &self.config) {
                    return Some(self.data_segment(now, outgoing));
                }
                self.receiver.ack_now.then(|| self.pure_ack(now))
            }
        }
    }

    fn poll_syn(&mut self, now: Time) -> Option<Segment> {
        if self.sender.stream.next != 0 {
            return None;
        }
        self.sender.on_syn_sent(now, &self.config);
        let answers = self.state == State::SynReceived;
        let config = &self.config;
        let options = Options {
            mss: Some(u16::try_from(config.mss).unwrap_or(u16::MAX)),
            window_scale: config.window_scaling.then_some(self.receiver.scale),
            sack_permitted: config.sack,
            timestamps: config.timestamps.then(|| Timestamps {
                value: timestamp(now, self.config.timestamp_tick),
                echo: if answers {
                    self.recent_timestamp.value
                } else {
                    0
                },
            }),
            seq_update: config
                .timeline
                .map(|_| SeqUpdate::to(config.initial_sequence)),
            ..Options::default()
        };
        let sequence = config.initial_sequence;
        let window = self.receiver.offer(&self.config, false);
        let mut segment = Segment {
            sequence,
            window,
            flags: Flags::SYN,
            options,
            ..Segment::default()
        };
        if self.config.ecn {
            segment.flags |= if answers {
                Flags::ECE
            } else {
                Flags::ECE | Flags::CWR
            };
        }
        if answers {
            segment.flags |= Flags::ACK;
            segment.acknowledgement = self.acknowledge();
        }
        Some(segment)
    }

    fn data_segment(&mut self, now: Time, outgoing: Outgoing) -> Segment {
        let mut flags = Flags::ACK;
        if outgoing.fin {
            flags |= Flags::FIN;
        }
        let is_last = outgoing.end() >= self.sender.stream.end || self.sender.ends_group();
        if outgoing.length > 0 && is_last {
            flags |= Flags::PSH;
        }
        let mut segment = self.segment(now, outgoing.start, outgoing.length, flags);
        if self.config.ecn {
            let (codepoint, flags) = self.sender.codepoint();
            segment.ecn = codepoint;
            segment.flags |= flags;
        }
        if self.sender.stream.line.is_some() {
            self.add_update(outgoing.start, &mut segment.options);
        }
        segment
    }

    fn pure_ack(&mut self, now: Time) -> Segment {
        // Not `next`, which moves back after a timeout: the peer would answer an old number as a
        // probe.
        let max = self.sender.stream.max;
        let mut segment = self.segment(now, max, 0, Flags::ACK);
        if self.sender.stream.line.is_some() {
            self.add_update(max, &mut segment.options);
        }
        segment
    }

    /// A segment that begins at the offset `start`. Every segment acknowledges the data that
    /// arrived.
    #[inline(always)]
    pub(super) fn segment(&mut self, now: Time, start: u64, payload: u32, flags: Flags) -> Segment {
        let sequence = self.config.initial_sequence + self.sender.stream.wire(start) as u32;
        let window = self
            .receiver
            .offer(&self.config, self.config.window_scaling);
        let acknowledgement = self.acknowledge();
        let mut segment = Segment {
            sequence,
            acknowledgement,
            payload,
            window,
            flags,
            options: Options::default(),
            ecn: Ecn::NotCapable,
        };
        if self.receiver.echoes_mark {
            segment.flags |= Flags::ECE;
        }
        if self.config.metered {
            self.add_measurements(now, payload > 0, &mut segment.options);
        }
        if self.config.timestamps || self.config.sack && self.receiver.has_blocks() {
            self.add_options(now, &mut segment.options);
        }
        segment
    }

    /// Adds the position of a time-lined stream to a segment at the offset `start`. An end without
    /// sections adds nothing.
    #[inline(never)]
    fn add_update(&self, start: u64, options: &mut Options) {
        let stream = &self.sender.stream;
        let initial = self.config.initial_sequence;
        if let Some(line) = &stream.line
            && line.statistics.sections > 0
        {
            options.seq_update = Some(line.update(stream.una, start, initial));
            // If not all blocks fit, the oldest are dropped.
            if !options.sack.is_empty() {
                options.sack.truncate(sack_room(options));
            }
        }
    }

    /// The options of a segment other than a SYN.
    fn add_options(&mut self, now: Time, options: &mut Options) {
        options.timestamps = self.config.timestamps.then(|| Timestamps {
            value: timestamp(now, self.config.timestamp_tick),
            echo: self.recent_timestamp.value,
        });
        if self.config.sack && self.receiver.has_blocks() {
            let room = sack_room(options).min(self.config.max_sack_blocks.into());
            options.sack = self.receiver.sack_blocks(room);
        }
    }

    fn acknowledge(&mut self) -> SeqNo {
        self.receiver.on_acknowledged();
        self.last_ack_sent = self.receiver.next;
        self.receiver.initial + self.receiver.next as u32
    }
}

impl Refusal {
    fn into_segment(self) -> Segment {
        let flags = match self.acknowledgement {
            Some(_) => Flags::RST | Flags::ACK,
            None => Flags::RST,
        };
        Segment {
            sequence: self.sequence,
            acknowledgement: self.acknowledgement.unwrap_or_default(),
            flags,
            ..Segment::default()
        }
    }
}
