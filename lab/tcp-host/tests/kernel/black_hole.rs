//! A path that drops large packets without a report.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use comity_tcp_host::net::{Device, Tun};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Joined, beside_kernel, config, join};

/// The largest packets that it carries.
const CARRIED: usize = 1_400;
/// What the host sends at a time.
const CHUNK: usize = 20_000;

struct Narrow {
    tun: Tun,
    current: Vec<u8>,
}

impl Narrow {
    const fn new(tun: Tun) -> Self {
        Self {
            tun,
            current: Vec::new(),
        }
    }
}

impl AsFd for Narrow {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tun.as_fd()
    }
}

impl Device for Narrow {
    fn receive(&mut self) -> io::Result<&[u8]> {
        loop {
            self.current = self.tun.receive()?.to_vec();
            if self.current.len() <= CARRIED {
                return Ok(&self.current);
            }
        }
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        if packet.len() <= CARRIED {
            self.tun.send(packet)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.tun.flush()
    }
}

/// The kernel confirms larger packets by reporting a duplicate.
#[test]
fn the_size_of_a_path_without_reports_is_found() {
    for is_v4 in [true, false] {
        beside_kernel(config(), &[], Narrow::new, |stack| async move {
            let Joined {
                mut ours,
                mut theirs,
            } = join(&stack, is_v4, false, 9_000).await;
            let mut chunk = vec![0; CHUNK];
            let mut count = 0_u8;
            // A fallback to 1,024 or 1,280 bytes comes first.
            loop {
                count += 1;
                ours.write_all(&[count; CHUNK]).await.unwrap();
                theirs.read_exact(&mut chunk).await.unwrap();
                assert!(chunk.iter().all(|byte| *byte == count));
                let found = ours.info().unwrap().path_mtu as usize;
                if (CARRIED - 15..=CARRIED).contains(&found) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            let statistics = stack.statistics();
            assert_eq!((statistics.black_holes, statistics.icmp), (1, 0));
        });
    }
}
