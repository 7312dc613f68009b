//! The host, in virtual time.

use std::collections::VecDeque;
use std::net::SocketAddr;

use comity_tcp_host::{Config, ConnectionId, End, Host, KeepAlive, ListenerId, StreamError};
use comity_units::{DataSize, Span, Time};

use super::language::{Action, Call, Family, Script, SocketOption, Target};
use super::stack::Stack;
use super::wire::{SERVICE, local, mtu, peer};

/// What a number of a file stands for.
#[derive(Clone, Copy, Debug)]
struct File {
    role: Role,
    lingers: bool,
}

#[derive(Clone, Copy, Debug)]
enum Role {
    Unbound,
    Bound,
    Listener(ListenerId),
    Connection(ConnectionId),
}

pub(super) struct Comity {
    host: Host,
    family: Family,
    now: Time,
    files: Vec<File>,
    sent: VecDeque<(Time, Vec<u8>)>,
}

impl Comity {
    /// A host with the settings of a script: those of `setup.sh`, and the socket options, which are
    /// settings of the whole host.
    pub(super) fn new(script: &Script, family: Family) -> Result<Self, String> {
        let mut config = Config::new([local(family)]);
        config.mtu = mtu(family).into();
        // As setup.sh has it for Linux.
        config.controller = "reno".into();
        config.tcp.segmentation_offload = false;
        config.tcp.receive_buffer = DataSize::new(6 << 20);
        for (key, value) in &script.settings {
            set(&mut config, key, value)?;
        }
        for event in script.events(Target::Comity) {
            if let Action::Call(Call::Set { option, .. }, _) = &event.action {
                apply(&mut config, *option);
            }
        }
        let host = Host::new(config, [7; 32]).map_err(|problem| problem.to_string())?;
        Ok(Self {
            host,
            family,
            now: Time::from_secs(100),
            files: Vec::new(),
            sent: VecDeque::new(),
        })
    }

    /// Collects what leaves.
    fn drain(&mut self) {
        let mut packet = Vec::new();
        while self.host.poll_transmit(self.now, &mut packet) {
            self.sent.push_back((self.now, packet.clone()));
        }
        while self.host.poll_event().is_some() {}
    }

    /// Handles the next timer, if it is due until `limit`.
    fn next_timer(&mut self, limit: Time) -> bool {
        let next = self.host.next_timer();
        if next > limit {
            return false;
        }
        self.now = self.now.max(next);
        self.host.on_timer(self.now);
        self.drain();
        true
    }

    fn file(&mut self, file: i64) -> Result<&mut File, String> {
        let index = usize::try_from(file).map_err(|_| "EBADF")?;
        self.files.get_mut(index).ok_or_else(|| "EBADF".into())
    }

    fn connection(&mut self, file: i64) -> Result<ConnectionId, String> {
        match self.file(file)?.role {
            Role::Connection(id) => Ok(id),
            _ => Err("ENOTCONN".into()),
        }
    }

    fn open(&mut self, role: Role, lingers: bool) -> i64 {
        self.files.push(File { role, lingers });
        self.files.len() as i64 - 1
    }
}

/// A setting of Linux, as one of the host.
fn set(config: &mut Config, key: &str, value: &str) -> Result<(), String> {
    let is_on = value != "0";
    match key {
        "tcp_sack" => config.tcp.sack = is_on,
        "tcp_dsack" => config.tcp.duplicate_sack = is_on,
        "tcp_timestamps" => config.tcp.timestamps = is_on,
        "tcp_window_scaling" => config.tcp.window_scaling = is_on,
        // The host never lets a reset end TIME-WAIT (RFC 1337).
        "tcp_rfc1337" if is_on => {}
        "tcp_ecn" => config.tcp.ecn = value == "1",
        _ => return Err(format!("{key}: no setting of the host")),
    }
    Ok(())
}

fn apply(config: &mut Config, option: SocketOption) {
    let keep_alive = config.keep_alive.unwrap_or(KeepAlive {
        idle: Span::from_secs(7_200),
        interval: Span::from_secs(75),
        probes: 9,
    });
    match option {
        // The host has no Nagle algorithm, and lingering is the file's.
        SocketOption::ReuseAddress | SocketOption::NoDelay | SocketOption::LingerZero => {}
        // Linux doubles the value for its own bookkeeping, and offers half of that.
        SocketOption::ReceiveBuffer(size) => config.tcp.receive_buffer = DataSize::new(size as u64),
        SocketOption::SendBuffer(size) => config.send_buffer = size,
        SocketOption::KeepAlive => config.keep_alive = Some(keep_alive),
        SocketOption::KeepIdle(seconds) => {
            let idle = Span::from_secs(seconds.into());
            config.keep_alive = Some(KeepAlive { idle, ..keep_alive });
        }
        SocketOption::KeepInterval(seconds) => {
            let interval = Span::from_secs(seconds.into());
            config.keep_alive = Some(KeepAlive {
                interval,
                ..keep_alive
            });
        }
        SocketOption::KeepCount(probes) => {
            config.keep_alive = Some(KeepAlive {
                probes,
                ..keep_alive
            });
        }
    }
}

fn name(error: StreamError) -> String {
    let name = match error {
        StreamError::Ended(End::Aborted | End::FalseFeedback) => "ECONNABORTED",
        StreamError::Ended(End::Refused) => "ECONNREFUSED",
        StreamError::Ended(End::Reset) => "ECONNRESET",
        StreamError::Ended(End::TimedOut) => "ETIMEDOUT",
        StreamError::Ended(End::Unreachable) => "EHOSTUNREACH",
        StreamError::ShutDown => "EPIPE",
        StreamError::Unknown => "EBADF",
        StreamError::WouldBlock => "EAGAIN",
        StreamError::Empty
        | StreamError::Gap
        | StreamError::InSections
        | StreamError::TooLarge { .. } => "EINVAL",
    };
    name.into()
}

impl Stack for Comity {
    fn target(&self) -> Target {
        Target::Comity
    }

    fn now(&self) -> Time {
        self.now
    }

    fn wait_until(&mut self, at: Time) {
        while self.next_timer(at) {}
        self.now = self.now.max(at);
    }

    fn next_packet(&mut self, limit: Time) -> Option<(Time, Vec<u8>)> {
        while self.sent.is_empty() && self.next_timer(limit) {}
        self.sent.pop_front()
    }

    fn inject(&mut self, packet: &[u8]) {
        self.host.handle_packet(self.now, packet);
        self.drain();
    }

    fn call(&mut self, call: Call) -> Result<i64, String> {
        let now = self.now;
        let result = match call {
            Call::Socket => self.open(Role::Unbound, false),
            // All calls return at once, and the host has the options since its beginning.
            Call::NonBlocking { .. } => 0,
            Call::Set { file, option } => {
                let file = self.file(file)?;
                file.lingers |= option == SocketOption::LingerZero;
                0
            }
            Call::Bind { file } => {
                self.file(file)?.role = Role::Bound;
                0
            }
            Call::Listen { file, backlog } => {
                let address = SocketAddr::new(local(self.family), SERVICE);
                let listener = self.host.listen(address, backlog as usize);
                let listener = listener.map_err(|error| error.to_string())?;
                self.file(file)?.role = Role::Listener(listener);
                0
            }
            Call::Accept { file } => {
                let File { role, lingers } = *self.file(file)?;
                let Role::Listener(listener) = role else {
                    return Err("EINVAL".into());
                };
                let id = self.host.accept(listener).ok_or("EAGAIN")?;
                self.open(Role::Connection(id), lingers)
            }
            Call::Connect { file } => {
                let remote = SocketAddr::new(peer(self.family), SERVICE);
                let id = self.host.connect(now, remote, None);
                let id = id.map_err(|error| error.to_string())?;
                self.file(file)?.role = Role::Connection(id);
                self.drain();
                return Err("EINPROGRESS".into());
            }
            Call::ShutDownWrite { file } => {
                let id = self.connection(file)?;
                self.host.shutdown(now, id);
                0
            }
            Call::Close { file } => {
                let File { role, lingers } = *self.file(file)?;
                match role {
                    Role::Connection(id) => {
                        if lingers {
                            self.host.abort(now, id);
                        }
                        self.host.release(now, id);
                    }
                    Role::Listener(listener) => self.host.unlisten(now, listener),
                    Role::Unbound | Role::Bound => {}
                }
                0
            }
            Call::Write { .. } | Call::Read { .. } => unreachable!("calls with bytes"),
        };
        self.drain();
        Ok(result)
    }

    fn write(&mut self, file: i64, bytes: &[u8]) -> Result<i64, String> {
        let id = self.connection(file)?;
        let written = self.host.write(id, bytes).map_err(name)?;
        self.drain();
        Ok(written as i64)
    }

    fn read(&mut self, file: i64, length: usize) -> Result<Vec<u8>, String> {
        let id = self.connection(file)?;
        let mut bytes = vec![0; length];
        let length = self.host.read(id, &mut bytes).map_err(name)?;
        bytes.truncate(length);
        self.drain();
        Ok(bytes)
    }

    fn tolerance(&self, _: Span) -> Span {
        Span::from_millis(1)
    }
}
