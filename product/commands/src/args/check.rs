//! The arguments of `comity check`.

use clap::Args;
use comity_units::Span;

use crate::values::quantity;

#[derive(Debug, Args)]
#[command(after_help = "Inputs:
  -                      standard input
  clip.ts                a file
  udp://:5000            datagrams from every sender to this port
  udp://@239.1.1.1:5000  datagrams to a multicast group
  rtp://..               the same as udp://, with RTP

Intervals are those of the arrivals for udp:// and rtp://. A file and - do not say when their
bytes arrived: their intervals are measured by the clock in the stream (PCR). A live input is
checked until you interrupt it, or --for ends. docs/reference/check.md defines each error.

Exit codes:
  0    no error of priority 1 or 2
  1    reading failed
  2    the command line or a URI is invalid
  3    there are errors of priority 1 or 2
  5    the address to listen on is in use, or does not belong to this host
  6    the file cannot be opened, or the input has no transport packets
  130  interrupted again, a second or more later; the program stopped at once

Examples:
  comity check clip.ts
  comity check udp://:5000 --for 60s
  ffmpeg -i clip.ts -c copy -f mpegts -muxrate 2M - | comity check -
  comity check clip.ts --json | jq '.errors[] | select(.count > 0)'
  comity check rtp://@239.1.1.1:5000 --for 10s --json | jq '.clocks[].jitter'")]
pub struct Check {
    /// The input: -, a file, udp:// or rtp://
    #[arg(value_name = "INPUT")]
    pub(crate) input: String,

    /// Check a live input for this time, such as 60s
    #[arg(long = "for", value_name = "TIME", value_parser = quantity::<Span>)]
    pub(crate) duration: Option<Span>,

    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,

    /// Print no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}
