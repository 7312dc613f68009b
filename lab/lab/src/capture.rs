//! Captures the packets offered to links, in files for packet analysers.

use std::borrow::Cow;
use std::io::{BufWriter, Write as _};
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use comity_units::Time;
use pcap_file::DataLink;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};

use crate::error::Error;
use crate::records;

/// A packet and the time of its offer.
type Offered = (Time, Box<[u8]>);

/// The captures of a run. A separate thread writes them, so that a slow disk does not delay the
/// router.
#[derive(Debug, Default)]
pub(crate) struct Captures {
    /// The writer for each link, if any.
    links: Vec<Option<Sender<Offered>>>,
}

/// The files of the captures, until they are complete.
#[derive(Debug, Default)]
pub(crate) struct Writers(Vec<(PathBuf, JoinHandle<Result<(), String>>)>);

impl Captures {
    /// Captures at these links, each into its file. `start_ns` is the start of the run in
    /// nanoseconds since 1970.
    pub(crate) fn begin(
        links: usize,
        files: &[(usize, String, PathBuf)],
        start_ns: u64,
    ) -> Result<(Self, Writers), Error> {
        let mut captures = Self::default();
        captures.links.resize_with(links, || None);
        let mut writers = Writers::default();
        for (link, name, path) in files {
            let purpose = format!("cannot write {}", path.display());
            let file = records::create(path).map_err(Error::system(purpose))?;
            let (sender, packets) = channel::<Offered>();
            let name = name.clone();
            let thread = std::thread::spawn(move || {
                let say = |error: pcap_file::PcapError| error.to_string();
                let mut writer = PcapNgWriter::new(BufWriter::new(file)).map_err(say)?;
                let interface = InterfaceDescriptionBlock {
                    linktype: DataLink::RAW,
                    snaplen: 0,
                    options: vec![
                        InterfaceDescriptionOption::IfName(Cow::Owned(name)),
                        // Time stamps in nanoseconds, 10^-9 s.
                        InterfaceDescriptionOption::IfTsResol(9),
                    ],
                };
                writer.write_pcapng_block(interface).map_err(say)?;
                for (time, bytes) in packets {
                    let block = EnhancedPacketBlock {
                        interface_id: 0,
                        timestamp: Duration::from_nanos(start_ns + time.as_nanos()),
                        // An IP packet has fewer than 2^16 bytes.
                        original_len: bytes.len() as u32,
                        data: Cow::Borrowed(&bytes),
                        options: Vec::new(),
                    };
                    writer.write_pcapng_block(block).map_err(say)?;
                }
                writer
                    .into_inner()
                    .flush()
                    .map_err(|error| error.to_string())
            });
            if let Some(slot) = captures.links.get_mut(*link) {
                *slot = Some(sender);
            }
            writers.0.push((path.clone(), thread));
        }
        Ok((captures, writers))
    }

    /// Captures a packet that is offered to a link.
    pub(crate) fn take(&self, link: usize, now: Time, packet: &[u8]) {
        if let Some(Some(sender)) = self.links.get(link) {
            // If a writer failed, it reports its error at the end.
            let _ = sender.send((now, packet.into()));
        }
    }
}

impl Writers {
    /// Waits until all files are complete. The captures must have been dropped.
    pub(crate) fn finish(self) -> Result<(), Error> {
        for (path, thread) in self.0 {
            let end = thread
                .join()
                .unwrap_or_else(|_| Err("its thread panicked".into()));
            end.map_err(|message| Error::Tool {
                command: format!("capture into {}", path.display()),
                message,
            })?;
        }
        Ok(())
    }
}
