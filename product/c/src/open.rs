//! An open connection: what it sends and receives, and when its descriptor is ready.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use comity::encoder::{Follower, Observation};
use comity::{
    CloseCode, Connection, Endpoint, Item, Rate, Section, SendError, Settings, TargetBitrate,
};
use comity_stream::{Dialer, MediaReceiver, MediaSender};
use tokio::runtime::{Builder, Runtime};

use crate::clock::now;
use crate::failure::Failure;
use crate::readiness::{Awaited, Direction, Readiness};

/// A connection, and its socket.
pub(crate) type Made = (Connection, Arc<Socket>);

/// The socket of connections. The last handle closes it and waits until the peers know: the process
/// may exit next.
pub(crate) enum Socket {
    Caller(Box<Dialer>),
    Listener(Endpoint),
}

/// An open connection.
pub(crate) struct Open {
    pub(crate) readiness: Arc<Readiness>,
    pub(crate) connection: Connection,
    socket: Mutex<Option<Arc<Socket>>>,
    pub(crate) target: TargetBitrate,
    /// The bitrate for an encoder, and its rule.
    encoder: Mutex<(Follower, u64)>,
    incoming: Mutex<Incoming<Item>>,
    room: Mutex<Awaited<()>>,
    pub(crate) sender: Mutex<Option<MediaSender>>,
    /// Whether nothing more may be sent.
    pub(crate) is_finishing: AtomicBool,
    reading: Mutex<Reading>,
}

/// The media that is being read.
#[derive(Default)]
struct Reading {
    receiver: MediaReceiver,
    /// What was made from the items so far, and how much of it was read.
    bytes: Vec<u8>,
    read: usize,
    is_over: bool,
}

/// Values that arrive one after another.
pub(crate) struct Incoming<T> {
    /// The next one, if it has arrived: the descriptor is readable as long as it waits.
    next: Option<T>,
    is_over: bool,
    awaited: Awaited<Option<T>>,
}

/// What an attempt to take a value found.
pub(crate) enum Taken<T> {
    Value(T),
    Nothing,
    End,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T> Incoming<T> {
    pub(crate) fn new(readiness: &Arc<Readiness>) -> Self {
        Self {
            next: None,
            is_over: false,
            awaited: Awaited::new(readiness.clone(), Direction::In),
        }
    }

    /// Looks whether a value has arrived, which `fetch` waits for.
    pub(crate) fn look_ahead<F>(&mut self, fetch: impl FnOnce() -> F)
    where
        F: Future<Output = Option<T>> + Send + 'static,
    {
        if self.next.is_none()
            && !self.is_over
            && let Some(next) = self.awaited.poll(fetch)
        {
            self.is_over = next.is_none();
            self.next = next;
        }
    }

    pub(crate) fn take<F>(&mut self, fetch: impl Fn() -> F) -> Taken<T>
    where
        F: Future<Output = Option<T>> + Send + 'static,
    {
        self.look_ahead(&fetch);
        match self.next.take() {
            Some(value) => {
                self.look_ahead(fetch);
                Taken::Value(value)
            }
            None if self.is_over => Taken::End,
            None => Taken::Nothing,
        }
    }

    /// Drops what waits, and with it the handles that it holds.
    pub(crate) fn close(&mut self) {
        self.awaited.forget();
        (self.next, self.is_over) = (None, true);
    }
}

impl Socket {
    pub(crate) fn release(this: Arc<Self>) {
        let (Some(socket), Ok(runtime)) = (Arc::into_inner(this), runtime()) else {
            return;
        };
        runtime.block_on(async {
            match socket {
                Self::Caller(mut dialer) => dialer.close().await,
                Self::Listener(endpoint) => endpoint.close().await,
            }
        });
    }
}

impl Open {
    pub(crate) fn new(
        (connection, socket): Made,
        settings: &Settings,
        readiness: &Arc<Readiness>,
    ) -> Self {
        let open = Self {
            readiness: readiness.clone(),
            target: connection.target_bitrate(),
            encoder: Mutex::new((Follower::new(settings), 0)),
            connection,
            socket: Mutex::new(Some(socket)),
            incoming: Mutex::new(Incoming::new(readiness)),
            room: Mutex::new(Awaited::new(readiness.clone(), Direction::Out)),
            sender: Mutex::default(),
            is_finishing: AtomicBool::new(false),
            reading: Mutex::default(),
        };
        open.look_ahead();
        open
    }

    /// Sets whether the descriptor is readable.
    pub(crate) fn look_ahead(&self) {
        let connection = self.connection.clone();
        lock(&self.incoming).look_ahead(|| async move { connection.recv().await });
    }

    pub(crate) fn take(&self) -> Taken<Item> {
        lock(&self.incoming).take(|| {
            let connection = self.connection.clone();
            async move { connection.recv().await }
        })
    }

    /// Submits a section; `None` if there is no room, until the descriptor is writable.
    pub(crate) fn try_send(&self, section: &Section) -> Result<Option<()>, Failure> {
        match self.connection.try_send(section.clone()) {
            Ok(_) => Ok(Some(())),
            Err(SendError::Full { .. }) => {
                self.await_room(section.payload.len());
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Makes the descriptor writable when there is room for so many bytes.
    pub(crate) fn await_room(&self, length: usize) {
        let connection = self.connection.clone();
        let mut room = lock(&self.room);
        // That of another length, in another thread, wakes too often or too late.
        room.forget();
        room.poll(|| async move { connection.room(length).await });
    }

    /// The bitrate for an encoder beside `other` sections, in bit/s; 0 while it is unknown.
    pub(crate) fn encoder_bitrate(&self, other: Rate) -> u64 {
        let connected_for = now().saturating_duration_since(self.connection.opened_at());
        let observed = Observation {
            connected_for,
            target: self.target.current(),
            other,
        };
        let mut encoder = lock(&self.encoder);
        if let Some(update) = encoder.0.poll_update(connected_for, &observed) {
            encoder.1 = update.encoder_bps;
        }
        encoder.1
    }

    /// Closes the connection at once, and its socket with the last one.
    pub(crate) fn close(&self) {
        self.connection.close(CloseCode::DONE, "");
        lock(&self.incoming).close();
        lock(&self.room).forget();
        *lock(&self.sender) = None;
        let socket = lock(&self.socket).take();
        if let Some(socket) = socket {
            Socket::release(socket);
        }
    }

    /// Why the connection cannot be read or written any more; `Ok` after a clean end.
    pub(crate) fn ended(&self) -> Result<(), Failure> {
        match self.connection.close_reason() {
            Some(reason) if !reason.is_clean() => Err(reason.into()),
            _ => Ok(()),
        }
    }

    /// Sends media; `None` if there is no room.
    pub(crate) fn write(&self, bytes: &[u8]) -> Result<Option<()>, Failure> {
        if let Some(reason) = self.connection.close_reason() {
            return Err(reason.into());
        }
        if self.is_finishing.load(Ordering::SeqCst) {
            let text = "the connection was shut down; open another one to send more";
            return Err(Failure::new(libc::EPIPE, text));
        }
        let mut sender = lock(&self.sender);
        let sender = sender.get_or_insert_with(|| MediaSender::new(self.connection.clone()));
        let is_taken = sender.push(bytes);
        if let Some(length) = sender.waiting_length() {
            self.await_room(length);
        }
        match is_taken {
            Ok(is_taken) => Ok(is_taken.then_some(())),
            Err(error) => Err(Failure::new(libc::EILSEQ, error.to_string())),
        }
    }

    /// Receives media: how many bytes; `None` if there are none now.
    pub(crate) fn read(&self, room: &mut [u8]) -> Result<Option<usize>, Failure> {
        let mut reading = lock(&self.reading);
        let Reading {
            receiver,
            bytes,
            read,
            is_over,
        } = &mut *reading;
        while *read == bytes.len() {
            bytes.clear();
            *read = 0;
            match self.take() {
                _ if *is_over => return self.ended().map(|()| Some(0)),
                Taken::Value(item) => receiver.push(item, bytes),
                Taken::Nothing => return Ok(None),
                Taken::End => {
                    receiver.finish(bytes);
                    *is_over = true;
                }
            }
        }
        let rest = &bytes[*read..];
        let count = rest.len().min(room.len());
        room[..count].copy_from_slice(&rest[..count]);
        *read += count;
        match *read < bytes.len() {
            true => self.readiness.set(Direction::In, true),
            false => self.look_ahead(),
        }
        Ok(Some(count))
    }
}

pub(crate) fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_time().build()
}
