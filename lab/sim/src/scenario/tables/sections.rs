//! The tables of the deadline transport and of its sources.

use comity_transport::timeline::{Deliver, DropPolicy, Reliability};
use comity_units::{DataSize, Rate, Span};

use super::super::kinds::{
    Amount, Choice, Count, Either, Extent, ExtentKind, Flag, List, POSITIVE_SPAN, RATE, Real, SPAN,
    Text, Word,
};
use super::super::parameters::{ControllerName, ParameterTable, ParametersKind};
use super::super::schema::{Default, Nested, Optional, Required, table};

/// No deadlines.
const NO_LATENCY: Option<Span> = None;

table! {
    /// The deadline transport. It carries sections of data, and each must arrive within `latency`.
    struct SectionsTable ("sections") {
        /// The congestion controller. A run from Python may add others, as for TCP.
        controller: String = Default(ControllerName, "\"steady\"");
        /// The parameters of the controller.
        parameters: Option<ParameterTable> = Optional(ParametersKind, "the controller's defaults");
        /// The initial congestion window.
        initial_window: Extent = Default(
            ExtentKind { min: 1, unlimited: false },
            "\"10 packets\"",
        );
        /// The time from the creation of a section to its deadline, or `"none"` for no deadlines.
        latency: Option<Option<Span>> = Optional(
            Either::<Option<Span>, _, _>::of(Word("none", NO_LATENCY), POSITIVE_SPAN),
            "\"120ms\", and \"none\" with a greedy workload",
        );
        /// When the sender abandons sections by itself.
        drop: DropPolicy = Default(
            Choice(&[
                ("infeasible", DropPolicy::Infeasible, "when they cannot arrive in time any more"),
                ("expired", DropPolicy::Expired, "when their deadline has passed"),
                ("never", DropPolicy::Never, "never: the sender sends them even if they are late"),
            ]),
            "\"infeasible\"",
        );
        /// When the receiver delivers sections to its application.
        deliver: Deliver = Default(
            Choice(&[
                ("paced", Deliver::Paced, "at their deadline"),
                ("early", Deliver::Early, "in order, as soon as they are complete"),
            ]),
            "\"paced\"",
        );
        /// How long the sender retransmits lost bytes.
        reliability: Option<Reliability> = Optional(
            Choice(&[
                ("timeline", Reliability::Timeline, "until the deadline of their section"),
                ("none", Reliability::None, "never"),
                ("full", Reliability::Full, "until they have arrived; deadlines are not enforced"),
            ]),
            "\"timeline\"; \"none\" with \"iftp\" and \"psp\", whose papers do not retransmit",
        );
        /// The protected payload of a full packet. A packet on the wire has `overhead` in addition.
        payload: DataSize = Default(
            Amount { min: DataSize::new(600), max: DataSize::new(60_000) },
            "\"1423B\"",
        );
        /// The overhead of a packet on the wire: 29 bytes of header and tag, UDP and IP.
        overhead: DataSize = Default(Amount { min: DataSize::ZERO, max: DataSize::new(1_000) }, "\"57B\"");
        /// Whether packets with sections are padded to `payload`, so that all have one size.
        pad: bool = Default(Flag, "false");
        /// The size of the destination's packets on the wire.
        acknowledgement: Option<DataSize> = Optional(
            Amount { min: DataSize::new(1), max: DataSize::new(65_535) },
            "what it holds, and `overhead`",
        );
        /// Whether packets are ECN-capable.
        ecn: bool = Default(Flag, "true");
        /// Whether the transport paces the window over the round trip if the controller does not
        /// pace.
        pace_windows: bool = Default(Flag, "true");
        /// The most ack-eliciting packets before an acknowledgement.
        ack_frequency: u32 = Default(Count { min: 1, max: 1_000 }, "4");
        /// The longest time from the first ack-eliciting packet to an acknowledgement.
        ack_delay: Span = Default(
            Amount { min: Span::ZERO, max: Span::from_secs(1) },
            "\"10ms\"",
        );
        /// The longest time between two packets.
        keep_alive: Span = Default(
            Amount { min: Span::from_millis(10), max: Span::from_secs(24 * 3600) },
            "\"1s\"",
        );
        /// The connection ends after this time without a packet.
        idle_timeout: Span = Default(
            Amount { min: Span::from_millis(100), max: Span::from_secs(24 * 3600) },
            "\"5s\"",
        );
        /// Whether the source sheds B and P frames while the path carries less than it produces.
        /// With `reliability = "full"` it sheds nothing.
        shed: bool = Default(Flag, "true");
        /// The size of the sections of workloads without frames.
        section: DataSize = Default(
            Amount { min: DataSize::new(1), max: DataSize::new(16 << 20) },
            "\"1200B\"",
        );
        /// The most bytes of sections in the sender, sent or not. The sender refuses further
        /// sections, and a greedy source pauses.
        buffer: DataSize = Default(
            Amount { min: DataSize::new(1), max: DataSize::new(1 << 30) },
            "\"16MiB\"",
        );
    }
}

table! {
    /// Frames of a synthetic encoder, in decoding order, one section each. For
    /// `transport = "sections"` and TCP with a `timeline`.
    struct VideoTable ("a video", from "this project") {
        /// The mean rate.
        rate: Rate = Required(RATE);
        /// Frames per second.
        fps: f64 = Default(Real { min: 0.1, max: 1_000.0 }, "30");
        /// Frames in a group of pictures. The first one is an intra frame.
        group: u32 = Default(Count { min: 1, max: 100_000 }, "30");
        /// The number of bidirectional frames between two references.
        b_frames: u32 = Default(Count { min: 0, max: 16 }, "2");
        /// The mean sizes of intra, predicted and bidirectional frames, in any unit.
        ratio: Vec<f64> = Default(
            List { item: Real { min: 0.001, max: 1_000_000.0 }, min: 3, max: 3 },
            "[5, 2, 1]",
        );
        /// The standard deviation of the sizes of frames of one type, as a share of their mean.
        /// Sizes are lognormal; 0 makes them equal.
        variation: f64 = Default(Real { min: 0.0, max: 10.0 }, "0");
    }
}

table! {
    /// Frames of an encoder that follows the target bitrate, one section each. Only for
    /// `transport = "sections"`. The first frame of each group is a key frame; all others are
    /// predicted from the frame before. A key frame also follows an abrupt change of the rate, and
    /// a pause.
    struct EncoderTable ("an encoder", from "RFC 8593, section 5; key frames of a size relative to the rate, and periodic ones, are chosen here") {
        /// The minimum rate (R_min).
        min_rate: Rate = Default(RATE, "\"150kbps\"");
        /// The maximum rate (R_max).
        max_rate: Rate = Default(RATE, "\"1.5Mbps\"");
        /// The rate before the connection announces a target. In slow start it announces twice what
        /// the flow has used, after half a second for the first time.
        initial_rate: Option<Rate> = Optional(RATE, "`max_rate`");
        /// After a change, the rate keeps its value for this time (τ_v). Then it follows the newest
        /// target.
        reaction: Span = Default(SPAN, "\"200ms\"");
        /// Frames per second.
        fps: f64 = Default(Real { min: 0.1, max: 1_000.0 }, "30");
        /// Frames from one key frame to the next.
        group: u32 = Default(Count { min: 1, max: 100_000 }, "30");
        /// The mean size of key frames, in mean sizes of all frames.
        key_size: f64 = Default(Real { min: 1.0, max: 1_000.0 }, "3.24");
        /// The number of frames, the key frame included, that together have the target rate (K_B):
        /// frames after a key frame are smaller.
        burst: u32 = Default(Count { min: 1, max: 100_000 }, "8");
        /// A change of the rate by at least this share begins a new group.
        abrupt: f64 = Default(Real { min: 0.0, max: 1_000.0 }, "0.5");
        /// The scale of the Laplace distribution of sizes, as a share of the mean size (SCALE_B).
        /// The standard deviation of the distribution is √2 times its scale.
        size_scale: f64 = Default(Real { min: 0.0, max: 1.0 }, "0.15");
        /// The scale of the Laplace distribution of times between frames, as a share of their mean
        /// (SCALE_t).
        interval_scale: f64 = Default(Real { min: 0.0, max: 1.0 }, "0.15");
        /// Times without frames, counted from the start of the run.
        pauses: Vec<PauseTable> = Default(
            List { item: Nested::<PauseTable>::KIND, min: 0, max: 1_000 },
            "[]",
        );
    }
}

table! {
    /// A time without frames.
    struct PauseTable ("a pause") {
        /// When the encoder stops.
        at: Span = Required(SPAN);
        /// How long it stops.
        lasts: Span = Required(POSITIVE_SPAN);
    }
}

table! {
    /// Frames of a file, in decoding order, one section each. For `transport = "sections"` and TCP
    /// with a `timeline`.
    struct FramesTable (
        "frames of a file",
        from "this project; for MPEG-1 Mukherjee and Brecht, Time-lined TCP, ICNP 2000, section 4"
    ) {
        /// The file, with `time_s,bytes,type` in each line. The type is I, P, B or -.
        file: String = Required(Text("the name of a file of frames"));
    }
}
