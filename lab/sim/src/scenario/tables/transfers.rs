//! The tables of workloads that end: files, and the connections of a trace.

use comity_units::DataSize;

use super::super::kinds::{Choice, Either, POSITIVE_BYTES, Real, Text};
use super::super::schema::{Default, Nested, Optional, Required, table, tagged};

table! {
    /// An amount of data, and then the end of the flow.
    struct FileTable ("a file") {
        /// The amount: one for all flows, or a distribution from which each flow draws its own.
        size: FileSize = Required(Either::<FileSize, _, _>::of(
            POSITIVE_BYTES,
            Nested::<SizesTable>::KIND,
        ));
    }
}

/// The size of a file, as written.
#[derive(Clone, Debug)]
pub(in crate::scenario) enum FileSize {
    Fixed(DataSize),
    Drawn(SizesTable),
}

impl From<DataSize> for FileSize {
    fn from(bytes: DataSize) -> Self {
        Self::Fixed(bytes)
    }
}

impl From<SizesTable> for FileSize {
    fn from(sizes: SizesTable) -> Self {
        Self::Drawn(sizes)
    }
}

tagged! {
    /// A distribution of sizes.
    enum SizesTable ("a distribution of sizes") by kind {
        "pareto" => Pareto(ParetoTable);
        "empirical" => Empirical(EmpiricalTable);
    }
}

table! {
    /// The Pareto distribution: most transfers are small, and few carry most of the bytes.
    struct ParetoTable (
        "a Pareto distribution",
        from "Crovella, Harchol-Balter and Murta, Task Assignment in a Distributed System, SIGMETRICS 1998 (bounded Pareto)"
    ) {
        /// The mean size.
        mean: DataSize = Required(POSITIVE_BYTES);
        /// The shape. The smaller it is, the more the sizes differ: without `max`, their variance
        /// is infinite up to 2.
        shape: f64 = Default(Real { min: 1.001, max: 100.0 }, "1.2");
        /// The largest size. The minimum grows so that the mean stays. Without it, at a shape of
        /// 1.2, a run has too few flows to approach the mean.
        max: Option<DataSize> = Optional(POSITIVE_BYTES, "1 PiB");
    }
}

table! {
    /// The distribution of a file.
    struct EmpiricalTable ("an empirical distribution") {
        /// The file, with `bytes,share` in each line: a size, and the share of transfers that are
        /// no larger. Both rise, the share to 1. Sizes between two points are uniform.
        file: String = Required(Text("the name of a file of sizes"));
    }
}

table! {
    /// The connections of a trace, one for each flow: a flow starts when its connection does, after
    /// the group's `start`, and sends all bytes of one side at once. Connections without bytes of
    /// this side, and those that start after the end of the run, are left out. A flow carries data
    /// one way, so the requests, answers and pauses within a connection are not replayed, and the
    /// completion time has no pauses. The windows, the round trip and the loss of the traced
    /// connection are not used.
    struct TmixTable (
        "a trace of connections",
        from "ns Manual, chapter Tmix; the TCP evaluation suite, draft-irtf-iccrg-tcpeval-01"
    ) {
        /// The file of connection vectors, in the original format (lines with `SEQ`, `CONC`, `>`,
        /// `<`, `c>`, `c<`, `t`, `t>`, `t<`, `w`, `r`, `l`) or the alternate one (`S`, `C`, `I`,
        /// `A`, `w`, `r`, `l`).
        file: String = Required(Text("the name of a file of connections"));
        /// The side whose data the flow carries.
        sender: Side = Default(
            Choice(&[
                ("acceptor", Side::Acceptor, "the host that was called, in most traces a server"),
                ("initiator", Side::Initiator, "the host that opened the connection"),
            ]),
            "\"acceptor\"",
        );
        /// The factor of all starts: with 2, half as many connections arrive in a second.
        scale: f64 = Default(Real { min: 0.001, max: 1_000.0 }, "1");
    }
}

/// The side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::scenario) enum Side {
    Acceptor,
    Initiator,
}
