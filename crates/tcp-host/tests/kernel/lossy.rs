//! A device that loses, repeats, delays and damages packets, in both directions.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, PoisonError};

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
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    random: u64,
    /// A packet to the kernel that the next one overtakes.
    held: Option<Vec<u8>>,
    /// Packets from the kernel that arrive next.
    arriving: Vec<Vec<u8>>,
}

impl State {
    /// A number below 1,000 (xorshift64).
    fn draw(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % 1_000
    }
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
        let state = State {
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            held: None,
            arriving: Vec::new(),
        };
        Self {
            tun,
            disturbance,
            state: Mutex::new(state),
        }
    }
}

impl AsFd for Lossy {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tun.as_fd()
    }
}

fn damage(packet: &[u8], drawn: u64) -> Vec<u8> {
    let mut damaged = packet.to_vec();
    let place = drawn as usize % damaged.len();
    damaged[place] ^= 1 << (drawn % 8);
    damaged
}

impl Device for Lossy {
    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(packet) = state.arriving.pop() {
                buffer[..packet.len()].copy_from_slice(&packet);
                return Ok(packet.len());
            }
            let length = self.tun.receive(buffer)?;
            let drawn = state.draw();
            match self.disturbance.fate(drawn) {
                Fate::Arrives => return Ok(length),
                Fate::Lost => {}
                Fate::Repeated => {
                    state.arriving.push(buffer[..length].to_vec());
                    return Ok(length);
                }
                Fate::Overtaken => {
                    let late = buffer[..length].to_vec();
                    let next = self.tun.receive(buffer);
                    state.arriving.push(late);
                    if let Ok(length) = next {
                        return Ok(length);
                    }
                }
                Fate::Damaged => {
                    let damaged = damage(&buffer[..length], state.draw());
                    buffer[..length].copy_from_slice(&damaged);
                    return Ok(length);
                }
            }
        }
    }

    fn send(&self, packet: &[u8]) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let drawn = state.draw();
        let held = state.held.take();
        match self.disturbance.fate(drawn) {
            Fate::Arrives => self.tun.send(packet)?,
            Fate::Lost => {}
            Fate::Repeated => {
                self.tun.send(packet)?;
                self.tun.send(packet)?;
            }
            Fate::Overtaken => state.held = Some(packet.to_vec()),
            Fate::Damaged => {
                let damaged = damage(packet, state.draw());
                // The kernel refuses what is not IP.
                let _ = self.tun.send(&damaged);
            }
        }
        held.map_or(Ok(()), |held| self.tun.send(&held))
    }
}
