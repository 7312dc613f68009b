//! Bare datagrams, one a chunk.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::net::UdpSocket;
use tokio::time::timeout;

use super::{Ended, Outgoing, any_port, nobody_called, udp_drops, udp_socket};
use crate::arguments::{Receive, Send};
use crate::chunk::{Frame, SIZE};
use crate::clock::{now_ns, sleep_until};
use crate::failure::{Context, Failure, Result};
use crate::sink::Sink;

const HELLO: &[u8] = b"hello";
const HELLO_EVERY: Duration = Duration::from_millis(100);

pub struct Sender {
    socket: UdpSocket,
    sent: u64,
    refused: u64,
}

pub async fn connect(arguments: &Send) -> Result<Sender> {
    let socket = udp_socket(any_port(arguments.connect))?;
    let peer = arguments.connect;
    socket
        .connect(peer)
        .await
        .context(format!("no route to {peer}; add one"))?;
    let give_up = now_ns() + arguments.common.wait.as_nanos() as u64;
    let mut answer = [0; 16];
    loop {
        // No receiver listens yet: this returns the error of the last datagram.
        let _ = socket.send(HELLO).await;
        if let Ok(Ok(_)) = timeout(HELLO_EVERY, socket.recv(&mut answer)).await {
            break;
        }
        if now_ns() >= give_up {
            return Err(Failure(format!(
                "no receiver answers at {peer}; start `compare receive` there first"
            )));
        }
    }
    Ok(Sender {
        socket,
        sent: 0,
        refused: 0,
    })
}

impl Outgoing for Sender {
    fn give(&mut self, _frame: &Frame, payload: Bytes, _deadline_ns: u64) -> Result<()> {
        for chunk in payload.chunks(SIZE) {
            match self.socket.try_send(chunk) {
                Ok(_) => self.sent += 1,
                Err(_) => self.refused += 1,
            }
        }
        Ok(())
    }

    fn broken(&self) -> Option<String> {
        None
    }

    async fn finish(self, until_ns: u64) -> Result<Value> {
        sleep_until(until_ns).await;
        Ok(json!({ "datagrams_sent": self.sent, "datagrams_refused": self.refused }))
    }
}

pub async fn receive(arguments: &Receive, sink: &Sink) -> Result<Ended> {
    let socket = udp_socket(arguments.listen)?;
    let mut datagram = [0; 2_048];
    let hello = timeout(arguments.common.wait, socket.recv_from(&mut datagram)).await;
    let (_, peer) = hello
        .map_err(|_| nobody_called(&arguments.common))?
        .context("cannot receive datagrams")?;
    socket
        .send_to(HELLO, peer)
        .await
        .context(format!("no route to {peer}; add one"))?;
    let over = sink.over();
    tokio::pin!(over);
    loop {
        let length = tokio::select! {
            received = socket.recv(&mut datagram) => received.context("cannot receive datagrams")?,
            () = &mut over => break,
        };
        match &datagram[..length] {
            HELLO => {
                let _ = socket.try_send_to(HELLO, peer);
            }
            chunk => sink.chunk(chunk),
        }
    }
    Ok(Ended {
        why: "the source had ended".into(),
        statistics: json!({ "socket_drops": udp_drops(arguments.listen.port()) }),
    })
}
