//! Reads packet scripts: the part of packetdrill's language that the scripts use, one event a line.
//!
//! A comment behind a line says what Comity does instead, and why:
//!
//! ```text
//! +1 > S 0:0(0) <...>
//! //comity: +2 > S 0:0(0) <...>
//! //because: The timeout doubles from the first retransmission on.
//! ```
//!
//! `//comity-` stands for no line instead, and `//comity+: ...` for one more line.

use super::cursor::Cursor;
use super::language::{
    Action, Call, Difference, Event, Family, Flags, Icmp, Line, Outcome, Packet, Problem, Script,
    Segment, SocketOption, Target, TcpOption, When,
};

/// Reads the script in `text`.
pub(super) fn parse(file: &str, text: &str) -> Result<Script, String> {
    let mut reader = Reader::new(file);
    for (index, line) in text.lines().enumerate() {
        reader
            .line(index + 1, line.trim())
            .map_err(|problem| format!("{file}:{}: {problem}", index + 1))?;
    }
    let script = reader.finish();
    script.map_err(|problem| format!("{file}: {problem}"))
}

struct Reader {
    script: Script,
    comments: usize,
    /// The difference that waits for its reason.
    open: Option<Difference>,
    /// Comments may still add to the last reason.
    is_reason: bool,
}

impl Reader {
    fn new(file: &str) -> Self {
        Self {
            script: Script {
                file: file.into(),
                purpose: String::new(),
                source: String::new(),
                families: vec![Family::V4, Family::V6],
                settings: Vec::new(),
                lines: Vec::new(),
                differences: Vec::new(),
            },
            comments: 0,
            open: None,
            is_reason: false,
        }
    }

    fn line(&mut self, number: usize, line: &str) -> Result<(), String> {
        if let Some(comment) = line.strip_prefix("//") {
            return self.comment(number, comment);
        }
        self.is_reason = false;
        let code = line.split("//").next().unwrap_or_default().trim();
        if code.is_empty() {
            Ok(())
        } else if let Some(option) = code.strip_prefix("--ip_version=") {
            self.script.families = match option {
                "ipv4" => vec![Family::V4],
                "ipv6" => vec![Family::V6],
                _ => return Err(format!("{option}, expected `ipv4` or `ipv6`")),
            };
            Ok(())
        } else if let Some(command) = code.strip_prefix('`') {
            self.script.settings = settings(command)?;
            Ok(())
        } else {
            let event = event(number, code)?;
            self.script.lines.push(Line { only: None, event });
            Ok(())
        }
    }

    fn comment(&mut self, number: usize, comment: &str) -> Result<(), String> {
        if let Some(text) = comment.strip_prefix("comity") {
            self.is_reason = false;
            return self.difference(number, text);
        }
        if let Some(reason) = comment.strip_prefix("because:") {
            if let Some(open) = self.open.take() {
                self.script.differences.push(open);
            } else if !self.is_reason {
                return Err("a reason without a difference before it".into());
            }
            self.is_reason = true;
            if let Some(difference) = self.script.differences.last_mut() {
                let reason = reason.trim();
                let gap = if difference.reason.is_empty() {
                    ""
                } else {
                    " "
                };
                difference.reason = format!("{}{gap}{reason}", difference.reason);
            }
            return Ok(());
        }
        self.comments += 1;
        match self.comments {
            1 => self.script.purpose = comment.trim().into(),
            2 => self.script.source = comment.trim().into(),
            _ => {}
        }
        Ok(())
    }

    /// What Comity does instead of the line before, or besides it.
    fn difference(&mut self, number: usize, text: &str) -> Result<(), String> {
        let (replaces, added) = match text.split_at_checked(1) {
            Some((":", line)) => (true, Some(line.trim())),
            Some(("+", line)) => {
                let line = line.strip_prefix(':').ok_or("expected `//comity+:`")?;
                (false, Some(line.trim()))
            }
            Some(("-", "")) => (true, None),
            _ => return Err("expected `//comity: LINE`, `//comity+: LINE` or `//comity-`".into()),
        };
        let open = self.open.get_or_insert_with(|| Difference {
            line: number,
            ..Difference::default()
        });
        if replaces {
            let of_linux = |line: &&mut Line| line.only != Some(Target::Comity);
            let line = self.script.lines.iter_mut().rev().find(of_linux);
            let line = line.ok_or("no line before it")?;
            if line.only.is_some() {
                return Err("the line before has a replacement".into());
            }
            line.only = Some(Target::Linux);
            open.line = open.line.min(line.event.line);
            open.linux.push(line.event.text.clone());
        }
        if let Some(added) = added {
            open.comity.push(added.into());
            let (only, event) = (Some(Target::Comity), event(number, added)?);
            self.script.lines.push(Line { only, event });
        }
        Ok(())
    }

    fn finish(self) -> Result<Script, String> {
        if let Some(Difference { line, .. }) = self.open {
            return Err(format!(
                "expected `//because:` for the difference in line {line}"
            ));
        }
        for (what, text) in [
            ("purpose", &self.script.purpose),
            ("source", &self.script.source),
        ] {
            if text.is_empty() {
                return Err(format!("expected a comment with its {what}"));
            }
        }
        if self.script.lines.is_empty() {
            return Err("no events".into());
        }
        Ok(self.script)
    }
}

/// Reads the settings of `./setup.sh KEY=VALUE ...` in back quotes.
fn settings(command: &str) -> Result<Vec<(String, String)>, String> {
    let command = command
        .strip_suffix('`')
        .ok_or("expected a back quote at the end")?;
    let mut words = command.split_whitespace();
    if words.next() != Some("./setup.sh") {
        return Err(format!(
            "`{command}`, expected `./setup.sh [KEY=VALUE ...]`"
        ));
    }
    let pair = |word: &str| {
        let (key, value) = word
            .split_once('=')
            .ok_or_else(|| format!("{word}, expected KEY=VALUE"))?;
        Ok((key.into(), value.into()))
    };
    words.map(pair).collect()
}

fn event(line: usize, text: &str) -> Result<Event, String> {
    let mut at = Cursor::new(text);
    let when = when(&mut at)?;
    let action = if at.accept("<") {
        Action::Inbound(inbound(&mut at)?)
    } else if at.accept(">") {
        Action::Outbound(segment(&mut at)?)
    } else {
        let call = call(&mut at)?;
        Action::Call(call, outcome(&mut at)?)
    };
    at.end()?;
    Ok(Event {
        line,
        text: text.into(),
        when,
        action,
    })
}

fn when(at: &mut Cursor<'_>) -> Result<When, String> {
    if at.accept("*") {
        return Ok(When::Any);
    }
    let is_relative = at.accept("+");
    let first = at.seconds()?;
    if !at.accept("~") {
        return Ok(if is_relative {
            When::After(first)
        } else {
            When::At(first)
        });
    }
    if is_relative {
        at.expect("+")?;
    }
    let last = at.seconds()?;
    if last < first {
        return Err(format!(
            "a range from {first} to {last}, expected the earlier time first"
        ));
    }
    Ok(if is_relative {
        When::BetweenAfter(first, last)
    } else {
        When::Between(first, last)
    })
}

// ------------------------------------------------------------------- calls

fn call(at: &mut Cursor<'_>) -> Result<Call, String> {
    let name = at.word("`<`, `>` or the name of a call")?;
    at.expect("(")?;
    let call = match name {
        "socket" => {
            at.all_of(&["...", ",", "SOCK_STREAM", ",", "IPPROTO_TCP"])?;
            Call::Socket
        }
        "accept" => {
            let file = file(at)?;
            at.all_of(&["...", ",", "..."])?;
            Call::Accept { file }
        }
        "close" => Call::Close {
            file: at.integer()?,
        },
        name => {
            let file = file(at)?;
            match name {
                "fcntl" => {
                    at.all_of(&["F_SETFL", ",", "O_RDWR", "|", "O_NONBLOCK"])?;
                    Call::NonBlocking { file }
                }
                "setsockopt" => Call::Set {
                    file,
                    option: option(at)?,
                },
                "bind" => {
                    at.all_of(&["...", ",", "..."])?;
                    Call::Bind { file }
                }
                "connect" => {
                    at.all_of(&["...", ",", "..."])?;
                    Call::Connect { file }
                }
                "listen" => Call::Listen {
                    file,
                    backlog: at.integer()? as i32,
                },
                "write" => Call::Write {
                    file,
                    length: length(at)?,
                },
                "read" => Call::Read {
                    file,
                    length: length(at)?,
                },
                "shutdown" => {
                    at.expect("SHUT_WR")?;
                    Call::ShutDownWrite { file }
                }
                name => return Err(format!("no such call: {name}")),
            }
        }
    };
    at.expect(")")?;
    Ok(call)
}

/// The first argument, with the comma behind it.
fn file(at: &mut Cursor<'_>) -> Result<i64, String> {
    let file = at.integer()?;
    at.expect(",")?;
    Ok(file)
}

/// A buffer with any content, and its length.
fn length(at: &mut Cursor<'_>) -> Result<usize, String> {
    at.all_of(&["...", ","])?;
    Ok(at.integer()? as usize)
}

fn option(at: &mut Cursor<'_>) -> Result<SocketOption, String> {
    let level = at.word("a level")?;
    at.expect(",")?;
    let name = at.word("an option")?;
    at.expect(",")?;
    if (level, name) == ("SOL_SOCKET", "SO_LINGER") {
        at.all_of(&[
            "{", "onoff", "=", "1", ",", "linger", "=", "0", "}", ",", "8",
        ])?;
        return Ok(SocketOption::LingerZero);
    }
    at.expect("[")?;
    let value = at.integer()?;
    at.all_of(&["]", ",", "4"])?;
    Ok(match (level, name) {
        ("SOL_SOCKET", "SO_REUSEADDR") => SocketOption::ReuseAddress,
        ("SOL_SOCKET", "SO_RCVBUF") => SocketOption::ReceiveBuffer(value as usize),
        ("SOL_SOCKET", "SO_SNDBUF") => SocketOption::SendBuffer(value as usize),
        ("SOL_SOCKET", "SO_KEEPALIVE") => SocketOption::KeepAlive,
        ("SOL_TCP", "TCP_NODELAY") => SocketOption::NoDelay,
        ("SOL_TCP", "TCP_KEEPIDLE") => SocketOption::KeepIdle(value as u32),
        ("SOL_TCP", "TCP_KEEPINTVL") => SocketOption::KeepInterval(value as u32),
        ("SOL_TCP", "TCP_KEEPCNT") => SocketOption::KeepCount(value as u32),
        _ => return Err(format!("no such option: {name} of {level}")),
    })
}

/// `= 5`, or `= -1 EAGAIN (Resource temporarily unavailable)`.
fn outcome(at: &mut Cursor<'_>) -> Result<Outcome, String> {
    at.expect("=")?;
    let number = at.integer()?;
    if number >= 0 {
        return Ok(Outcome::Returns(number));
    }
    let name = at.word("the name of an error")?.into();
    at.expect("(")?;
    while !at.accept(")") {
        at.word("`)`")?;
    }
    Ok(Outcome::Fails(name))
}

// ------------------------------------------------------------------- packets

fn inbound(at: &mut Cursor<'_>) -> Result<Packet, String> {
    if !at.accept("icmp") {
        let mut segment = segment(at)?;
        segment.ecn.get_or_insert(0);
        segment
            .options
            .as_ref()
            .ok_or("a packet to send needs its options")?;
        if segment.window.is_none() {
            return Err("a packet to send needs its window".into());
        }
        return Ok(Packet::Segment(segment));
    }
    let kind = at.word("a type")?;
    let problem = match kind {
        "packet_too_big" => Problem::TooBig { mtu: mtu(at)? },
        "unreachable" => match at.word("a code")? {
            "frag_needed" => Problem::TooBig { mtu: mtu(at)? },
            "port_unreachable" => Problem::PortUnreachable,
            "host_unreachable" | "addr_unreachable" => Problem::HostUnreachable,
            code => return Err(format!("no such code: {code}")),
        },
        kind => return Err(format!("no such type: {kind}")),
    };
    at.expect("[")?;
    let (start, length) = range(at)?;
    at.expect("]")?;
    Ok(Packet::Icmp(Icmp {
        problem,
        start,
        length,
    }))
}

fn mtu(at: &mut Cursor<'_>) -> Result<u32, String> {
    at.expect("mtu")?;
    at.number()
}

/// `FIRST:END(LENGTH)`.
fn range(at: &mut Cursor<'_>) -> Result<(u32, u32), String> {
    let start = at.number()?;
    at.expect(":")?;
    let end = at.number()?;
    at.expect("(")?;
    let length = at.number()?;
    at.expect(")")?;
    if end.wrapping_sub(start) != length {
        return Err(format!(
            "{start}:{end}({length}), expected the length of the range"
        ));
    }
    Ok((start, length))
}

fn segment(at: &mut Cursor<'_>) -> Result<Segment, String> {
    let mut ecn = None;
    if at.accept("[") {
        ecn = Some(match at.word("a codepoint")? {
            "noecn" => 0,
            "ect1" => 1,
            "ect0" => 2,
            "ce" => 3,
            name => return Err(format!("no such codepoint: {name}")),
        });
        at.expect("]")?;
    }
    let flags = flags(at)?;
    let (start, length) = range(at)?;
    let acknowledgement = match (at.accept("ack"), flags.ack) {
        (true, true) => at.number()?,
        (false, false) => 0,
        (true, false) => return Err("`ack` without the flag".into()),
        (false, true) => return Err("the flag `.` without `ack`".into()),
    };
    let window = match at.accept("win") {
        true => Some(at.number()?),
        false => None,
    };
    let window = window.map(u16::try_from).transpose();
    Ok(Segment {
        ecn,
        flags,
        start,
        length,
        acknowledgement,
        window: window.map_err(|_| "a window above 65535")?,
        options: options(at)?,
    })
}

fn flags(at: &mut Cursor<'_>) -> Result<Flags, String> {
    let mut flags = Flags::default();
    let letters = at.flags("flags")?;
    for letter in letters.chars() {
        let flag = match letter {
            'F' => &mut flags.fin,
            'S' => &mut flags.syn,
            'R' => &mut flags.rst,
            'P' => &mut flags.psh,
            'E' => &mut flags.ece,
            'W' => &mut flags.cwr,
            '.' => &mut flags.ack,
            // No flags at all.
            '-' if letters == "-" => continue,
            _ => return Err(format!("no such flag: {letter}")),
        };
        *flag = true;
    }
    Ok(flags)
}

fn options(at: &mut Cursor<'_>) -> Result<Option<Vec<TcpOption>>, String> {
    let mut options = Vec::new();
    if !at.accept("<") {
        return Ok(Some(options));
    }
    if at.accept("...") {
        at.expect(">")?;
        return Ok(None);
    }
    loop {
        options.push(match at.word("an option")? {
            "nop" => TcpOption::Nop,
            "eol" => TcpOption::EndOfList,
            "mss" => TcpOption::MaxSegmentSize(at.number()? as u16),
            "wscale" => TcpOption::WindowScale(at.number()? as u8),
            "sackOK" => TcpOption::SackPermitted,
            "sack" => {
                let mut blocks = Vec::new();
                while at.starts_with_digit() {
                    let start = at.number()?;
                    at.expect(":")?;
                    blocks.push((start, at.number()?));
                }
                TcpOption::Sack(blocks)
            }
            "TS" => {
                at.expect("val")?;
                let value = at.number()?;
                at.expect("ecr")?;
                TcpOption::Timestamps {
                    value,
                    echo: at.number()?,
                }
            }
            name => return Err(format!("no such option: {name}")),
        });
        if at.accept(">") {
            return Ok(Some(options));
        }
        at.expect(",")?;
    }
}
