//! Runs a script against a stack.

use std::collections::BTreeMap;

use comity_units::{Span, Time};

use super::language::{Action, Call, Event, Family, Outcome, Packet, Script, Segment, When};
use super::stack::Stack;
use super::wire::{Wire, stream};

/// How long a packet without a time is awaited.
const PATIENCE: Span = Span::from_secs(30);

/// Runs a script; `Err` says which line does not hold, what was expected and what happened.
pub(super) fn run(script: &Script, family: Family, stack: &mut dyn Stack) -> Result<(), String> {
    let mut run = Run {
        start: stack.now(),
        last: stack.now(),
        wire: Wire::new(family),
        files: BTreeMap::new(),
        read: 0,
        written: 0,
        stack,
    };
    let target = run.stack.target();
    for event in script.events(target) {
        run.event(event).map_err(|problem| {
            let (file, line, text) = (&script.file, event.line, &event.text);
            format!("{file}:{line} ({target:?}, {family:?}): {text}\n    {problem}")
        })?;
    }
    run.end()
        .map_err(|problem| format!("{} ({target:?}, {family:?}): {problem}", script.file))
}

struct Run<'a> {
    stack: &'a mut dyn Stack,
    start: Time,
    /// When the last event happened.
    last: Time,
    wire: Wire,
    /// The stack's numbers of files, by those of the script.
    files: BTreeMap<i64, i64>,
    /// Bytes of the connection that applications read and wrote.
    read: u32,
    written: u32,
}

impl Run<'_> {
    /// The earliest and the latest time of an event.
    fn window(&self, when: When) -> (Time, Time) {
        match when {
            When::At(at) => (self.start + at, self.start + at),
            When::After(span) => (self.last + span, self.last + span),
            When::Between(from, to) => (self.start + from, self.start + to),
            When::BetweenAfter(from, to) => (self.last + from, self.last + to),
            When::Any => (self.last, self.last + PATIENCE),
        }
    }

    fn event(&mut self, event: &Event) -> Result<(), String> {
        let (from, to) = self.window(event.when);
        match &event.action {
            Action::Call(call, expected) => {
                self.stack.wait_until(from);
                self.call(*call, expected)?;
                self.last = self.stack.now();
            }
            Action::Inbound(packet) => {
                self.stack.wait_until(from);
                let packet = match packet {
                    Packet::Segment(segment) => self.wire.write(segment)?,
                    Packet::Icmp(icmp) => self.wire.write_icmp(icmp)?,
                };
                self.stack.inject(&packet);
                self.last = self.stack.now();
            }
            Action::Outbound(segment) => self.outbound(segment, from, to)?,
        }
        Ok(())
    }

    fn outbound(&mut self, expected: &Segment, from: Time, to: Time) -> Result<(), String> {
        let tolerance = self.stack.tolerance(from.saturating_since(self.last));
        let limit = to + tolerance;
        let Some((at, packet)) = self.stack.next_packet(limit) else {
            return Err(format!("no packet until {}", self.since_start(limit)));
        };
        let actual = self.wire.read(&packet, expected)?;
        if actual != *expected {
            return Err(format!("a packet at {}: {actual}", self.since_start(at)));
        }
        if at + tolerance < from || at > limit {
            return Err(format!(
                "the packet came at {}, expected {} to {} within {tolerance}",
                self.since_start(at),
                self.since_start(from),
                self.since_start(to),
            ));
        }
        self.last = at;
        Ok(())
    }

    fn since_start(&self, at: Time) -> Span {
        at.saturating_since(self.start)
    }

    /// The call with the stack's number of the file.
    fn translate(&self, call: Call) -> Result<Call, String> {
        let of = |file: i64| {
            let known = self.files.get(&file).copied();
            known.ok_or_else(|| format!("no call returned the file {file}"))
        };
        Ok(match call {
            Call::Socket => Call::Socket,
            Call::NonBlocking { file } => Call::NonBlocking { file: of(file)? },
            Call::Set { file, option } => Call::Set {
                file: of(file)?,
                option,
            },
            Call::Bind { file } => Call::Bind { file: of(file)? },
            Call::Listen { file, backlog } => Call::Listen {
                file: of(file)?,
                backlog,
            },
            Call::Accept { file } => Call::Accept { file: of(file)? },
            Call::Connect { file } => Call::Connect { file: of(file)? },
            Call::Write { file, length } => Call::Write {
                file: of(file)?,
                length,
            },
            Call::Read { file, length } => Call::Read {
                file: of(file)?,
                length,
            },
            Call::ShutDownWrite { file } => Call::ShutDownWrite { file: of(file)? },
            Call::Close { file } => Call::Close { file: of(file)? },
        })
    }

    fn call(&mut self, call: Call, expected: &Outcome) -> Result<(), String> {
        let opens = matches!(call, Call::Socket | Call::Accept { .. });
        let result = match self.translate(call)? {
            Call::Write { file, length } => {
                let bytes = stream(1 + self.written, length as u32);
                let result = self.stack.write(file, &bytes);
                self.written += *result.as_ref().unwrap_or(&0) as u32;
                result
            }
            Call::Read { file, length } => match self.stack.read(file, length) {
                Ok(bytes) => {
                    let length = bytes.len() as u32;
                    if bytes != stream(1 + self.read, length) {
                        return Err(format!("{length} bytes that the peer did not send"));
                    }
                    self.read += length;
                    Ok(i64::from(length))
                }
                Err(error) => Err(error),
            },
            other => {
                if matches!(other, Call::Connect { .. }) {
                    self.wire.connects();
                }
                self.stack.call(other)
            }
        };
        let mut actual = match result {
            Ok(number) => Outcome::Returns(number),
            Err(name) => Outcome::Fails(name),
        };
        // Scripts have their own numbers of files.
        if let (true, Outcome::Returns(live), Outcome::Returns(script)) = (opens, &actual, expected)
        {
            self.files.insert(*script, *live);
            actual = Outcome::Returns(*script);
        }
        match actual == *expected {
            true => Ok(()),
            false => Err(format!("the call: {actual:?}")),
        }
    }

    /// Nothing else may have left.
    fn end(&mut self) -> Result<(), String> {
        let any = Segment {
            window: Some(0),
            options: Some(Vec::new()),
            ecn: Some(0),
            flags: Default::default(),
            start: 0,
            length: 0,
            acknowledgement: 0,
        };
        match self.stack.next_packet(self.last) {
            None => Ok(()),
            Some((at, packet)) => {
                let at = self.since_start(at);
                let read = self.wire.read(&packet, &any);
                let shown = read.map_or_else(|problem| problem, |segment| segment.to_string());
                Err(format!("at the end, a packet left at {at}: {shown}"))
            }
        }
    }
}
