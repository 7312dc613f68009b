//! FQ-CoDel: a queue for each flow, each with controlled delay, served in turn.
//!
//! The hash of its flow chooses the queue of a packet. Two lists hold the non-empty queues: new
//! queues are served before old ones. The queue at the front of its list sends while its deficit is
//! positive. It then receives another quantum and moves to the end of the old list. An empty queue
//! of the new list moves there too; an empty one of the old list is removed. A flow that sends less
//! than a quantum in a turn therefore waits only for other new flows, and greedy flows have equal
//! shares in bytes.
//!
//! ```text
//! queue   = ⌊queues · hash(seed, flow) / 2⁶⁴⌋
//! deficit ← quantum                            when the queue joins the new list
//! deficit ← deficit − bytes                    when it sends; it may while deficit > 0
//! deficit ← deficit + quantum when it moves to the end of the old list
//! ```
//!
//! When the limit is exceeded, the queue with the most bytes drops from its head, until half of its
//! bytes or `drop_batch` packets are gone.
//!
//! Source: RFC 8290, section 4. Where the RFC leaves a choice, this agrees with Linux
//! (`sch_fq_codel.c`):
//! - The batch ends at half of the bytes; the RFC has half of the packets.
//! - Drops at the limit add to CoDel's count.
//! - CoDel drops nothing while all queues together hold at most `mtu`. With RFC 8289 alone, a queue
//!   of one packet is never controlled.
//!
//! Differs from Linux in:
//! - An emptied queue of the new list always moves to the old list, as in the RFC. Linux removes it
//!   if the old list is empty.
//! - The host states the flow, and the link's seed perturbs its hash.
//! - It has no memory limit and no `ce_threshold`.
//! - The limit counts the packet in transmission.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::cmp::Reverse;

use comity_units::{Seed, Time};

use crate::codel::Codel;
use crate::outcome::{DropCause, Outcome};
use crate::queue::{CodelConfig, FqCodelConfig};
use crate::waiting::{Controlled, Decisions, Fifo, Waiting};

/// All queues of a link.
#[derive(Clone, Debug)]
pub(crate) struct FqCodel<T> {
    queues: Box<[FlowQueue<T>]>,
    /// Queues of flows that have just begun, by index.
    new: VecDeque<usize>,
    /// Queues of flows that have sent more than a quantum, by index.
    old: VecDeque<usize>,
    packets: usize,
    bytes: u64,
    quantum: i64,
    drop_batch: u32,
    hash: Seed,
}

#[derive(Clone, Debug)]
struct FlowQueue<T> {
    fifo: Fifo<T>,
    codel: Codel,
    deficit: i64,
    /// Whether it is in one of the lists, as every non-empty queue is.
    is_listed: bool,
}

impl<T: Copy> FqCodel<T> {
    pub(crate) fn new(config: &FqCodelConfig, seed: Seed) -> Self {
        let codel = Codel::new(&CodelConfig {
            target: config.target,
            interval: config.interval,
            limit: config.limit,
            ecn: config.ecn,
            mtu: config.mtu,
        });
        let queue = || FlowQueue {
            fifo: Fifo::default(),
            codel: codel.clone(),
            deficit: 0,
            is_listed: false,
        };
        Self {
            queues: (0..config.queues).map(|_| queue()).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            packets: 0,
            bytes: 0,
            quantum: i64::try_from(config.quantum.get()).unwrap_or(i64::MAX),
            drop_batch: config.drop_batch,
            hash: seed.derive("fq_codel"),
        }
    }

    /// Waiting packets in all queues.
    pub(crate) const fn packets(&self) -> usize {
        self.packets
    }

    /// Waiting bytes in all queues.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends a packet to the queue of its flow.
    pub(crate) fn push(&mut self, packet: Waiting<T>) {
        let hash = u128::from(self.hash.index(packet.packet.flow).get());
        let index = ((hash * self.queues.len() as u128) >> 64) as usize;
        let Some(queue) = self.queues.get_mut(index) else {
            return;
        };
        self.packets += 1;
        self.bytes += u64::from(packet.packet.bytes);
        queue.fifo.push(packet);
        if !queue.is_listed {
            queue.is_listed = true;
            queue.deficit = self.quantum;
            self.new.push_back(index);
        }
    }

    /// Returns the packet to send now, after the drops that are due.
    pub(crate) fn dequeue(&mut self, now: Time, decided: &mut Decisions<T>) -> Option<Waiting<T>> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let queue = self.queues.get_mut(index)?;
            if queue.deficit <= 0 {
                queue.deficit = queue.deficit.saturating_add(self.quantum);
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let (packets, bytes) = (queue.fifo.packets(), queue.fifo.bytes());
            let elsewhere = self.bytes - bytes;
            let next = queue.codel.dequeue(
                now,
                &mut Controlled {
                    fifo: &mut queue.fifo,
                    elsewhere,
                    decided,
                    now,
                },
            );
            self.packets -= packets - queue.fifo.packets();
            self.bytes = elsewhere + queue.fifo.bytes();
            if let Some(next) = next {
                queue.deficit -= i64::from(next.packet.bytes);
                return Some(next);
            }
            list.pop_front();
            if is_new {
                self.old.push_back(index);
            } else {
                queue.is_listed = false;
            }
        }
    }

    /// Drops from the head of the longest queue, or of the first among equals.
    pub(crate) fn drop_from_longest(&mut self, now: Time, decided: &mut Decisions<T>) {
        let longest = self.new.iter().chain(&self.old).max_by_key(|&&index| {
            let fifo = self.queues.get(index).map(|queue| &queue.fifo);
            // Packets may be empty, and a listed queue may be too.
            let length = fifo.map(|fifo| (fifo.bytes(), fifo.packets() > 0));
            (length, Reverse(index))
        });
        let Some(queue) = longest
            .copied()
            .and_then(|index| self.queues.get_mut(index))
        else {
            return;
        };
        let before = queue.fifo.bytes();
        let mut drops = 0;
        while let Some(victim) = queue.fifo.take() {
            let outcome = Outcome::Dropped(DropCause::QueueFull);
            decided.push(now, victim.token, outcome);
            drops += 1;
            if drops >= self.drop_batch || before - queue.fifo.bytes() >= before / 2 {
                break;
            }
        }
        queue.codel.add_drops(drops);
        self.packets -= drops as usize;
        self.bytes -= before - queue.fifo.bytes();
    }
}
