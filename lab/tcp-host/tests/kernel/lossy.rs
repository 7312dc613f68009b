//! A device that loses, repeats, delays and damages packets, in both directions.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use comity_tcp_host::net::{Device, Tun};

/// Out of 1,000 packets in each direction, the numbers of those that are disturbed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Disturbance {
    pub(super) lost: u64,
    pub(super) repeated: u64,
    pub(super) overtaken: u64,
    pub(super) damaged: u64,
}

pub(super) struct Lossy {
    tun: Tun,
    disturbance: Disturbance,
    random: u64,
    /// A packet to the kernel that the next one overtakes.
    held: Option<Vec<u8>>,
    /// Packets from the kernel that arrive next, the last one first.
    arriving: Vec<Vec<u8>>,
    current: Vec<u8>,
}

enum Fate {
    Arrives,
    Lost,
    Repeated,
    Overtaken,
    Damaged,
}

impl Disturbance {
    fn fate(self, drawn: u64) -> Fate {
        let mut limit = 0;
        let mut is_below = |share: u64| {
            limit += share;
            drawn < limit
        };
        if is_below(self.lost) {
            Fate::Lost
        } else if is_below(self.repeated) {
            Fate::Repeated
        } else if is_below(self.overtaken) {
            Fate::Overtaken
        } else if is_below(self.damaged) {
            Fate::Damaged
        } else {
            Fate::Arrives
        }
    }
}

impl Lossy {
    pub(super) fn new(tun: Tun, disturbance: Disturbance, seed: u64) -> Self {
        Self {
            tun,
            disturbance,
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            held: None,
            arriving: Vec::new(),
            current: Vec::new(),
        }
    }

    /// A number below 1,000 (xorshift64).
    fn draw(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % 1_000
    }
}

impl AsFd for Lossy {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tun.as_fd()
    }
}

fn damage(packet: &[u8], drawn: u64) -> Vec<u8> {
    let mut damaged = packet.to_vec();
    let offset = drawn as usize % damaged.len();
    damaged[offset] ^= 1 << (drawn % 8);
    damaged
}

impl Device for Lossy {
    fn receive(&mut self) -> io::Result<&[u8]> {
        loop {
            if let Some(packet) = self.arriving.pop() {
                self.current = packet;
                break;
            }
            self.current = self.tun.receive()?.to_vec();
            let drawn = self.draw();
            match self.disturbance.fate(drawn) {
                Fate::Arrives => break,
                Fate::Lost => {}
                Fate::Repeated => {
                    self.arriving.push(self.current.clone());
                    break;
                }
                Fate::Overtaken => {
                    let late = std::mem::take(&mut self.current);
                    let next = self.tun.receive().map(<[u8]>::to_vec);
                    self.arriving.push(late);
                    self.arriving.extend(next);
                }
                Fate::Damaged => {
                    let drawn = self.draw();
                    self.current = damage(&self.current, drawn);
                    break;
                }
            }
        }
        Ok(&self.current)
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        let drawn = self.draw();
        let held = self.held.take();
        match self.disturbance.fate(drawn) {
            Fate::Arrives => self.tun.send(packet)?,
            Fate::Lost => {}
            Fate::Repeated => {
                self.tun.send(packet)?;
                self.tun.send(packet)?;
            }
            Fate::Overtaken => self.held = Some(packet.to_vec()),
            Fate::Damaged => {
                let damaged = damage(packet, self.draw());
                // The kernel refuses what is not IP, alone. In a train it would compute the
                // checksum anew.
                let _ = self.tun.flush();
                let _ = self.tun.send(&damaged);
                let _ = self.tun.flush();
            }
        }
        held.map_or(Ok(()), |held| self.tun.send(&held))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.tun.flush()
    }
}
